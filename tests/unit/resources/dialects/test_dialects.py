from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import DataType, DateType, StructField, StructType, TimestampNTZType, TimestampType

from partitions.errors import PlanError
from partitions.instants import milliseconds, zone_of
from partitions.local_time import earliest_instant, latest_instant
from partitions.predicate import Among, matches
from partitions.sources import JdbcSource
from partitions.sources.database_types import ColumnType
from partitions.window.extent import Extent
from partitions.window.predicates import ExtentColumns, extents_predicate
from resources.dialects import DIALECTS
from resources.dialects.dialect import SqlSyntax
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.sources.jdbc.questions import Questions
from resources.sources.jdbc.row_queries import RowQueries
from tests.unit.partitions.test_ten_zones import FORMS, changes, moments, stretches, value

POSTGRESQL, MARIADB = DIALECTS["postgresql"], DIALECTS["mariadb"]
AT = datetime(2024, 1, 31, 10, 0, 0, 1, tzinfo=UTC)
WALL = AT.replace(tzinfo=None)


@pytest.mark.parametrize(
    ("value", "postgresql", "mariadb", "spark"),
    [
        (None, "NULL", "NULL", "NULL"),
        (True, "TRUE", "TRUE", "TRUE"),
        (-5, "-5", "-5", "-5"),
        (2**70, f"{2**70}", f"{2**70}", f"{2**70}BD"),
        (1.5, "1.5", "1.5E0", "1.5D"),
        (1e300, "1e+300", "1e+300", "1e+300D"),
        (Decimal("1.50"), "1.50", "1.50", "1.50BD"),
        (Decimal("1E+5"), "100000", "100000", "100000BD"),
        ("x", "'x'", "_utf8mb4'x'", "'x'"),
        ("", "''", "_utf8mb4''", "''"),
        ("it's", "'it''s'", "_utf8mb4 X'69742773'", r"'it\'s'"),
        ("a\\", "E'a\\\\'", "_utf8mb4 X'615c'", r"'a\\'"),
        ("\\'", "E'\\\\'''", "_utf8mb4 X'5c27'", r"'\\\''"),
        ("ü\n", "'ü\n'", "_utf8mb4 X'c3bc0a'", "'ü\n'"),
        (date(2024, 1, 31), "DATE '2024-01-31'", "DATE '2024-01-31'", "DATE '2024-01-31'"),
        (AT, "TIMESTAMPTZ '2024-01-31 10:00:00.000001+00'", "TIMESTAMP '2024-01-31 10:00:00.000001'", "TIMESTAMP_LTZ '2024-01-31 10:00:00.000001+00:00'"),
        (WALL, "TIMESTAMP '2024-01-31 10:00:00.000001'", "TIMESTAMP '2024-01-31 10:00:00.000001'", "TIMESTAMP_NTZ '2024-01-31 10:00:00.000001'"),
    ],
)  # fmt: skip
def test_a_value_is_a_literal_of_its_type(value: Any, postgresql: str, mariadb: str, spark: str) -> None:
    assert [words.literal(value) for words in (POSTGRESQL, MARIADB, SPARK)] == [postgresql, mariadb, spark]


@pytest.mark.parametrize(
    ("words", "expected"), [(POSTGRESQL, '"a""b`c.d"'), (MARIADB, '`a"b``c.d`'), (SPARK, '`a"b``c.d`')]
)
def test_a_name_is_quoted_with_its_quotes_doubled(words: SqlSyntax, expected: str) -> None:
    assert words.name('a"b`c.d') == expected


def test_mariadb_compares_texts_by_bytes_too() -> None:
    assert MARIADB.among("a", [1, 2]) == "`a` IN (1, 2)"
    assert MARIADB.among("a", ["x"]) == (
        "`a` = _utf8mb4'x' AND CAST(CONVERT(`a` USING utf8mb4) AS BINARY) IN (CAST(_utf8mb4'x' AS BINARY))"
    )


