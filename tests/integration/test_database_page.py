"""The project that docs/reference/databases.md shows runs as it stands, on a real database."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from deltalake import DeltaTable

from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres

PAGE = Path(__file__).resolve().parents[2] / "docs/reference/databases.md"
NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.postgres
def test_the_project_of_the_page_loads_its_rows(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = f"erp_{uuid4().hex[:8]}"
    postgres.ask("CREATE DATABASE {d}", d=database)
    with postgres.session(database) as erp:
        erp.execute("CREATE TABLE customers (id int PRIMARY KEY, name text)")
        erp.execute(
            "CREATE TABLE orders (id int, updated_at timestamptz, amount numeric(12, 2), customer_id int)"
        )
        erp.execute("CREATE INDEX ON orders (updated_at)")
        erp.execute("INSERT INTO customers VALUES (1, 'a'), (2, 'it''s; ours')")
        erp.execute(
            "INSERT INTO orders VALUES (1, '2026-01-01', 99, 1), (2, '2026-01-02', 100, 1), (3, '2026-01-03', 5, 2), (4, now(), 500, 1)"
        )
    for path, text in blocks().items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    monkeypatch.setenv("STRANDLINE_SPARK_REMOTE", engine.remote or "")
    environment = {
        "ERP_URL": f"jdbc:postgresql://127.0.0.1:{postgres.port}/{database}",
        "ERP_USER": "postgres",
        "ERP_PASSWORD": postgres.password,
        "STRANDLINE_SPARK_REMOTE": engine.remote or "",
    }
    project = load_project(tmp_path, environment=environment)
    assert list(project.errors) == []
    platform = build_platform(project)
    for name, ids in {"orders": [1, 2, 3], "large_orders": [2, 3, 4]}.items():
        outcome = platform.loop(project.dataflows[name], NOW).run()
        assert outcome.error is None
        rows = DeltaTable(str(tmp_path / ".strandline/lake/bronze" / name)).to_pyarrow_table(columns=["id"])
        assert (name, sorted(rows.column("id").to_pylist())) == (name, ids), (
            "the newest order has not settled for five minutes"
        )


def blocks() -> dict[str, str]:
    """The files of the project, by their names in the first line."""
    texts = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    return {text.partition("\n")[0].removeprefix("# "): text for text in texts}
