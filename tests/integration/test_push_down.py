"""Push-down seen from outside: a database's own log has the predicate, once, and it sends the increment; of a lake table only the files with it are opened."""

from __future__ import annotations

import re
from pathlib import Path
from typing import cast

import pytest

from resources.kinds.column.opening import open_column
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.columns import BY_TIME, on_lake
from tests.support.columns import at as day
from tests.support.databases import at, rows_of
from tests.support.mariadb import MariaDB
from tests.support.statements import StatementLog

OLD, NEW = 5_000, 40


@pytest.mark.postgres
@pytest.mark.parametrize("database", ["postgres", "mariadb"])
def test_a_database_is_asked_once_for_the_increment_and_sends_nothing_else(
    request: pytest.FixtureRequest, tmp_path: Path, engine: SparkEngine, database: str
) -> None:
    rows = rows_of(cast("Postgres | MariaDB", request.getfixturevalue(database)))
    log = StatementLog(rows)
    rows.fill(OLD)
    flow = rows.flow(tmp_path, engine)
    flow.run()
    rows.fill(NEW, first=OLD + 1)
    log.clear()
    outcome = flow.run()
    assert outcome.rows == NEW
    (statement,) = log.reads
    lower, upper = (f"{moment:%Y-%m-%d %H:%M:%S.%f}" for moment in (at(OLD), at(OLD + NEW)))
    column, literal = {
        "postgresql": ('"at"', "TIMESTAMPTZ '{}+00'"),
        "mariadb": ("`at`", "TIMESTAMP '{}'"),
    }[rows.scheme]
    assert f"WHERE {column} > {literal.format(lower)} AND {column} <= {literal.format(upper)}" in statement
    assert len(rows.ask(statement)) == NEW
    log.clear()
    assert flow.run().status == "nothing"
    assert log.reads == []


@pytest.mark.postgres
@pytest.mark.parametrize("database", ["postgres", pytest.param("mariadb", marks=pytest.mark.full)])
@pytest.mark.full
def test_the_index_serves_each_part_of_a_slice(
    request: pytest.FixtureRequest, tmp_path: Path, engine: SparkEngine, database: str
) -> None:
    """The parts are one relation, whose time is converted; the bounds are on the column itself."""
    rows = rows_of(cast("Postgres | MariaDB", request.getfixturevalue(database)))
    log = StatementLog(rows)
    rows.fill(OLD)
    rows.ask(f"ANALYZE {'TABLE ' if database == 'mariadb' else ''}{rows.name}")
    flow = rows.flow(tmp_path, engine, watermark=BY_TIME | {"checkpoint": {"interval_rows": OLD // 10}})
    log.clear()
    assert flow.run().rows == OLD
    reads = log.reads
    assert len(reads) == 40
    assert [len(rows.ask(statement)) for statement in reads] == [OLD // 40] * 40
    assert flow.ids == list(range(1, OLD + 1))
    plan = str(rows.ask(f"EXPLAIN {reads[20]}"))
    assert f"{rows.name}_at" in plan
    assert "derived" not in plan.lower()
    assert "Subquery" not in plan


@pytest.mark.postgres
def test_the_index_serves_read_and_look(postgres: Postgres, tmp_path: Path, engine: SparkEngine) -> None:
    rows = rows_of(postgres)
    log = StatementLog(rows)
    rows.fill(OLD)
    rows.ask(f"ANALYZE {rows.name}")
    flow = rows.flow(tmp_path, engine)
    flow.run()
    rows.fill(NEW, first=OLD + 1)
    log.clear()
    flow.run()
    (statement,) = log.reads
    plan = "\n".join(
        line for (line,) in rows.ask(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) {statement}")
    )
    assert f"Index Scan using {rows.name}_at" in plan
    assert re.search(rf"rows={NEW}(\.00)? ", plan)


def test_lake_files_below_the_watermark_stay_closed(tmp_path: Path, engine: SparkEngine) -> None:
    """They may even be gone. The one that ends with the watermark is: statistics are cut to milliseconds, so it may hold a row above."""
    flow, table = on_lake(tmp_path, engine)
    for number in range(1, 5):
        table.add({"id": number, "at": day(number), "value": number})
    flow.run()
    table.add({"id": 5, "at": day(5), "value": 5}, {"id": 6, "at": day(6), "value": 6})
    old = sorted(table.path.glob("*.parquet"), key=lambda path: path.stat().st_mtime_ns)[:3]
    for path in old:
        path.rename(path.with_suffix(".gone"))
    assert flow.run().rows == 2
    assert flow.ids == [1, 2, 3, 4, 5, 6]


def test_the_plan_of_a_lake_table_pushes_the_bounds_into_the_files(
    tmp_path: Path, engine: SparkEngine, capsys: pytest.CaptureFixture[str]
) -> None:
    flow, table = on_lake(tmp_path, engine)
    table.add({"id": 1, "at": day(1), "value": 1}, {"id": 2, "at": day(2), "value": 2})
    flow.run()
    table.add({"id": 3, "at": day(3), "value": 3})
    kind, spark = open_column(flow.feed.platform, flow.feed.dataflow), engine.session()
    entry = flow.feed.newest
    assert entry is not None
    (slice_,) = kind.planning.plan(entry, day(31)).slices
    kind.reading.read(spark, slice_, kind.reading.pin(spark, [slice_]) or "").explain("formatted")
    plan = capsys.readouterr().out
    (pushed,) = re.findall(r"PushedFilters: \[(.*)\]", plan)
    assert re.search(r"GreaterThan\(at,2026-01-0\d .*, LessThanOrEqual\(at,2026-0[12]-\d\d ", pushed)
    assert len(re.findall(r"^\(\d+\) Scan ", plan, re.MULTILINE)) == 1