def test_a_query_for_mariadb_has_its_names_and_literals() -> None:
    from pyspark.sql.types import IntegerType, StringType, StructField, StructType, TimestampType

    source = JdbcSource(
        type="jdbc", connection="erp", table="shop.orders", window_column="at", unit_columns={"s": "sid"}
    )
    schema = StructType(
        [
            StructField("id", IntegerType()),
            StructField("at", TimestampType()),
            StructField("sid", StringType()),
        ]
    )
    query = RowQueries(source, MARIADB, UTC)
    assert Questions(source, MARIADB, UTC).columns() == "SELECT * FROM `shop`.`orders` WHERE 1 = 0"
    types = {
        "id": ColumnType("integer"),
        "at": ColumnType("timestamp", "text"),
        "sid": ColumnType("string", "text"),
    }
    assert query.rows([Extent(0, 1000, ({"s": None},))], schema, types) == (
        "SELECT `id`, CAST(`at` AS CHAR) AS `at`, CAST(`sid` AS CHAR) AS `sid` FROM `shop`.`orders`"
        " WHERE (`at` >= TIMESTAMP '1970-01-01 00:00:00.000000' AND `at` < TIMESTAMP '1970-01-01 00:00:01.000000' AND `sid` IS NULL)"
    )


def test_placeholders_of_a_query_for_mariadb_are_local_times() -> None:
    query = RowQueries(
        JdbcSource(type="jdbc", connection="e", query="select {start}, {end:%d.%m.}, {unit.a};"), MARIADB, UTC
    )
    assert query.rows([Extent(0, 86_400_000, ({"a": "b"},))], StructType([]), {}).splitlines()[1] == (
        "select '1970-01-01 00:00:00.000', _utf8mb4'02.01.', _utf8mb4'b'"
    )


def test_a_query_asks_for_more_if_the_form_of_a_placeholder_cannot_say_an_end() -> None:
    text = "select * from t where d < {end:%Y-%m-%d}"
    bare = JdbcSource(type="jdbc", connection="e", query=text)
    extent = Extent(0, 86_400_001, ({},))
    with pytest.raises(PlanError, match=r"that can write 1970-01-02T00:00:00\.001"):
        RowQueries(bare, POSTGRESQL, UTC).rows([extent], StructType([]), {})
    filtered = RowQueries(bare.model_copy(update={"window_column": "at"}), POSTGRESQL, UTC)
    schema = StructType([StructField("at", TimestampType())])
    assert "where d < '1970-01-03'" in filtered.rows(
        [extent], schema, {"at": ColumnType("timestamp", "microseconds")}
    )


@pytest.mark.parametrize(
    ("dialect", "form", "column", "zone", "wanted"),
    [
        # The session's zone is UTC: beside an instant the database takes a text without an offset for a time in UTC.
        (MARIADB, "", TimestampType(), "America/New_York", ("2026-01-01 00:00:00.000", "2026-01-02 05:00:00.000")),
        (MARIADB, "", TimestampType(), "Asia/Tokyo", ("2025-12-31 15:00:00.000", "2026-01-02 00:00:00.000")),
        (MARIADB, "", TimestampNTZType(), "Asia/Tokyo", ("2026-01-01 00:00:00.000", "2026-01-02 00:00:00.000")),
        (POSTGRESQL, ":%Y-%m-%d %H:%M", TimestampType(), "Asia/Tokyo", ("2025-12-31 15:00", "2026-01-02 00:00")),
        (POSTGRESQL, ":%Y-%m-%d %H:%M%z", TimestampType(), "Asia/Tokyo", ("2026-01-01 00:00+0900", "2026-01-02 00:00+0900")),
        (POSTGRESQL, ":%Y-%m-%d", TimestampType(), "Asia/Tokyo", ("2025-12-31", "2026-01-02")),
        (POSTGRESQL, ":%Y-%m-%d", TimestampType(), "America/New_York", ("2026-01-01", "2026-01-03")),
        (POSTGRESQL, ":%Y-%m-%d", DateType(), "Asia/Tokyo", ("2026-01-01", "2026-01-02")),
        (POSTGRESQL, "", TimestampType(), "Asia/Tokyo", ("2026-01-01T00:00:00.000+09:00", "2026-01-02T00:00:00.000+09:00")),
    ],
)  # fmt: skip
def test_a_local_time_of_a_query_is_far_enough_out_for_instants_in_utc_too(
    dialect: Any, form: str, column: DataType, zone: str, wanted: tuple[str, str]
) -> None:
    text = f"select * from t where at >= {{start{form}}} and at < {{end{form}}}"
    source = JdbcSource(type="jdbc", connection="e", query=text, window_column="at")
    start, end = (milliseconds(datetime(2026, 1, day, tzinfo=zone_of(zone))) for day in (1, 2))
    rows = RowQueries(source, dialect, zone_of(zone)).rows(
        [Extent(start, end, ({},))],
        StructType([StructField("at", column)]),
        {"at": ColumnType("timestamp", "text")},
    )
    asked = rows.splitlines()[1]
    assert tuple(part.split("'")[0] for part in asked.split("'")[1::2]) == wanted


