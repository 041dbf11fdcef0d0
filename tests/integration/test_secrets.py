"""A password, a token, a key: in nothing that any command writes, prints, logs, stores or raises."""

from __future__ import annotations

import json
import logging
import traceback
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus
from uuid import uuid4

import psycopg
import pytest
from dagster import DagsterInstance
from deltalake import DeltaTable
from psycopg import sql

from partitions.errors import SourceError
from platform_assets.project import load_project
from resources.connections.jdbc import JdbcConnection
from resources.sources.jdbc.client import client
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.api import ITEMS, SCHEMA, Api, api, given_token, status
from tests.support.databases import DatabaseRows, rows_of
from tests.support.feed import NOW, Feed

pytestmark = pytest.mark.postgres

PASSWORD = "pa'ss\"w\\ord %{x};$ä#1"
WRONG = "wrong-pa'ss\"w\\ord %7"
TOKEN, KEY, STATE = "token-5e0c1a77", "key-91ab/+=c3", "state-pw-7731%2F"
CLIENT, FIRST, BEARER = "client-pw/+=77 %c1", "bearer-88c.1_y~2", "bearer-3f9.0_x~1"
NAMED = b64encode(f"crm:{quote_plus(CLIENT)}".encode()).decode()
"""What a client says of itself to the server of tokens."""
SECRETS = (PASSWORD, WRONG, TOKEN, KEY, STATE, CLIENT, FIRST, BEARER, NAMED)


@pytest.fixture
def rows(postgres: Postgres) -> DatabaseRows:
    """A table, and a user with a difficult password."""
    made = rows_of(postgres)
    made.fill(3)
    made.user = (f"u_{uuid4().hex[:8]}", PASSWORD)
    with psycopg.connect(postgres.url(), autocommit=True) as session:
        create = sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}")
        session.execute(create.format(sql.Identifier(made.user[0]), sql.Literal(PASSWORD)))
        session.execute(f"GRANT SELECT ON {made.name} TO {made.user[0]}".encode())
        session.execute(f"CREATE ROLE s_{made.name} LOGIN PASSWORD 'state-pw-7731/'".encode())
        session.execute(f"GRANT CREATE ON DATABASE postgres TO s_{made.name}".encode())
    return made


@pytest.fixture
def crm() -> Iterator[Api]:
    """An API that gives tokens to clients, and rows in pages with a cursor in a header."""
    with api() as running:
        running.rows = [{"id": number, "at": f"2026-01-0{number}T00:00:00Z"} for number in range(1, 8)]
        running.tokens.extend([given_token(BEARER, expires_in=3600)] * 50)
        yield running


