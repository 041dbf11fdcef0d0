"""Databases and tables of the lake as sources: what they read is what a filter in Python keeps."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from partitions.errors import SchemaError
from partitions.sources import JdbcSource, TableSource
from partitions.window.extent import Extent, Unit
from resources.connections.jdbc import JdbcConnection
from resources.connections.places import Place
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.sources.conditions import table_rows
from resources.sources.jdbc.source import JdbcRows
from resources.sources.table import TableRows
from resources.spark.engine import SparkEngine
from resources.tables.registry import open_table
from scripts import postgres as pg
from tests.support.windowed import (
    FLAGS,
    HOURS,
    NUMBERS,
    TEXTS,
    UNITS,
    WHOLES,
    ZONE,
    Row,
    ids_in_lake,
    meant,
    put_in_database,
    put_in_lake,
    some_rows,
)

pytestmark = pytest.mark.postgres

ROWS = some_rows(1)
TABLE = f"t_{uuid4().hex[:8]}"
DAYS = [*sorted({row.due for row in ROWS if row.due}), None]

few = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _of_units(names: tuple[str, ...]) -> st.SearchStrategy[tuple[Unit, ...]]:
    values: dict[str, st.SearchStrategy[Any]] = {
        "t": st.sampled_from(TEXTS),
        "w": st.sampled_from(WHOLES),
        "n": st.sampled_from(NUMBERS),
        "f": st.sampled_from(FLAGS),
        "d": st.sampled_from(DAYS),
    }
    one = st.fixed_dictionaries({name: values[name] for name in names})
    return st.lists(one, min_size=1, max_size=3).map(tuple)


bounds = st.lists(st.sampled_from(HOURS), min_size=2, max_size=2).map(sorted)


@st.composite
def extents(draw: st.DrawFn) -> list[Extent]:
    """Some stretches of time, of units of the same names; they may touch, overlap, be empty or be repeated."""
    names = draw(st.sampled_from([(), ("t",), ("w",), ("n",), ("f",), ("t", "w"), ("t", "f", "d")]))
    timeless = draw(st.booleans()) and draw(st.booleans())
    found = []
    for _ in range(draw(st.integers(0, 4))):
        lower, upper = (None, None) if timeless else draw(bounds)
        found.append(Extent(lower, upper, draw(_of_units(names)) if names else ({},)))
    return found


@pytest.fixture(scope="module")
def connection(postgres: pg.Postgres) -> JdbcConnection:
    put_in_database(postgres, TABLE, ROWS)
    return _connection(postgres)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("lake") / "bronze" / "rows"
    folder.parent.mkdir()
    put_in_lake(folder, ROWS)
    return Place(str(folder))


def _connection(postgres: pg.Postgres, **named: str) -> JdbcConnection:
    url = f"jdbc:postgresql://127.0.0.1:{postgres.port}/postgres"
    return JdbcConnection.parse(url, named.get("user", "postgres"), named.get("password", postgres.password))


def _jdbc(connection: JdbcConnection, **source: Any) -> JdbcRows:
    return JdbcRows(connection, JdbcSource(type="jdbc", connection="erp", **source), ZONE)


def _ids(frame: DataFrame) -> list[int]:
    return sorted(row["id"] for row in frame.select("id").collect())


@pytest.mark.parametrize("column", ["at", "wall", "day"])
@few
@given(extents=extents())
@pytest.mark.full
def test_a_database_gives_the_rows_of_its_extents_and_no_others(
    spark: SparkSession, connection: JdbcConnection, column: str, extents: list[Extent]
) -> None:
    reader = _jdbc(connection, table=TABLE, window_column=column, unit_columns=UNITS)
    assert _ids(reader.read(spark, extents, reader.pin(spark))) == meant(ROWS, extents, column)


@pytest.mark.parametrize("column", ["at", "wall", "day"])
@settings(few, max_examples=10)
@given(extents=extents())
def test_a_table_of_the_lake_gives_the_rows_of_its_extents_and_no_others(
    spark: SparkSession, lake: Place, column: str, extents: list[Extent]
) -> None:
    source = TableSource(type="table", table="bronze/rows", window_column=column, unit_columns=UNITS)
    reader = TableRows(open_table("delta", lake), source, ZONE)
    assert _ids(reader.read(spark, extents, reader.pin(spark))) == meant(ROWS, extents, column)


@pytest.mark.full
@pytest.mark.parametrize("column", ["at", "wall", "day"])
@settings(few, max_examples=4)
@given(extents=extents())
def test_a_delete_of_a_delta_table_takes_the_rows_of_its_extents_and_no_others(
    spark: SparkSession, lake: Place, column: str, extents: list[Extent]
) -> None:
    before = DeltaTable(lake.url).version()
    frame = spark.read.format("delta").load(lake.spark_url)
    condition = predicate_sql(table_rows(extents, frame.schema, window=column, units=UNITS, zone=ZONE), SPARK)
    frame.limit(0).write.format("delta").mode("overwrite").option("replaceWhere", condition).save(
        lake.spark_url
    )
    gone = set(meant(ROWS, extents, column))
    try:
        assert ids_in_lake(Path(lake.url)) == [row.id for row in ROWS if row.id not in gone]
    finally:
        if (table := DeltaTable(lake.url)).version() != before:  # a delete of nothing commits nothing
            table.restore(before)


@pytest.mark.parametrize("column", ["at", "wall", "day"])
def test_a_delta_table_takes_the_rows_that_were_read_for_the_same_extents(
    spark: SparkSession, connection: JdbcConnection, lake: Place, column: str
) -> None:
    extents = [
        Extent(HOURS[0], HOURS[20], ({"t": None, "w": 1}, {"t": "x'y", "w": None})),
        _all({"t": "b\\s", "w": 0}),
    ]
    reader = _jdbc(connection, table=TABLE, window_column=column, unit_columns=UNITS)
    pinned = reader.pin(spark)
    frame = reader.read(spark, extents, pinned)
    condition = predicate_sql(table_rows(extents, frame.schema, window=column, units=UNITS, zone=ZONE), SPARK)
    frame.write.format("delta").mode("overwrite").option("replaceWhere", condition).save(lake.spark_url)
    assert ids_in_lake(Path(lake.url)) == [row.id for row in ROWS]
    assert meant(ROWS, extents, column)


@pytest.mark.full
@few
@given(extents=extents())
def test_a_query_is_asked_once_for_each_stretch_of_each_unit(
    spark: SparkSession, connection: JdbcConnection, extents: list[Extent]
) -> None:
    timed = [Extent(one.lower or HOURS[0], one.upper or HOURS[-1], one.units) for one in extents]
    units = "".join(
        f" and {UNITS[name]} is not distinct from {{unit.{name}}}"
        for name in (timed[0].units[0] if timed else {})
    )
    query = f"select * from {TABLE} where at >= {{start}} and at < {{end}}{units}; -- all of them;"
    reader = _jdbc(connection, query=query)
    assert _ids(reader.read(spark, timed, reader.pin(spark))) == meant(ROWS, timed, "at")


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kathmandu", "Europe/Berlin"])
def test_values_are_right_whatever_the_zone_of_the_session(
    engine: SparkEngine, connection: JdbcConnection, zone: str
) -> None:
    spark = engine.session()
    spark.conf.set("spark.sql.session.timeZone", zone)
    reader = _jdbc(connection, table=TABLE, window_column="at")
    frame = reader.read(spark, [_all({})], reader.pin(spark))
    found = frame.selectExpr("*", "unix_micros(at) AS micros").drop("at").toArrow().to_pylist()
    by_id = {row["id"]: row for row in found}
    for row in ROWS:
        micros = by_id[row.id]["micros"]
        assert micros == (row.at and int(row.at.timestamp()) * 10**6)
        assert (
            Row(**{key: value for key, value in by_id[row.id].items() if key != "micros"}, at=row.at) == row
        )


def _all(unit: Unit) -> Extent:
    return Extent(None, None, (unit,))


@pytest.fixture
def odd(postgres: pg.Postgres) -> Iterator[str]:
    """A table of names that have to be quoted, nested values, and times beyond all calendars."""
    name = f'o.dd "{uuid4().hex[:6]}'
    postgres.ask(
        'CREATE TABLE {name} ("Id" int, "a.b `c" timestamptz, "select" uuid, xs int[], js jsonb, wall timestamp(0), v varchar(5))',
        name=name,
    )
    postgres.ask(
        "INSERT INTO {name} VALUES (1, '2024-01-01 00:00:00.123456+00', '11111111-2222-3333-4444-555555555555', '{{1,NULL}}', '{{\"a\": 1}}',"
        " '9999-12-31 23:59:59', 'abc'), (2, '0001-01-01 00:00:00+00', NULL, NULL, NULL, '0001-01-01 00:00:00', NULL), (3, '0099-01-01 00:00:00+00', NULL, NULL, NULL, NULL, NULL)",
        name=name,
    )
    yield '"' + name.replace('"', '""') + '"'
    postgres.ask("DROP TABLE {name}", name=name)


def test_odd_names_survive_pinned_text(spark: SparkSession, connection: JdbcConnection, odd: str) -> None:
    reader = _jdbc(
        connection, table=f"public.{odd}", window_column="a.b `c", unit_columns={"u": "select", "i": "Id"}
    )
    pinned = reader.pin(spark)
    reader.check_schema(spark, pinned, "flow")
    unit = {"u": "11111111-2222-3333-4444-555555555555", "i": 1}
    (row,) = reader.read(spark, [Extent(0, 2**41, (unit,))], pinned).toArrow().to_pylist()
    assert row == {
        "Id": 1,
        "a.b `c": datetime(2024, 1, 1, 0, 0, 0, 123456, tzinfo=UTC),
        "select": unit["u"],
        "xs": [1, None],
        "js": '{"a": 1}',
        "wall": datetime.fromisoformat("9999-12-31T23:59:59"),
        "v": "abc",
    }
    read = reader.read(spark, [_all({})], pinned)
    assert (
        read.where("Id = 3").selectExpr("CAST(`a.b ``c` AS STRING)").collect()[0][0] == "0099-01-01 00:00:00"
    )
    assert [field.metadata for field in read.schema.fields] == [{}] * 7


def test_text_in_a_definition_is_read_as_what_the_column_holds(
    spark: SparkSession, connection: JdbcConnection, lake: Place
) -> None:
    units: tuple[Unit, ...] = ({"w": "1", "n": "1.5", "f": "true", "d": "2024-03-30"},)
    typed = [_all({"w": 1, "n": Decimal("1.50"), "f": True, "d": date(2024, 3, 30)})]
    table = TableRows(
        open_table("delta", lake), TableSource(type="table", table="a/b", unit_columns=UNITS), ZONE
    )
    for reader in (_jdbc(connection, table=TABLE, unit_columns=UNITS), table):
        found = _ids(reader.read(spark, [Extent(None, None, units)], reader.pin(spark)))
        assert found == meant(ROWS, typed, None)
        assert found


@pytest.mark.full
def test_rows_without_spark_are_those_that_spark_sees(spark: SparkSession, tmp_path: Path) -> None:
    """Columns mapped by name and rows marked as deleted, which simpler readers show as NULL, or not at all."""
    mapped = {"delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "true"}
    frame = spark.range(6).selectExpr("id", "id % 2 AS `a b`", "CAST(id AS STRING) AS `x.y`")
    frame.coalesce(1).write.format("delta").options(**mapped).save(str(tmp_path / "t"))
    spark.sql(f"DELETE FROM delta.`{tmp_path / 't'}` WHERE id IN (1, 3, 4)").collect()
    found = list(open_table("delta", Place(str(tmp_path / "t"))).contents.distinct_rows(["a b", "x.y"]))
    assert found == [{"a b": 0, "x.y": "0"}, {"a b": 0, "x.y": "2"}, {"a b": 1, "x.y": "5"}]


def test_a_changed_table_is_named_by_its_columns(spark: SparkSession, tmp_path: Path) -> None:
    place = Place(str(tmp_path / "t"))
    put_in_lake(Path(place.url), ROWS[:2])
    reader = TableRows(open_table("delta", place), TableSource(type="table", table="a/t"), ZONE)
    pinned = reader.pin(spark)
    reader.check_schema(spark, pinned, "flow")
    spark.sql(f"ALTER TABLE delta.`{place.url}` ADD COLUMNS (extra int)").collect()
    with pytest.raises(
        SchemaError, match=r"the pinned columns of a/t, found changes: extra is new \(int\)"
    ) as changed:
        reader.check_schema(spark, pinned, "flow")
    assert "schema_mode: merge` below `target`" in changed.value.message
    assert "query" not in changed.value.message, "a table of the lake takes none"
