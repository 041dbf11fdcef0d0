"""What a predicate's SQL says, checked by running it in SQLite against the evaluation in Python."""

from __future__ import annotations

import itertools
import sqlite3
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.predicate import (
    EVERYTHING,
    NOTHING,
    AllOf,
    Among,
    AnyOf,
    Between,
    HasValue,
    Predicate,
    matches,
)
from resources.dialects import DIALECTS
from resources.dialects.arrow import arrow_expression
from resources.dialects.dialect import SqlSyntax
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK


class _Sqlite(SqlSyntax):
    def name(self, column: str) -> str:
        return f'"{column}"'

    def text(self, value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    def instant(self, value: datetime) -> str:
        raise AssertionError(value)


NUMBERS, TEXTS = (None, 1, 2, 3), (None, "a", "b'c", "z")
ROWS = [{"a": number, "b": text} for number, text in itertools.product(NUMBERS, TEXTS)]
COLUMNS = {"a": NUMBERS, "b": TEXTS}


@st.composite
def _leaves(draw: st.DrawFn) -> Predicate:
    column = draw(st.sampled_from(sorted(COLUMNS)))
    value = st.sampled_from(COLUMNS[column])
    if draw(st.integers(0, 4)) == 0:
        return HasValue(column)
    if draw(st.booleans()):
        return Among(column, tuple(draw(st.lists(value, unique=True, max_size=3))))
    lower, upper = draw(st.tuples(value, value).filter(any))
    return Between(column, lower, upper, draw(st.booleans()), draw(st.booleans()))


def _branches(parts: st.SearchStrategy[Predicate]) -> st.SearchStrategy[Predicate]:
    several = st.lists(parts, max_size=3).map(tuple)
    return several.map(AnyOf) | several.map(AllOf)


@given(st.recursive(_leaves(), _branches, max_leaves=8))
def test_the_condition_keeps_exactly_the_rows_that_match(predicate: Predicate) -> None:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (a INTEGER, b TEXT)")
    database.executemany("INSERT INTO t VALUES (:a, :b)", ROWS)
    kept = database.execute(f"SELECT * FROM t WHERE {predicate_sql(predicate, _Sqlite())}").fetchall()
    assert kept == [tuple(row.values()) for row in ROWS if matches(predicate, row)]


@given(st.recursive(_leaves(), _branches, max_leaves=8))
def test_the_expression_of_arrow_keeps_exactly_the_rows_that_match(predicate: Predicate) -> None:
    table = pa.Table.from_pylist(ROWS)
    kept = table.filter(arrow_expression(predicate, table.schema)).to_pylist()
    assert kept == [row for row in ROWS if matches(predicate, row)]


def test_arrow_compares_bytes_microseconds_and_decimals_exactly() -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    rows = {
        "word": ["Z", "a", "ä", "𝄞"],
        "at": pa.array(
            [noon + timedelta(microseconds=number) for number in range(4)], pa.timestamp("us", "UTC")
        ),
        "amount": pa.array([Decimal(number) / 100 for number in range(4)], pa.decimal128(20, 2)),
    }
    third = [
        Between("word", "ä", "𝄞"),
        Between("at", noon + timedelta(microseconds=2), noon + timedelta(microseconds=3)),
    ]
    third.append(Between("amount", Decimal("0.015"), Decimal("0.03")))
    for between in third:
        table = pa.table(rows)
        assert table.filter(arrow_expression(between, table.schema)).column("word").to_pylist() == ["ä"]


@pytest.mark.parametrize("bound", [5, Decimal("5.0000000000000000001"), 10**30, -(10**30), Decimal("1E+37")])
def test_a_bound_that_a_decimal_column_cannot_hold_is_compared_with_it_in_arrow(bound: int | Decimal) -> None:
    values = [None, *(Decimal(text) for text in ("-7", "5", "99999999999999999999.999999999999999999"))]
    table = pa.table({"v": pa.array(values, pa.decimal128(38, 18))})
    for predicate in (Between("v", bound, None), Between("v", None, bound), Among("v", (bound, None))):
        expected = [value for value in values if matches(predicate, {"v": value})]
        assert table.filter(arrow_expression(predicate, table.schema)).column("v").to_pylist() == expected


_TIME = Between("at", datetime(2024, 1, 1, tzinfo=UTC), None)


@pytest.mark.parametrize(
    ("predicate", "condition"),
    [
        (EVERYTHING, "1 = 1"),
        (NOTHING, "1 = 0"),
        (Among("u", ("a", "b")), "`u` IN ('a', 'b')"),
        (Among("u", ("a", None)), "((`u` = 'a') OR (`u` IS NULL))"),
        (Among("u", ()), "1 = 0"),
        (_TIME, "`at` >= TIMESTAMP_LTZ '2024-01-01 00:00:00.000000+00:00'"),
        (Between("n", 1, 2, lower_inclusive=False, upper_inclusive=True), "`n` > 1 AND `n` <= 2"),
        (AnyOf((EVERYTHING,)), "(1 = 1)"),
        (
            AnyOf((AllOf((Between("n", 1, 2), Among("u", ("a", None)))), Among("u", ("b",)))),
            "(`n` >= 1 AND `n` < 2 AND ((`u` = 'a') OR (`u` IS NULL))) OR (`u` = 'b')",
        ),
        (
            AnyOf((AnyOf((AllOf((Among("u", ("a",)), Among("n", (1,)))), Among("n", (None,)))),)),
            "(((`u` = 'a' AND `n` = 1) OR (`n` IS NULL)))",
        ),
    ],
)
def test_a_predicate_in_the_sql_of_spark(predicate: Predicate, condition: str) -> None:
    assert predicate_sql(predicate, SPARK) == condition


def test_mariadb_compares_every_text_of_a_predicate_by_bytes() -> None:
    assert "AS BINARY) IN (" in predicate_sql(AllOf((Among("u", ("a", "b")),)), DIALECTS["mariadb"])
