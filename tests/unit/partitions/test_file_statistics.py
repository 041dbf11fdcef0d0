"""Statistics of a file never say more of its rows than a look at each of them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.file_statistics import ColumnStatistics, FileMatch, match_statistics
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

COLUMNS = ("a", "b")
VALUES = st.none() | st.integers(0, 6)
ROWS = st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, VALUES)), min_size=1, max_size=5)


def _between(column: str, lower: int | None, upper: int | None, ends: tuple[bool, bool]) -> Predicate:
    return EVERYTHING if lower is upper is None else Between(column, lower, upper, *ends)


LEAVES = (
    st.sampled_from([HasValue(column) for column in COLUMNS])
    | st.builds(Among, st.sampled_from(COLUMNS), st.lists(VALUES, max_size=3, unique=True).map(tuple))
    | st.builds(_between, st.sampled_from(COLUMNS), VALUES, VALUES, st.tuples(st.booleans(), st.booleans()))
)
PREDICATES: st.SearchStrategy[Predicate] = st.recursive(
    LEAVES,
    lambda part: (
        st.lists(part, max_size=3).map(tuple).map(AnyOf) | st.lists(part, max_size=3).map(tuple).map(AllOf)
    ),
    max_leaves=5,
)


def _exact(values: list[int | None]) -> ColumnStatistics:
    there = [value for value in values if value is not None]
    return ColumnStatistics(min(there, default=None), max(there, default=None), None in values, bool(there))


@st.composite
def _less_known(draw: st.DrawFn, extent: ColumnStatistics) -> ColumnStatistics:
    """The same, with parts that are not known, and bounds that are wider."""
    lower, upper = extent.lower, extent.upper
    if draw(st.booleans()):
        lower = None if lower is None or draw(st.booleans()) else lower - 1
    if draw(st.booleans()):
        upper = None if upper is None or draw(st.booleans()) else upper + 1
    return ColumnStatistics(
        lower,
        upper,
        draw(st.sampled_from((extent.has_nulls, None))),
        draw(st.sampled_from((extent.has_values, None))),
    )


@given(st.data(), ROWS, PREDICATES)
def test_what_statistics_say_is_true_of_every_row(
    data: st.DataObject, rows: list[dict[str, int | None]], predicate: Predicate
) -> None:
    extents = {column: _exact([row[column] for row in rows]) for column in COLUMNS}
    if data.draw(st.booleans()):
        extents = {column: data.draw(_less_known(extent)) for column, extent in extents.items()}
        extents = {column: extent for column, extent in extents.items() if data.draw(st.booleans())}
    said = match_statistics(predicate, extents)
    each = [matches(predicate, row) for row in rows]
    assert said is not FileMatch.ALL or all(each)
    assert said is not FileMatch.NONE or not any(each)


def test_a_file_of_one_value_is_known_whole() -> None:
    extents = {"unit": ColumnStatistics("a", "a", has_nulls=False, has_values=True)}
    assert match_statistics(Among("unit", ("a", "b")), extents) is FileMatch.ALL
    assert match_statistics(Among("unit", ("b",)), extents) is FileMatch.NONE


def test_a_file_within_a_range_matches_whole_and_beside_it_not_at_all() -> None:
    extents = {"n": ColumnStatistics(3, 7, has_nulls=False, has_values=True)}
    assert match_statistics(Between("n", 3, 8), extents) is FileMatch.ALL
    assert match_statistics(Between("n", 3, 7), extents) is FileMatch.UNKNOWN
    assert match_statistics(Between("n", 7, 9, lower_inclusive=False), extents) is FileMatch.NONE
    assert match_statistics(Between("n", 8, None), extents) is FileMatch.NONE


def test_rows_without_a_value_are_never_taken_for_a_match() -> None:
    extents = {"n": ColumnStatistics(3, 7, has_nulls=None, has_values=True)}
    assert match_statistics(Between("n", 0, 9), extents) is FileMatch.UNKNOWN
    assert match_statistics(Between("n", 8, 9), extents) is FileMatch.NONE
    assert match_statistics(Among("n", (None,)), {"n": ColumnStatistics(has_values=False)}) is FileMatch.ALL


def test_statistics_of_another_type_say_nothing() -> None:
    extents = {"t": ColumnStatistics(date(2026, 1, 1), date(2026, 1, 2), has_nulls=False, has_values=True)}
    assert (
        match_statistics(Between("t", datetime(2026, 1, 3, tzinfo=UTC), None), extents) is FileMatch.UNKNOWN
    )


def test_a_column_that_nothing_is_known_of_says_nothing() -> None:
    assert match_statistics(Among("n", (1,)), {}) is FileMatch.UNKNOWN
    assert (match_statistics(EVERYTHING, {}), match_statistics(NOTHING, {})) == (
        FileMatch.ALL,
        FileMatch.NONE,
    )


@pytest.mark.parametrize(
    ("there", "asked"),
    [
        ("1", 1),
        (1, "1"),
        (0.5, Decimal("0.5")),
        (True, "true"),
        (True, 1),
        ("a", b"a"),
        (date(2026, 1, 1), "2026-01-01"),
        (date(2026, 1, 1), datetime(2026, 1, 1)),  # noqa: DTZ001
        (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1)),  # noqa: DTZ001
        (datetime(2026, 1, 1), date(2026, 1, 1)),  # noqa: DTZ001
    ],
)
def test_one_value_does_not_know_what_an_engine_may_convert(there: object, asked: object) -> None:
    extents = {"a": ColumnStatistics(there, there, has_nulls=False, has_values=True)}
    assert match_statistics(Among("a", (asked,)), extents) is FileMatch.UNKNOWN
    assert match_statistics(Between("a", asked, asked, True, True), extents) is FileMatch.UNKNOWN


def test_numbers_and_decimals_are_compared_as_numbers() -> None:
    extents = {"a": ColumnStatistics(Decimal("1.00"), Decimal("1.00"), has_nulls=False, has_values=True)}
    assert match_statistics(Among("a", (1,)), extents) is FileMatch.ALL
    assert match_statistics(Among("a", (2,)), extents) is FileMatch.NONE


def test_values_of_several_kinds_and_those_without_an_order_say_nothing() -> None:
    extents = {"a": ColumnStatistics(3, 3, has_nulls=False, has_values=True)}
    assert match_statistics(Among("a", (3, "3")), extents) is FileMatch.UNKNOWN
    assert (
        match_statistics(Among("a", (float("nan"), 1.0)), {"a": ColumnStatistics(2.0, 2.0, False, True)})
        is FileMatch.UNKNOWN
    )


def test_of_many_values_a_file_is_compared_with_a_few() -> None:
    compared = 0

    class Counted(str):
        __slots__ = ()

        def __lt__(self, other: str) -> bool:
            nonlocal compared
            compared += 1
            return str.__lt__(self, other)

    among = Among("a", tuple(Counted(f"{number:05d}") for number in range(10_000)))
    assert (
        match_statistics(among, {"a": ColumnStatistics(Counted("09"), Counted("09a"), False, True)})
        is FileMatch.UNKNOWN
    )
    compared = 0
    for number in range(0, 10_000, 100):
        extent = ColumnStatistics(Counted(f"{number:05d}"), Counted(f"{number:05d}"), False, True)
        assert match_statistics(among, {"a": extent}) is FileMatch.ALL
    assert compared < 100 * 20
