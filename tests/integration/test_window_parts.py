"""Windows of a database over several connections: parts along the index of their time, each row once, and nothing else is sent."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

import pytest
from pyspark.sql import SparkSession

from partitions.sources import JdbcSource
from partitions.window.extent import Extent
from resources.sources.jdbc.source import JdbcRows
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.columns import REPLACED
from tests.support.databases import START, DatabaseRows, OnPostgres, rows_of
from tests.support.mariadb import MariaDB
from tests.support.statements import StatementLog

pytestmark = pytest.mark.postgres

FIRST = int(START.timestamp() * 1000)
SECOND = 1000
UNITS = ("a", "B", "b ", "ä'\\", None)


@pytest.fixture(params=["postgres", "mariadb"])
def rows(request: pytest.FixtureRequest) -> DatabaseRows:
    return rows_of(cast("Postgres | MariaDB", request.getfixturevalue(request.param)))


def add_units(rows: DatabaseRows) -> None:
    """Give the rows units, some of them NULL, times without a zone, and ties; a few have no time."""
    text = "text" if isinstance(rows, OnPostgres) else "varchar(9) CHARACTER SET utf8mb4"
    local = "timestamp" if isinstance(rows, OnPostgres) else "datetime(6)"
    named = rows.ask  # the names are odd on purpose
    quote = '"' if isinstance(rows, OnPostgres) else "`"
    named(f"ALTER TABLE {rows.name} ADD COLUMN {quote}u 'n{quote} {text}")
    named(f"ALTER TABLE {rows.name} ADD COLUMN wall {local}")
    units = "CASE id % 5 WHEN 0 THEN 'a' WHEN 1 THEN 'B' WHEN 2 THEN 'b ' WHEN 3 THEN {odd} END"
    odd = "'ä''\\'" if isinstance(rows, OnPostgres) else "'ä''\\\\'"
    named(f"UPDATE {rows.name} SET {quote}u 'n{quote} = {units.format(odd=odd)}")
    at = "at AT TIME ZONE 'Europe/Berlin'" if isinstance(rows, OnPostgres) else "at + INTERVAL 1 HOUR"
    named(f"UPDATE {rows.name} SET wall = {at}")
    named(f"CREATE INDEX {rows.name}_wall ON {rows.name} (wall)")
    named(f"UPDATE {rows.name} SET at = NULL WHERE id % 97 = 0")
    tie = "timestamptz '2026-01-01 00:05:00+00'" if isinstance(rows, OnPostgres) else "'2026-01-01 00:05:00'"
    named(f"UPDATE {rows.name} SET at = {tie} WHERE id BETWEEN 300 AND 380")


def reader(rows: DatabaseRows, part_rows: int, **source: Any) -> JdbcRows:
    given = {"type": "jdbc", "connection": "erp", "table": rows.name, "window_column": "at"} | source
    return JdbcRows(
        rows.connection, JdbcSource.model_validate(given), ZoneInfo("Europe/Berlin"), part_rows=part_rows
    )


def ids(spark: SparkSession, asked: JdbcRows, extents: list[Extent]) -> list[int]:
    found = asked.read(spark, extents, asked.pin(spark))
    return sorted(row["id"] for row in found.select("id").collect())


@pytest.mark.each_case
def test_parts_hold_the_rows_of_windows_and_units_once(rows: DatabaseRows, spark: SparkSession) -> None:
    rows.fill(1000)
    add_units(rows)
    chance = random.Random(7)
    for column in ("at", "wall"):
        given = {"window_column": column, "unit_columns": {"u": "u 'n"}}
        in_parts, whole = reader(rows, 30, **given), reader(rows, 10_000, **given)
        for _ in range(3):
            extents = []
            for _ in range(chance.randint(1, 4)):
                lower = FIRST + chance.randrange(0, 1000) * SECOND
                upper = lower + chance.randrange(1, 600) * SECOND
                extents.append(Extent(lower, upper, tuple({"u": unit} for unit in chance.sample(UNITS, 2))))
            expected = ids(spark, whole, extents)
            assert ids(spark, in_parts, extents) == expected
            assert len(expected) == len(set(expected))


@pytest.mark.each_case
def test_a_large_window_is_read_over_four_connections(rows: DatabaseRows, spark: SparkSession) -> None:
    log = StatementLog(rows)
    rows.fill(1000)
    rows.ask(f"ANALYZE {'' if isinstance(rows, OnPostgres) else 'TABLE '}{rows.name}")
    asked = reader(rows, 100)
    everything = [Extent(FIRST + SECOND, FIRST + 801 * SECOND, ({},))]
    pinned = asked.pin(spark)
    log.clear()
    assert (
        asked.read(spark, everything, pinned).select("id", "filler").where("id > 0").toArrow().num_rows == 800
    )
    reads = log.reads
    assert [len(rows.ask(read)) for read in sorted(reads)] == [200] * 4
    assert f"{rows.name}_at" in str(rows.ask(f"EXPLAIN {reads[1]}"))
    log.clear()
    few = [Extent(FIRST + SECOND, FIRST + 51 * SECOND, ({},))]
    assert asked.read(spark, few, pinned).select("id", "filler").toArrow().num_rows == 50
    assert len(log.reads) == 1


@pytest.mark.each_case
def test_no_index_on_time_or_a_query_makes_one_part(rows: DatabaseRows, spark: SparkSession) -> None:
    rows.fill(200)
    everything = [Extent(FIRST, FIRST + 300 * SECOND, ({},))]
    query = {"table": None, "query": f"SELECT * FROM {rows.name}"}
    rows.ask(f"DROP INDEX {rows.name}_at" + ("" if isinstance(rows, OnPostgres) else f" ON {rows.name}"))
    for source in ({}, query):
        asked = reader(rows, 10, **source)
        assert asked.read(spark, everything, asked.pin(spark)).toArrow().num_rows == 200


@pytest.mark.full
def test_a_large_window_loads_in_parts(rows: DatabaseRows, tmp_path: Path, engine: SparkEngine) -> None:
    log = StatementLog(rows)
    rows.fill(110_000)  # a second each, of two days
    days = [{"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "2026-01-03"}}]
    given = {"type": "window", "definition": days, "window": "daily", "grace": "P9D"}
    source = {"table": rows.name, "window_column": "at"}
    flow = rows.flow(tmp_path, engine, source=source, watermark=given, target=REPLACED)
    log.clear()
    assert flow.run("2026-01-06").rows == 110_000
    assert len(log.reads) == 2
    assert flow.ids == list(range(1, 110_001))
    rows.ask(f"DELETE FROM {rows.name} WHERE id <= 100000")
    rows.fill(7, first=300_000)
    late = datetime(2026, 1, 2, tzinfo=UTC) + timedelta(seconds=1)
    rows.ask(f"UPDATE {rows.name} SET at = '{late:%Y-%m-%d %H:%M:%S}' WHERE id >= 300000")
    assert flow.run("2026-01-07").error is None
    assert flow.ids == [*range(100_001, 110_001), *range(300_000, 300_007)]