@pytest.fixture
def project(rows: DatabaseRows, postgres: Postgres, tmp_path: Path, engine: SparkEngine, crm: Api) -> Feed:
    """Dataflows that load from a database and an API, some that are not let in, one whose query fails while it is read; the state is in PostgreSQL."""
    assert rows.user is not None
    user = rows.user[0]
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "erp").write_text(f"{PASSWORD}\n")
    (secrets / "crm").write_text(CLIENT)
    erp = {
        "type": "jdbc",
        "url": {"env": "ERP_URL"},
        "user": user,
        "password": {"file": str(secrets / "erp")},
    }
    wrong = {"type": "jdbc", "url": rows.url, "user": user, "password": {"env": "WRONG"}}
    land = {"type": "s3", "endpoint": "http://127.0.0.1:1", "region": "r", "access_key_id": {"env": "TOKEN"}, "secret_access_key": {"env": "KEY"}}  # fmt: skip
    function = {"function": "vault_of_secrets:secret", "path": str(secrets / "crm")}
    client = {"client_id": "crm", "client_secret": function, "scope": "rows.read"}
    flow = {"watermark": {"type": "column", "columns": ["at"]}, "target": {"load": "append"}}
    shop = {"type": "api", "base_url": crm.url, "token_url": f"{crm.url}/token", **client}
    made = Feed(
        tmp_path / "project",
        engine,
        flow | {"source": {"type": "jdbc", "connection": "erp", "table": rows.name}},
        {
            "connections": {"erp": erp, "wrong": wrong, "land": land, "shop": shop},
            "state": {"env": "STATE_URL"},
        },
        {
            "ERP_URL": f"{rows.url}?sslpassword={TOKEN}&ApplicationName=x",
            "WRONG": WRONG,
            "TOKEN": TOKEN,
            "KEY": KEY,
            "STATE_URL": f"postgresql://s_{rows.name}:{STATE}@127.0.0.1:{postgres.port}/postgres?schema=s_{uuid4().hex[:8]}",
            "DAGSTER_HOME": str(tmp_path / "home"),
        },
    )
    (tmp_path / "home").mkdir()
    (made.folder / "vault_of_secrets.py").write_text(
        "from pathlib import Path\n\n\ndef secret(path: str) -> str:\n    return Path(path).read_text()\n"
    )
    others: dict[str, dict[str, Any]] = {
        "refused": {"connection": "wrong", "table": rows.name},
        "failing": {"connection": "erp", "query": f"SELECT at, 1 / (id - 2) AS x FROM {rows.name}"},
        "bucket": {"connection": "land"},
        "customers": {
            "connection": "shop",
            "path": "/rows",
            "records": ITEMS,
            "paging": {
                "type": "cursor",
                "param": "cursor",
                "header": "X-Next",
                "size_param": "size",
                "size": 3,
            },
            "watermark_param_mapping": {"at": "since"},
            "watermark_to_param": "until",
            "schema": SCHEMA,
        },
    }
    for name, source in others.items():
        text = flow | {"source": {"type": "jdbc", **source}}
        if name == "bucket":
            files = {"type": "files", "path": "s3://b/x", "format": "ndjson", "connection": "land"}
            text = {"source": files, "watermark": {"type": "path"}, "target": {"load": "append"}}
        if name == "customers":
            text = flow | {"source": {"type": "api", **source}}
        (made.folder / "dataflows" / f"{name}.yaml").write_text(json.dumps(text))
    return made


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("validate",),
    ("plan",),
    ("run", "flow"),
    ("run", "refused"),
    ("run", "failing"),
    ("run", "customers"),
    ("plan", "customers"),
    ("schema", "show", "customers"),
    ("state", "history", "customers", "--intents"),
    ("list",),
    ("state", "show", "flow"),
    ("state", "history", "flow", "--intents"),
    ("state", "show", "failing"),
    ("state", "rewind", "flow", "--to", "0", "--reason", "again", "--yes"),
    ("schema", "show", "flow"),
    ("schema", "infer", "refused"),
    ("ledger", "flow"),
    ("state", "export", "flow"),
    ("doctor",),
)


