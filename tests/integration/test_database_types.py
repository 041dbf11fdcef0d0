"""Columns of every type as watermarks: their bounds are exact, or the column is refused before anything is begun."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, cast
from uuid import uuid4

import pytest

from partitions.column.predicates import ColumnRange, rows_in_ranges
from partitions.errors import PlanError
from resources.outcome import Step
from resources.sources.jdbc.source import JdbcRows
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.columns import Columns
from tests.support.databases import DatabaseRows, rows_of
from tests.support.feed import dies_after
from tests.support.mariadb import MariaDB

pytestmark = pytest.mark.postgres

NOW = datetime(2026, 6, 1, tzinfo=UTC)
LONG = "123456789012345678901234567890123456789012345.00001"
MICRO = tuple(f"'2026-03-29 02:30:00.00000{digit}'" for digit in (1, 2, 3))
"""In Berlin no such time exists."""

EXACT: dict[str, dict[str, tuple[str, ...]]] = {
    "postgresql": {
        "timestamptz": tuple(f"'2026-01-01 00:00:00.12345{digit}+05:30'" for digit in (6, 7, 8)),
        "timestamp": MICRO,
        "date": ("'1500-02-28'", "'2026-01-01'", "'9999-12-31'"),
        "numeric(38, 10)": tuple(f"1234567890123456789012345678.012345678{digit}" for digit in (7, 8, 9)),
        "numeric": ("1.1234567890123456789012", "1.1234567890123456789013", "1.1234567890123456789014"),
        "double precision": ("0.1", "0.30000000000000004", "1e300"),
        "bigint": ("-9223372036854775808", "9223372036854775806", "9223372036854775807"),
        "smallint": ("-1", "0", "1"),
        'varchar(9) COLLATE "C"': ("'Z'", "'a'", "'ä'"),
        "text": ("''", "'a'", "'a '"),
        "char(5)": ("'a'", "'b'", "'c'"),
    },
    "mariadb": {
        "timestamp(6) NULL": tuple(f"'2026-01-01 00:00:00.12345{digit}'" for digit in (6, 7, 8)),
        "datetime(6)": MICRO,
        "date": ("'1500-02-28'", "'2026-01-01'", "'9999-12-31'"),
        "decimal(38, 10)": tuple(f"1234567890123456789012345678.012345678{digit}" for digit in (7, 8, 9)),
        "double": ("0.1", "0.30000000000000004", "1e300"),
        "bigint unsigned": ("18446744073709551613", "18446744073709551614", "18446744073709551615"),
        "int unsigned": ("0", "4294967294", "4294967295"),
        "varchar(9) COLLATE utf8mb4_general_ci": ("'Z'", "'a'", "'ä'"),
        "varchar(9) CHARACTER SET latin1 COLLATE latin1_german1_ci": ("'z'", "'ä'", "'ö'"),
        "char(5)": ("'a'", "'b'", "'c'"),
        "enum('b', 'a', 'c')": ("'a'", "'b'", "'c'"),
        "year": ("0", "2026", "2155"),
        "tinyint(1)": ("-1", "1", "2"),
    },
}  # fmt: skip
REFUSED: dict[str, dict[str, str]] = {
    "postgresql": {
        "real": "of type real: its values have no exact decimal form",
        "numeric(50, 5)": "of type numeric.50,5.: Spark holds 38 digits",
        "uuid": "of type uuid, whose values have no order",
        "interval": "of type interval, whose values have no order",
        "time": "of type time, whose values have no order",
        "bytea": "of type bytea, whose values have no order",
        "jsonb": "of type jsonb, whose values have no order",
        "mood": "of a type of your own, whose values have no order",
        "int[]": "whose values have no order",
        "boolean": "true or false",
    },
    "mariadb": {
        "float": "of type float: its values have no exact decimal form",
        "decimal(60, 5)": "a decimal type that is too long: Spark holds 38 digits",
        "varbinary(5)": "of a binary type, whose values have no order",
        "blob": "of a binary type, whose values have no order",
        "time": "of type time, whose values have no order",
        "bit(8)": "of type bit, whose values have no order",
    },
}


@pytest.fixture(params=["postgres", "mariadb"])
def rows(request: pytest.FixtureRequest) -> DatabaseRows:
    return rows_of(cast("Postgres | MariaDB", request.getfixturevalue(request.param)))


def made(rows: DatabaseRows, *types: str, values: tuple[tuple[str, ...], ...] = ()) -> str:
    """Make a table with columns c0, c1, … of these types beside an id, with these rows."""
    name = f"types_{uuid4().hex[:8]}"
    columns = ", ".join(f"c{number} {type_}" for number, type_ in enumerate(types))
    rows.ask(f"CREATE TABLE {name} (id int, {columns})")
    for number, given in enumerate(values, 1):
        rows.ask(f"INSERT INTO {name} VALUES ({number}, {', '.join(given)})")
    return name


def flow_of(rows: DatabaseRows, folder: Path, engine: SparkEngine, table: str, column: str = "c0") -> Columns:
    by_column = {"type": "column", "columns": [column]}
    return rows.flow(folder, engine, source={"table": table}, watermark=by_column)


@pytest.mark.parametrize("indexed", [True, False])
def test_bounds_meet_the_very_values_of_each_type(rows: DatabaseRows, tmp_path: Path, indexed: bool) -> None:
    exact = EXACT[rows.scheme]
    table = made(rows, *exact, values=tuple(zip(*exact.values(), strict=True)))
    names = [f"c{number}" for number in range(len(exact))]
    for name in names if indexed else ():
        rows.ask(f"CREATE INDEX {table}_{name} ON {table} ({name})")
    flow = flow_of(rows, tmp_path, SparkEngine(), table)
    source = cast("JdbcRows", flow.feed.platform.source(flow.feed.dataflow))
    seen = source.observe(names, NOW)
    for name, type_ in zip(names, exact, strict=True):
        if indexed and seen.kinds[name] != "text":
            highest = seen.maxima[name]
        else:
            highest = source.highest(name, rows_in_ranges([ColumnRange(name, None, None)]))
        second = source.highest(
            name, rows_in_ranges([ColumnRange(name, None, highest, upper_inclusive=False)])
        )
        found = [
            source.holds_any(rows_in_ranges([ColumnRange(name, lower, upper, lower_inclusive=inclusive)]))
            for lower, upper, inclusive in (
                (highest, None, False), (highest, None, True), (second, highest, False), (None, second, False),
            )
        ]  # fmt: skip
        assert (type_, found) == (type_, [False, True, True, True])
        third = source.holds_any(
            rows_in_ranges([ColumnRange(name, second, highest, lower_inclusive=False, upper_inclusive=False)])
        )
        assert (type_, third) == (type_, False)


def test_values_are_loaded_as_they_are(rows: DatabaseRows, tmp_path: Path, engine: SparkEngine) -> None:
    exact = {
        name: values for name, values in EXACT[rows.scheme].items() if name not in ("numeric", "char(5)")
    }
    table = made(rows, *exact, values=tuple(zip(*exact.values(), strict=True)))
    flow = flow_of(rows, tmp_path, engine, table)
    flow.run()
    names = [f"c{number}" for number in range(len(exact))]
    expected = [
        tuple(map(_plain, row)) for row in rows.ask(f"SELECT {', '.join(names)} FROM {table} ORDER BY id")
    ]
    loaded = [tuple(map(_plain, row[1:])) for row in flow.feed.rows("id", *names)]
    assert loaded == expected


@pytest.mark.parametrize("indexed", [True, False])
def test_a_column_beyond_bounds_begins_nothing(rows: DatabaseRows, tmp_path: Path, indexed: bool) -> None:
    if rows.scheme == "postgresql" and not rows.ask("SELECT 1 FROM pg_type WHERE typname = 'mood'"):
        rows.ask("CREATE TYPE mood AS ENUM ('sad', 'ok')")
    refused = REFUSED[rows.scheme]
    table = made(rows, *refused)
    for number, (type_, why) in enumerate(refused.items()):
        if indexed and type_ not in ("blob", "jsonb"):
            rows.ask(f"CREATE INDEX {table}_{number} ON {table} (c{number})")
        flow = flow_of(rows, tmp_path / str(number), SparkEngine(), table, f"c{number}")
        with pytest.raises(
            PlanError,
            match=f"expected a column with times, dates, numbers or text, found c{number}, which is .*{why}",
        ):
            flow.run()
        assert (flow.feed.newest, flow.feed.open_intent) == (None, None)


def test_infinity_and_nan_of_databases_bound_nothing(postgres: Postgres, tmp_path: Path) -> None:
    rows = rows_of(postgres)
    table = made(
        rows, "timestamptz", "date", "numeric", "double precision", "timestamp",
        values=(
            ("'2026-01-01'", "'2026-01-01'", "1", "1", "'2026-01-01'"),
            ("'infinity'", "'infinity'", "'NaN'", "'NaN'", "'infinity'"),
            ("'-infinity'", "'-infinity'", "'-Infinity'", "'Infinity'", "'-infinity'"),
        ),
    )  # fmt: skip
    for name in ("c0", "c1", "c2", "c3", "c4"):
        rows.ask(f"CREATE INDEX {table}_{name} ON {table} ({name})")
    flow = flow_of(rows, tmp_path, SparkEngine(), table)
    source = cast("JdbcRows", flow.feed.platform.source(flow.feed.dataflow))
    maxima = source.observe(["c0", "c1", "c2", "c3", "c4"], NOW).maxima
    day = datetime(2026, 1, 1, tzinfo=UTC)
    assert maxima == {
        "c0": day,
        "c1": day.date(),
        "c2": Decimal(1),
        "c3": 1.0,
        "c4": day.replace(tzinfo=None),
    }
    assert not any(isinstance(value, float) and not math.isfinite(value) for value in maxima.values())


def test_instants_keep_their_microseconds(postgres: Postgres, tmp_path: Path, engine: SparkEngine) -> None:
    """Also in a zone that once had seconds."""
    moments = (
        "0001-01-01 00:00:00.000001", "1582-10-04 23:59:59.999999", "1799-12-31 23:59:59.999999", "1800-01-01 00:00:00",
        "1899-12-31 12:34:56.654321", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00", "2026-10-25 00:59:59.123457",
        "2199-12-31 23:59:59.999999", "2200-01-01 00:00:00.000001", "9999-12-31 23:59:59.999999",
    )  # fmt: skip
    rows = rows_of(postgres)
    table = made(rows, "timestamptz", values=tuple((f"'{moment}+00'",) for moment in moments))
    rows.ask(f"INSERT INTO {table} VALUES (0, NULL)")
    flow = flow_of(rows, tmp_path, engine, table, "id")
    flow.run()
    frame = engine.session().read.format("delta").load(str(flow.feed.table)).orderBy("id")
    found = [row[0] for row in frame.selectExpr("unix_micros(c0)").collect()]
    known = [row[0] for row in rows.ask(
        f"SELECT extract(epoch FROM c0)::numeric * 1000000 FROM {table} ORDER BY id"
    )]  # fmt: skip
    assert found == [None if value is None else int(value) for value in known]


@pytest.mark.parametrize("type_", ["datetime(6)", "timestamp(6) NULL", "date"])
def test_the_zero_date_is_no_highest_value(mariadb: MariaDB, tmp_path: Path, type_: str) -> None:
    rows = rows_of(mariadb)
    table = made(rows, type_)
    rows.ask(f"CREATE INDEX {table}_c0 ON {table} (c0)")
    with mariadb.session() as session, session.cursor() as cursor:
        cursor.execute("SET sql_mode = ''")
        cursor.execute(f"INSERT INTO {table} VALUES (1, '0000-00-00')")
        session.commit()
    flow = flow_of(rows, tmp_path, SparkEngine(), table)
    source = cast("JdbcRows", flow.feed.platform.source(flow.feed.dataflow))
    assert source.observe(["c0"], NOW).maxima == {"c0": None}
    assert flow.run().status == "nothing"


@pytest.mark.parametrize("value", ["0044-03-15 BC", "-infinity"])
def test_times_before_year_1_are_no_highest_value(postgres: Postgres, tmp_path: Path, value: str) -> None:
    rows = rows_of(postgres)
    rows.ask(f"INSERT INTO {rows.name} VALUES (1, '{value}', '')")
    flow = rows.flow(tmp_path, SparkEngine())
    source = cast("JdbcRows", flow.feed.platform.source(flow.feed.dataflow))
    assert source.observe(["at"], NOW).maxima == {"at": None}
    assert flow.run().status == "nothing"


@pytest.mark.parametrize("change", ["TYPE numeric(12, 4)", "TYPE text"])
def test_a_slice_that_was_begun_is_not_finished_with_a_column_that_changed_its_type(
    postgres: Postgres, tmp_path: Path, engine: SparkEngine, change: str
) -> None:
    """Its values would be rounded, or cast."""
    rows = rows_of(postgres)
    table = made(rows, "timestamptz", "numeric(10, 2)", values=(("'2026-01-01'", "1.25"),))
    flow = flow_of(rows, tmp_path, engine, table)
    with pytest.raises(KeyboardInterrupt):
        flow.feed.run(dies_after(Step.INTENT_PUT))
    rows.ask(f"ALTER TABLE {table} ALTER COLUMN c1 {change}")
    error = flow.fail()
    assert error.code == "schema"
    assert "c1 was decimal(10,2), is " in error.message
    assert not flow.feed.table.exists()
    rows.ask(f"ALTER TABLE {table} ALTER COLUMN c1 TYPE numeric(10, 2) USING c1::numeric")
    flow.run()
    assert flow.feed.rows("id", "c1") == [(1, Decimal("1.25"))]


@pytest.mark.parametrize("change", ["drop", "text", "flag"])
def test_a_vanished_or_retyped_column_stops_before_anything_begins(
    rows: DatabaseRows, tmp_path: Path, engine: SparkEngine, change: str
) -> None:
    rows.fill(2)
    flow = rows.flow(tmp_path, engine)
    flow.run()
    number = flow.feed.newest.number if flow.feed.newest else None
    rows.ask(f"ALTER TABLE {rows.name} DROP COLUMN at")
    if change != "drop":
        rows.ask(f"ALTER TABLE {rows.name} ADD COLUMN at {'varchar(20)' if change == 'text' else 'boolean'}")
    error = flow.fail()
    said = {
        "drop": "watermark.columns: expected columns of",
        "text": "found a column with text: its type has changed",
        "flag": "found at, which is true or false"
        if rows.scheme == "postgresql"
        else "found a column with a whole number: its type has changed",
    }[change]
    assert said in error.message
    assert error.exit_code in (1, 2)
    assert not error.transient
    assert (flow.feed.open_intent, flow.feed.newest and flow.feed.newest.number, flow.ids) == (
        None,
        number,
        [1, 2],
    )


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return (
            value.replace(tzinfo=None) if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)
        )
    return Decimal(value) if isinstance(value, int) else value
