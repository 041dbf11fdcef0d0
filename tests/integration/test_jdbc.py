"""What is a database's own: what it is asked, what its refusals say, what no zone of a machine changes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import psycopg
import pytest
from pyspark.sql import SparkSession

from partitions.column.predicates import ColumnRange
from partitions.errors import ConfigurationError, SchemaError, SourceError, SourceUnreachable
from partitions.sources import JdbcSource
from partitions.window.extent import Extent, Unit
from resources.connections import jdbc
from resources.connections.jdbc import JdbcConnection
from resources.sources.jdbc.source import JdbcRows
from resources.spark.connect_server import free_port
from scripts import postgres as pg
from tests.support.environment import clean_environment

pytestmark = pytest.mark.postgres

UTC = ZoneInfo("UTC")
CHECKOUT = Path(__file__).resolve().parents[2]
DAY = 86_400_000
ALL = [Extent(None, None, ({},))]


@pytest.fixture
def table(postgres: pg.Postgres) -> Iterator[str]:
    """Ten rows a day for ten days since the epoch, with an index on the time."""
    name = f"t_{uuid4().hex[:8]}"
    postgres.ask("CREATE TABLE {name} (id int, at timestamptz, sid text)", name=name)
    postgres.ask(
        "INSERT INTO {name} SELECT n, to_timestamp(n * 8640), 's' || n % 2 FROM generate_series(0, 99) n",
        name=name,
    )
    postgres.ask("CREATE INDEX ON {name} (at)", name=name)
    yield name
    postgres.ask("DROP TABLE {name} CASCADE", name=name)


def _connection(postgres: pg.Postgres, **named: str) -> JdbcConnection:
    given = {
        "port": str(postgres.port),
        "user": "postgres",
        "password": postgres.password,
        "db": "postgres",
    } | named
    return JdbcConnection.parse(
        f"jdbc:postgresql://127.0.0.1:{given['port']}/{given['db']}", given["user"], given["password"]
    )


def _reader(connection: JdbcConnection, zone: ZoneInfo = UTC, **source: Any) -> JdbcRows:
    return JdbcRows(connection, JdbcSource(type="jdbc", connection="erp", **source), zone)


def _rows(spark: SparkSession, reader: JdbcRows, extents: list[Extent]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = reader.read(spark, extents, reader.pin(spark)).toArrow().to_pylist()
    return rows


def test_extents_are_asked_of_the_database(spark: SparkSession, postgres: pg.Postgres, table: str) -> None:
    user = f"u_{uuid4().hex[:8]}"
    postgres.ask("CREATE ROLE {user} LOGIN PASSWORD 'sesame-open'", user=user)
    postgres.ask("ALTER ROLE {user} SET log_statement = 'all'", user=user)
    postgres.ask("GRANT SELECT ON {table} TO {user}", user=user, table=table)
    connection = _connection(postgres, user=user, password="sesame-open")
    reader = _reader(connection, table=table, window_column="at", unit_columns={"s": "sid"})
    found = _rows(spark, reader, [Extent(2 * DAY, 3 * DAY, ({"s": "s1"},))])
    assert [row["id"] for row in found] == [21, 23, 25, 27, 29]

    condition = (
        """WHERE ("at" >= TIMESTAMPTZ '1970-01-03 00:00:00.000000+00' AND "at" < TIMESTAMPTZ '1970-01-04 00:00:00.000000+00' """
        """AND "sid" = 's1' """
    )
    asked = [line for line in (postgres.folder / "log").read_text().splitlines() if condition in line]
    statement = asked[-1].partition(": ")[2].partition(": ")[2]
    assert statement.startswith("SELECT ")
    with psycopg.connect(postgres.url(), options="-c enable_seqscan=off") as asking:
        plan = "\n".join(row[0] for row in asking.execute(f"EXPLAIN {statement}"))
    assert "Index Cond: ((at >= '1970-01-03" in plan
    assert len(postgres.ask(statement)) == 5


def test_the_plan_shows_the_condition_and_no_secret(
    spark: SparkSession, postgres: pg.Postgres, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = _reader(_connection(postgres), table=table, window_column="at")
    reader.read(spark, [Extent(0, DAY, ({},))], reader.pin(spark)).explain("extended")
    plan = capsys.readouterr().out
    assert "TIMESTAMPTZ '1970-01-02 00:00:00.000000+00'" in plan
    assert "Filter" not in plan.replace("PushedFilters", "")
    assert postgres.password not in plan


def test_a_users_query_is_wrapped_whole(spark: SparkSession, postgres: pg.Postgres, table: str) -> None:
    query = f"with a as (select * from {table} where id < 5 or id > 95) -- ;\nselect id, at from a where id < 50 or id = 99;; -- end"
    reader = _reader(_connection(postgres), query=query, window_column="at")
    assert [row["id"] for row in _rows(spark, reader, [Extent(0, DAY, ({},))])] == [0, 1, 2, 3, 4]


def test_a_units_value_is_never_sql(spark: SparkSession, postgres: pg.Postgres, table: str) -> None:
    odd = ["'; drop table x; --", "s1' or '1'='1", "\\' or 1=1 --", "{start}", "$$", "s1"]
    units: tuple[Unit, ...] = tuple({"s": text} for text in odd)
    query = f"select id, sid, {{unit.s}} as asked, {{start:%Y-%m-%d}} as day from {table} where sid = {{unit.s}} and at >= {{start}} and at < {{end}}"
    reader = _reader(_connection(postgres), query=query)
    found = _rows(spark, reader, [Extent(0, DAY // 2, units), Extent(DAY // 2, DAY, units)])
    assert [(row["id"], row["asked"], row["day"]) for row in found] == [
        (n, "s1", "1970-01-01") for n in (1, 3, 5, 7, 9)
    ]
    assert len(postgres.ask("SELECT 1 FROM {table}", table=table)) == 100


def test_placeholders_are_times_of_the_definitions_zone(spark: SparkSession, postgres: pg.Postgres) -> None:
    query = "select {start}::timestamptz as at, {start}::timestamp as wall, {start}::date as day, {end:%d.%m. %H:%M} as text"
    reader = _reader(_connection(postgres), ZoneInfo("Europe/Berlin"), query=query)
    (row,) = _rows(spark, reader, [Extent(1_711_837_800_000, 1_711_848_600_000, ({},))])
    assert {name: str(value) for name, value in row.items()} == {
        "at": "2024-03-30 22:30:00+00:00",
        "wall": "2024-03-30 23:30:00",
        "day": "2024-03-30",
        "text": "31.03. 03:30",
    }


def test_a_query_reads_only_its_windows(spark: SparkSession, postgres: pg.Postgres, table: str) -> None:
    query = f"select * from {table} where at >= {{start}}"  # no end
    reader = _reader(_connection(postgres), query=query + " and {end} > {start}", window_column="at")
    found = _rows(spark, reader, [Extent(0, DAY, ({},)), Extent(DAY, 2 * DAY, ({},))])
    assert [row["id"] for row in found] == list(range(20))


@pytest.mark.parametrize(
    ("change", "said", "field"),
    [
        ("ADD COLUMN extra int", "extra is new (int)", "extra"),
        ("DROP COLUMN sid", "sid is missing (string)", "sid"),
        ("ALTER COLUMN id TYPE bigint", "id was int, is bigint", "id"),
        ("ALTER COLUMN at TYPE timestamp", "at was timestamp, is timestamp_ntz", "at"),
    ],
)
def test_a_changed_column_is_named(
    spark: SparkSession, postgres: pg.Postgres, table: str, change: str, said: str, field: str
) -> None:
    reader = _reader(_connection(postgres), table=f"public.{table}")
    pinned = reader.pin(spark)
    reader.check_schema(spark, pinned, "flow")
    postgres.ask(f"ALTER TABLE {{table}} {change}", table=table)
    with pytest.raises(SchemaError) as changed:
        reader.check_schema(spark, pinned, "flow")
    assert said in changed.value.message
    assert (
        "accept the changed definition by `strandline state accept flow --reason TEXT`"
        in changed.value.message
    )
    assert (changed.value.field, changed.value.reason) == (field, "incompatible_schema")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"table": "public.nope"}, r'relation "public.nope" does not exist'),
        ({"query": "selec 1"}, "syntax error"),
        ({"query": "select * from t where"}, "syntax error|does not exist"),
        ({"query": "select 1 / 0 as x"}, "division by zero"),
    ],
)
def test_what_the_database_says_against_a_query_is_the_error(
    spark: SparkSession, postgres: pg.Postgres, source: dict[str, Any], said: str
) -> None:
    with pytest.raises(SourceError, match=said) as refused:
        _reader(_connection(postgres), **source).pin(spark)
    assert not isinstance(refused.value, SourceUnreachable)
    assert "\n" not in refused.value.message


def test_errors_while_rows_are_read_are_the_readers(spark: SparkSession, postgres: pg.Postgres) -> None:
    reader = _reader(_connection(postgres), query="select 1 / n as x from generate_series(0, 3) n")
    frame = reader.read(spark, ALL, reader.pin(spark))
    with pytest.raises(Exception, match="division") as failed:
        frame.collect()
    told = reader.failure(failed.value)
    assert isinstance(told, SourceError)
    assert "found: ERROR: division by zero." in str(told)
    assert reader.failure(ValueError("x")) is None


def test_wrong_credentials_are_no_outage(spark: SparkSession, postgres: pg.Postgres) -> None:
    with pytest.raises(
        SourceError, match=r"expected access, found: .*password authentication failed"
    ) as refused:
        _reader(_connection(postgres, password="wrong-sesame"), table="t").pin(spark)
    assert not refused.value.transient
    assert "wrong-sesame" not in refused.value.message
    assert refused.value.__cause__ is None


def test_a_database_that_does_not_answer_may_answer_later(spark: SparkSession, postgres: pg.Postgres) -> None:
    with pytest.raises(SourceUnreachable, match=r"expected an answer, found: .*127") as silent:
        _reader(_connection(postgres, port=str(free_port())), table="t").pin(spark)
    assert silent.value.transient


def test_a_missing_driver_is_named(
    spark: SparkSession, postgres: pg.Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(jdbc._OPTIONS["postgresql"], "driver", "org.postgresql.DriverOfAnotherServer")
    reader = _reader(_connection(postgres), query="SELECT 1 AS id, now() AS at", window_column="at")
    pinned = reader.pin(spark)
    with pytest.raises(
        SourceError, match=r"expected its driver in Spark, found none.*org\.postgresql:postgresql"
    ):
        reader.read(spark, [Extent(0, 1, ({},))], pinned)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            {"window_column": "AT"},
            r"source.window_column: .* has id, at, sid; found AT \(did you mean at\?\)",
        ),
        ({"window_column": "sid"}, "with a timestamp with zone or .* or a date, found sid, which is string"),
        ({"unit_columns": {"s": "side"}}, r"source.unit_columns.s: .* found side \(did you mean sid\?\)"),
    ],
)
def test_a_column_that_cannot_tell_windows_or_units_is_refused(
    spark: SparkSession, postgres: pg.Postgres, table: str, source: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigurationError, match=said):
        _reader(_connection(postgres), table=table, **source).pin(spark)


@pytest.mark.full
def test_embedded_spark_reads_times_of_skipped_hours(postgres: pg.Postgres, tmp_path: Path) -> None:
    """In Berlin 02:30 of this day is no time, and Java's classes make it 03:30."""
    query = (
        "select '2024-03-31 02:30:00.123456'::timestamp as wall, '2024-03-31 01:30:00.5+00'::timestamptz as at, '1500-01-01'::date as day,"
        " '1500-01-01 00:00+00'::timestamptz as old"
    )
    code = f"""
import json
from zoneinfo import ZoneInfo
from partitions.sources import JdbcSource
from partitions.window.extent import Extent
from resources.connections.jdbc import JdbcConnection
from resources.sources.jdbc.source import JdbcRows
from resources.spark.engine import SparkEngine

connection = JdbcConnection.parse("jdbc:postgresql://127.0.0.1:{postgres.port}/postgres", "postgres", {postgres.password!r})
conf = {{"spark.driver.extraJavaOptions": "-Duser.timezone=Europe/Berlin -XX:TieredStopAtLevel=1"}}
spark = SparkEngine("local[1]", conf=conf).with_places([connection]).session()
spark.conf.set("spark.sql.session.timeZone", "America/New_York")
reader = JdbcRows(connection, JdbcSource(type="jdbc", connection="erp", query={query!r}, window_column="wall"), ZoneInfo("UTC"))
frame = reader.read(spark, [Extent(1711852200000, 1711852201000, ({{}},))], reader.pin(spark))
spark.conf.set("spark.sql.session.timeZone", "UTC")
print("\\nfound" + json.dumps([list(map(str, row)) for row in frame.selectExpr(*[f"CAST({{name}} AS STRING)" for name in frame.columns]).collect()]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=clean_environment() | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("found")]
    assert json.loads(line.removeprefix("found")) == [
        ["2024-03-31 02:30:00.123456", "2024-03-31 01:30:00.5", "1500-01-01", "1500-01-01 00:00:00"]
    ]


@pytest.mark.parametrize("type_", ["timestamptz", "timestamp", "date", "int", "bigint"])
def test_a_long_range_is_cut_by_statistics_not_a_walk_of_the_index(postgres: pg.Postgres, type_: str) -> None:
    name = f"t_{uuid4().hex[:8]}"
    value = {
        "timestamptz": "timestamptz '2026-01-01 00:00:00+00' + n * interval '1 second'",
        "timestamp": "timestamp '2026-01-01 00:00:00' + n * interval '1 second'",
        "date": "date '1900-01-01' + n",
    }.get(type_, "n")
    postgres.ask("CREATE TABLE {name} (n int, v " + type_ + ") WITH (autovacuum_enabled = false)", name=name)
    postgres.ask("INSERT INTO {name} SELECT n, " + value + " FROM generate_series(1, 20000) n", name=name)
    if type_.startswith("timestamp"):
        postgres.ask(
            "INSERT INTO {name} VALUES (0, '-infinity'), (20001, 'infinity'), (20002, NULL)", name=name
        )
    postgres.ask("CREATE INDEX ON {name} (v)", name=name)
    postgres.ask("ANALYZE {name}", name=name)
    # Rows since then are below a tenth: the walk goes on behind the histogram.
    postgres.ask("INSERT INTO {name} SELECT n, " + value + " FROM generate_series(20003, 21500) n", name=name)
    reader = JdbcRows(
        _connection(postgres), JdbcSource(type="jdbc", connection="erp", table=name), UTC, walked_rows=2000
    )
    whole = reader.observe(["v"], datetime.now(UTC)).maxima["v"]
    cuts = list(reader.cuts(ColumnRange("v", None, whole), 500, 1000))
    ends = _ends(postgres, name, type_, cuts)
    assert ends[:4] == [500, 1000, 1500, 2000] or ends[:4] == [501, 1001, 1501, 2001], ends[:4]
    sizes = [high - low for low, high in pairwise(ends)]
    assert (len(sizes) > 36, min(sizes) > 250, max(sizes) < 1000) == (True, True, True), sizes
    few = list(reader.cuts(ColumnRange("v", None, whole), 500, 7))
    assert few == cuts[:7]
    postgres.ask(
        "DELETE FROM {name} WHERE n % 2 = 0; SELECT pg_stat_force_next_flush()", name=name
    )  # statistics are old now
    walked = list(reader.cuts(ColumnRange("v", None, whole), 500, 1000))
    ends = _ends(postgres, name, type_, walked)
    assert {high - low for low, high in pairwise(ends)} == {500}
    postgres.ask("DROP TABLE {name}", name=name)


def _ends(postgres: pg.Postgres, name: str, type_: str, cuts: list[Any]) -> list[int]:
    """How many rows lie up to each cut."""
    count = (
        "SELECT count(*) FILTER (WHERE v <= cut) FROM {name}, unnest(%s::"
        + type_
        + "[]) AS cut GROUP BY cut ORDER BY cut"
    )
    return [rows for (rows,) in postgres.ask(count, cuts, name=name)]