@pytest.mark.full
def test_no_command_shows_or_stores_a_secret(
    project: Feed,
    crm: Api,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    postgres: Postgres,
) -> None:
    caplog.set_level(logging.DEBUG)
    codes = {}
    said = {}
    for words in COMMANDS:
        if words == ("run", "customers"):  # the second page: the token has expired
            crm.log.clear()
            crm.tokens.appendleft(given_token(FIRST, expires_in=3600))
            crm.faults.extend([None, None, status(401, f"{FIRST} has ended")])
        answer = project.cli(*words)
        codes[" ".join(words)] = answer.code
        said[" ".join(words)] = answer.out + answer.err
    assert {name: code for name, code in codes.items() if code} == {
        "plan": 1, "run refused": 1, "run failing": 1, "schema infer refused": 1, "doctor": 1,
    }  # fmt: skip
    assert "division by zero" in said["run failing"]
    assert "password authentication failed" in said["run refused"]
    loaded = DeltaTable(str(project.folder / "lake" / "bronze" / "customers")).to_pyarrow_table()
    assert sorted(loaded["id"].to_pylist()) == list(range(1, 8))
    sent = [(each.params.get("cursor"), each.headers["Authorization"]) for each in crm.log]
    first, second = f"Bearer {FIRST}", f"Bearer {BEARER}"
    assert sent[:5] == [(None, first), (None, first), ("3", first), ("3", second), ("6", second)]
    crm.tokens.appendleft(status(401, json.dumps({"error": f"{CLIENT} {NAMED}"})))
    refused = project.cli("run", "customers")
    said["run customers again"] = refused.out + refused.err
    assert "expected a token, found HTTP 401 *** ***" in said["run customers again"]
    out, err = capfd.readouterr()
    written = {**said, "out": out, "err": err, "logs": caplog.text}
    with DagsterInstance.from_config(str(tmp_path / "home")) as instance:
        for run in instance.get_runs():
            entries = instance.all_logs(run.run_id)
            assert entries
            written[f"events of {run.run_id}"] = repr(entries) + str(run.run_config) + repr(run)
    assert sum(name.startswith("events") for name in written) == 5
    schema = project.environment["STATE_URL"].rpartition("=")[2]
    tables = postgres.ask("SELECT table_name FROM information_schema.tables WHERE table_schema = %s", schema)
    assert tables
    for (table,) in tables:
        written[f"table {table}"] = repr(postgres.ask("SELECT t::text FROM {s}.{t} t", s=schema, t=table))
    assert list(leaks(written)) == []
    files = [
        path for folder in (project.folder, tmp_path / "home") for path in folder.rglob("*") if path.is_file()
    ]
    assert list(leaks({str(path): path.read_bytes() for path in files})) == []


def test_no_object_and_no_chain_of_errors_shows_a_secret(project: Feed) -> None:
    loaded = load_project(project.folder, environment=project.environment)
    shown = {"project": repr(loaded) + str(loaded)}
    for name in ("flow", "refused", "failing", "customers"):
        dataflow = loaded.named([name])[0]
        platform = project.platform
        kind, source = platform.kind(dataflow), platform.source(dataflow)
        place = loaded.source_place(dataflow)
        engine = platform.engine(dataflow)
        shown[name] = " ".join(
            map(repr, (dataflow, platform, kind, source, vars(source), place, str(place), engine))
        )
        loop = platform.loop(dataflow, NOW)
        shown[f"{name} loop"] = repr(loop)
        outcome = loop.run()
        shown[f"{name} outcome"] = repr(outcome) + json.dumps(outcome.as_json(), default=str)
        if outcome.error is not None:
            shown[f"{name} error"] = "".join(traceback.format_exception(outcome.error)) + repr(outcome.error)
    assert {"refused error", "failing error"} <= shown.keys()
    erp = loaded.connection("erp", JdbcConnection)
    with pytest.raises(SourceError, match="nope") as failed:
        ask(erp, "SELECT nope", shown)
    shown["client error"] = "".join(traceback.format_exception(failed.value))
    assert list(leaks(shown)) == []


def ask(connection: JdbcConnection, query: str, shown: dict[str, str]) -> None:
    """Ask a database, and keep how its client shows itself."""
    with client(connection) as asking:
        shown["client"] = repr(asking)
        asking.ask(query)


def test_the_search_finds_a_secret_in_any_form() -> None:
    for form in (PASSWORD, repr(PASSWORD), json.dumps({"x": PASSWORD}), quote_plus(PASSWORD)):
        assert list(leaks({"text": f"a {form} b", "bytes": f"a {form} b".encode()}))


def leaks(written: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What holds which secret, in any form that it has in a URL, in JSON or in Python."""
    for secret in (*SECRETS, "state-pw-7731/"):
        forms = {
            secret,
            quote(secret),
            quote(secret, safe=""),
            quote_plus(secret),
            json.dumps(secret)[1:-1],
            repr(secret)[1:-1],
        }
        forms |= {
            json.dumps(secret, ensure_ascii=False)[1:-1],
            secret.replace("'", "''"),
            secret.replace("\\", "\\\\"),
        }
        for name, content in written.items():
            for form in forms:
                if (form.encode() if isinstance(content, bytes) else form) in content:
                    yield name, form
