"""Secrets that are rotated while a process runs, and secrets of Spark in no list of processes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import psutil
import psycopg
import pytest
from psycopg import sql

from platform_assets.cli.running import Runner
from platform_assets.project import load_project
from resources.spark.connect_server import ConnectServer
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.databases import rows_of
from tests.support.feed import Feed
from tests.support.http import QuietHandler, Server, serving

PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/secrets.md").read_text()
FIRST, SECOND = "first-pw/'\"\\ %1", "second-pw-2"


@pytest.mark.postgres
def test_a_password_that_is_rotated_between_two_runs_counts_in_the_same_process(
    postgres: Postgres, engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, role, file = rows_of(postgres), f"r_{uuid4().hex[:8]}", tmp_path / "password"
    rows.fill(2)

    def rotate(password: str, statement: str = "ALTER") -> None:
        with psycopg.connect(postgres.url(), autocommit=True) as session:
            text = f"{statement} ROLE {{}} LOGIN PASSWORD {{}}"
            session.execute(sql.SQL(text).format(sql.Identifier(role), sql.Literal(password)))
            session.execute(f"GRANT SELECT ON {rows.name} TO {role}".encode())

    rotate(FIRST, "CREATE")
    file.write_text(f"{FIRST}\n")
    erp = {"type": "jdbc", "url": rows.url, "user": role, "password": {"file": str(file)}}
    feed = Feed(
        tmp_path / "project",
        engine,
        {
            "source": {"type": "jdbc", "connection": "erp", "table": rows.name},
            "watermark": {"type": "column", "columns": ["at"]},
        },
        {"connections": {"erp": erp}},
    )
    monkeypatch.setenv("STRANDLINE_SPARK_REMOTE", str(engine.remote))
    project = load_project(feed.folder)
    (flow,) = project.named([])
    runner = Runner(project, [flow], None)
    assert runner.run(flow).rows == 2
    rotate(SECOND)
    rows.fill(3, first=3)
    refused = runner.run(flow)
    assert refused.error is not None
    assert "password authentication failed" in refused.error.message
    file.write_text(f"{SECOND}\n")
    after = runner.run(flow)
    assert (after.error, after.rows) == (None, 3)
    for text in (
        repr(project),
        repr(refused),
        refused.error.message,
        json.dumps(after.as_json(), default=str),
    ):
        assert FIRST not in text
        assert SECOND not in text


class _SecretsManager(QuietHandler):
    """AWS Secrets Manager, as far as ``GetSecretValue`` goes."""

    def do_POST(self) -> None:  # noqa: N802 - http.server's name
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert self.headers["X-Amz-Target"] == "secretsmanager.GetSecretValue"
        body = json.dumps({"Name": request["SecretId"], "SecretString": '{"password": "from-aws"}'}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def secrets_manager(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The service behind the address that boto3 takes from the environment."""
    with serving(Server(_SecretsManager)) as server:
        for name, value in {
            "AWS_ENDPOINT_URL_SECRETS_MANAGER": f"http://127.0.0.1:{server.server_address[1]}",
            "AWS_ACCESS_KEY_ID": "AKIA",
            "AWS_SECRET_ACCESS_KEY": "key",
            "AWS_DEFAULT_REGION": "eu-central-1",
        }.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.mark.usefixtures("secrets_manager")
def test_the_example_of_aws_secrets_manager_gives_the_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = PAGE.partition("```python\n")[2].partition("```")[0]
    settings = next(block for block in PAGE.split("```yml\n")[1:] if "aws_secrets:" in block).partition(
        "```"
    )[0]
    (tmp_path / "aws_secrets.py").write_text(code)
    (tmp_path / "platform.yaml").write_text(settings)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "aws_secrets", raising=False)
    project = load_project(tmp_path)
    assert project.errors == []
    connection = project.open_connection("erp")
    assert dict(connection.secrets)["password"] == "from-aws"


KEY, SECRET = "spark.hadoop.strandline.test.phrase", "zq-7 \\=:#ä'\"!"


def command_lines(process: psutil.Process) -> str:
    lines = []
    for child in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):  # it has ended
            lines.append(" ".join(child.cmdline()))
    return "\n".join(lines)


@pytest.mark.full
def test_a_secret_of_a_connect_server_is_in_its_settings_and_in_no_command_line(tmp_path: Path) -> None:
    engine = SparkEngine(master="local[1]", conf={KEY: SECRET, "spark.x": "y"}, secret_keys=frozenset({KEY}))
    server = ConnectServer(engine, tmp_path / "log")
    try:
        server.start()
        assert server.process is not None
        lines = command_lines(psutil.Process(server.process.pid))
        session = SparkEngine(remote=server.url).session()
        assert session.conf.get(KEY) == SECRET
    finally:
        server.stop()
    assert ("spark.x=y" in lines, "zq-7" in lines) == (True, False)
    assert [path.name for path in tmp_path.iterdir()] == ["log"]
    assert "zq-7" not in (tmp_path / "log").read_text()