_TYPES: dict[Any, DataType] = {"instant": TimestampType(), "local": TimestampNTZType(), "day": DateType()}


def _beside_an_instant(at: datetime, said: datetime, zone: tzinfo) -> tuple[Any, Any]:
    """The database takes a text without an offset for a time in its session's zone, which is UTC."""
    return at, said if said.tzinfo else said.replace(tzinfo=UTC)


def _locally(at: datetime, said: datetime, zone: tzinfo) -> tuple[Any, Any]:
    """The query compares local times; an offset counts for nothing there."""
    return at.astimezone(zone).replace(tzinfo=None, fold=0), said.replace(tzinfo=None)


def _in_the_zone(reading: Callable[..., datetime]) -> Callable[..., tuple[Any, Any]]:
    """The query makes an instant of a local time."""
    return lambda at, said, zone: (at, said if said.tzinfo else reading(said, zone))


def _by_day(at: datetime, said: datetime, zone: tzinfo) -> tuple[Any, Any]:
    """The column is one of days, and PostgreSQL takes of a text its day alone."""
    return at.astimezone(zone).date(), said.date()


def _said(literal: str) -> datetime:
    for form in FORMS:
        try:
            return datetime.strptime(literal, form)  # noqa: DTZ007 - local times
        except ValueError:
            continue
    return datetime.fromisoformat(literal)


@pytest.mark.parametrize(
    ("read", "kinds"),
    [
        (_beside_an_instant, ["instant"]),
        (_by_day, ["day"]),
        (_locally, list(_TYPES)),
        (_in_the_zone(earliest_instant), list(_TYPES)),
        (_in_the_zone(latest_instant), list(_TYPES)),
    ],
    ids=["instant", "day", "local time", "first pass", "second pass"],
)
@settings(max_examples=60, deadline=None)
@given(
    st.data(),
    changes(),
    st.sampled_from(["", *(f":{form}" for form in FORMS)]),
    st.sampled_from([POSTGRESQL, MARIADB]),
)
def test_stretches_of_a_query_that_touch_read_each_row_once_whatever_it_compares(
    read: Any, kinds: list[Any], data: Any, where: tuple[tzinfo, datetime], form: str, dialect: Any
) -> None:
    (zone, change), kind = where, data.draw(st.sampled_from(kinds))
    rows = data.draw(st.lists(moments(change), min_size=1, max_size=8))
    text = f"select * from t where at >= {{start{form}}} and at < {{end{form}}}"
    source = JdbcSource(type="jdbc", connection="e", query=text, window_column="at")
    query, schema = RowQueries(source, dialect, zone), StructType([StructField("at", _TYPES[kind])])
    columns = ExtentColumns({"at": kind}, "at", {}, zone, source.placeholders)
    loaded: Counter[int] = Counter()
    for extent in stretches(change, data.draw(st.lists(moments(change), min_size=1, max_size=8))):
        asked = query.rows([extent], schema, {"at": ColumnType("timestamp", "text")}).splitlines()[1]
        start, end = map(_said, re.findall(r"'([^']*)'", asked))
        wanted = extents_predicate([extent], columns)
        for number, at in enumerate(rows):
            (from_, lower), (to, upper) = read(at, start, zone), read(at, end, zone)
            if lower <= from_ and to < upper and matches(wanted, {"at": value(at, kind, zone)}):
                loaded[number] += 1
    assert loaded == Counter(range(len(rows)))


def test_plain_literals_are_read_back_as_they_were() -> None:
    """Doubled quotes are standard SQL, which another database reads alike."""
    texts = ["", "'", "''", "it's", "a\nb", "%", '"', ";--"]
    for text in texts:
        found = sqlite3.connect(":memory:").execute(f"SELECT {POSTGRESQL.literal(text)}").fetchone()
        assert found == (text,)


def test_postgresql_tells_texts_apart_by_bytes_in_any_collation() -> None:
    condition = predicate_sql(Among("unit", ("a", "b'")), POSTGRESQL)
    types = "pg_typeof(\"unit\")::text NOT IN ('text', 'character varying', 'citext')"
    assert condition == (
        f"\"unit\" IN ('a', 'b''') AND ({types} OR \"unit\"::text COLLATE \"C\" IN ('a', 'b'''))"
    )
    assert predicate_sql(Among("unit", (1,)), POSTGRESQL) == '"unit" = 1'
