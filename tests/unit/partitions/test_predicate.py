"""Which rows extents mean, checked by running the text in SQLite against a filter in Python."""

from __future__ import annotations

import itertools
import sqlite3
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import ConfigurationError
from partitions.predicate import NOTHING, Clause, Columns, apart, clauses, where
from partitions.window.extent import Extent, Unit

KINDS: dict[str, Any] = {"at": "whole", "u": "text", "v": "whole"}


class Plain:
    """SQLite's words; a window is compared as milliseconds."""

    def name(self, column: str) -> str:
        return f'"{column}"'

    def literal(self, value: Any) -> str:
        if isinstance(value, datetime):
            return str(int(value.timestamp() * 1000))
        return str(value) if isinstance(value, int) else "'" + str(value).replace("'", "''") + "'"

    def among(self, column: str, values: Any) -> str:
        return f"{self.name(column)} IN ({', '.join(map(self.literal, values))})"


WORDS = Plain()
COLUMNS = Columns({**KINDS, "at": "instant"}, "at", {"u": "u", "v": "v"})
UNITS: list[Unit] = [
    {},
    *[{"u": text} for text in ("a", "b'c", None)],
    *[{"u": text, "v": number} for text in ("a", None) for number in (1, None)],
]
moments = st.none() | st.integers(0, 9)


@st.composite
def extents(draw: st.DrawFn) -> list[Extent]:
    """Small ones, so that many touch and overlap."""
    lower, upper = draw(moments), draw(moments)
    units = tuple(draw(st.lists(st.sampled_from(UNITS), min_size=1, max_size=3)))
    rest = draw(extents()) if draw(st.booleans()) else []
    return [Extent(lower, upper, units), *rest]


ROWS = list(itertools.product([None, *range(10)], ["a", "b'c", "z", None], [1, 2, None]))


def _meant(row: tuple[Any, Any, Any], extent: Extent) -> bool:
    at, u, v = row
    if (extent.lower, extent.upper) != (None, None):
        if at is None:
            return False
        if not (extent.lower is None or extent.lower <= at) or not (
            extent.upper is None or at < extent.upper
        ):
            return False
    return any(all({"u": u, "v": v}[name] == value for name, value in unit.items()) for unit in extent.units)


@given(extents() | st.just([]))
def test_the_condition_keeps_the_rows_of_the_extents_and_no_others(extents: list[Extent]) -> None:
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE t (at, u, v)")
    database.executemany("INSERT INTO t VALUES (?, ?, ?)", ROWS)
    found = database.execute(f"SELECT * FROM t WHERE {where(extents, COLUMNS, WORDS)}").fetchall()
    assert found == [row for row in ROWS if any(_meant(row, extent) for extent in extents)]


@given(extents())
def test_pieces_that_are_asked_for_one_by_one_hold_each_instant_of_a_unit_once(extents: list[Extent]) -> None:
    pieces = apart(extents)
    assert all(len(piece.units) == 1 for piece in pieces)
    for unit, ms in itertools.product(UNITS, range(10)):
        wanted = any(unit in one.units and _holds(one, ms) for one in extents)
        assert sum(piece.units == (unit,) and _holds(piece, ms) for piece in pieces) == wanted


def _holds(extent: Extent, ms: int) -> bool:
    return (extent.lower is None or extent.lower <= ms) and (extent.upper is None or ms < extent.upper)


def test_ranges_that_touch_are_one_and_units_with_the_same_ranges_are_together() -> None:
    a, b, c = {"u": "a"}, {"u": "b"}, {"u": "c"}
    found = clauses([Extent(5, 9, (c,)), Extent(0, 5, (a, b)), Extent(5, 7, (b, a, a)), Extent(3, 3, (c,))])
    assert found == [Clause(((0, 7),), (a, b)), Clause(((5, 9),), (c,))]


def test_pieces_are_in_order_of_time_and_not_merged() -> None:
    a, b = {"u": "a"}, {"u": "b"}
    found = apart([Extent(5, 9, (a, b)), Extent(0, 6, (a,)), Extent(0, 6, (a,))])
    assert found == [Extent(0, 6, (a,)), Extent(6, 9, (a,)), Extent(5, 9, (b,))]


def test_the_text_is_the_same_however_extents_are_cut() -> None:
    units: tuple[Unit, ...] = ({"u": "a"}, {"u": None})
    whole = where([Extent(0, 4, units)], COLUMNS, WORDS)
    assert whole == """("at" >= 0 AND "at" < 4 AND (("u" IN ('a')) OR ("u" IS NULL)))"""
    assert where([Extent(2, 4, units), Extent(0, 2, units), Extent(1, 3, units)], COLUMNS, WORDS) == whole


def test_units_of_several_columns_are_compared_column_by_column() -> None:
    found = where([Extent(None, None, ({"u": "a", "v": 1}, {"u": "b", "v": None}))], COLUMNS, WORDS)
    assert found == """((("u" IN ('a') AND "v" IN (1)) OR ("u" IN ('b') AND "v" IS NULL)))"""


def test_no_extents_are_no_rows_and_one_without_bounds_and_units_is_all_rows() -> None:
    assert where([], COLUMNS, WORDS) == NOTHING
    assert where([Extent(4, 4, ({},))], COLUMNS, WORDS) == NOTHING
    assert where([Extent(None, None, ({},))], COLUMNS, WORDS) == "(1 = 1)"


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("instant", datetime(2024, 3, 30, 23, 30, tzinfo=UTC)),
        ("local", datetime.fromisoformat("2024-03-31T00:30:00")),
        ("day", date(2024, 3, 31)),
    ],
)
def test_a_bound_is_of_the_columns_type(kind: Any, expected: Any) -> None:
    columns = Columns({"at": kind}, "at", {}, ZoneInfo("Europe/Berlin"))
    assert columns.bound(1_711_841_400_000) == expected


@pytest.mark.parametrize(
    ("columns", "extent", "said"),
    [
        (Columns({}, None, {}), Extent(0, 1, ({},)), "expected window_column, or a query with"),
        (
            Columns({}, None, {}),
            Extent(None, None, ({"s": 1},)),
            r"expected a column for s in unit_columns, or \{unit\.s\}",
        ),
        (
            Columns({}, None, {}, elsewhere=frozenset({"start"})),
            Extent(0, 1, ({},)),
            r"or a query with \{start\} and \{end\}, found neither",
        ),
        (
            Columns(KINDS, None, {"v": "v"}),
            Extent(None, None, ({"v": "x1"},)),
            "unit v: expected a whole number, as the column v holds, found text 'x1'",
        ),
        (
            Columns(KINDS, None, {"u": "u"}),
            Extent(None, None, ({"u": 1.5},)),
            "unit u: expected text, as the column u holds, found float 1.5",
        ),
    ],
)
def test_what_no_condition_can_say_is_refused(columns: Columns, extent: Extent, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        where([extent], columns, WORDS)


def test_what_a_query_takes_care_of_itself_is_not_compared_again() -> None:
    columns = Columns(KINDS, None, {}, elsewhere=frozenset({"start", "end", "unit.s"}))
    assert where([Extent(0, 1, ({"s": 1},))], columns, WORDS) == "(1 = 1)"
