from __future__ import annotations

from typing import Any

import pytest

from partitions.predicate import (
    EVERYTHING,
    NOTHING,
    AllOf,
    Among,
    AnyOf,
    Between,
    HasValue,
    Predicate,
    all_of,
    any_of,
    columns_of,
    matches,
    rename_columns,
)

_A, _B = Among("a", (1, 2)), Between("b", 3, None)


@pytest.mark.parametrize(
    ("predicate", "matching"),
    [
        (EVERYTHING, [None, 1, 2, 3]),
        (NOTHING, []),
        (Among("a", (1, 3)), [1, 3]),
        (Among("a", (1, None)), [None, 1]),
        (Among("a", ()), []),
        (Between("a", 1, 3), [1, 2]),
        (Between("a", 1, 3, lower_inclusive=False, upper_inclusive=True), [2, 3]),
        (Between("a", None, 2), [1]),
        (Between("a", 2, None), [2, 3]),
        (HasValue("a"), [1, 2, 3]),
        (AnyOf((Among("a", (1,)), Among("a", (None,)))), [None, 1]),
        (AllOf((Between("a", 2, None), Among("a", (1, 2)))), [2]),
        (AllOf((Among("a", (1,)), NOTHING)), []),
        (AnyOf((Among("a", (1,)), EVERYTHING)), [None, 1, 2, 3]),
    ],
)
def test_a_row_matches_as_sql_compares_it(predicate: Predicate, matching: list[Any]) -> None:
    assert [value for value in (None, 1, 2, 3) if matches(predicate, {"a": value})] == matching


def test_a_predicate_names_each_column_that_it_compares_once() -> None:
    assert columns_of(AllOf((_A, AnyOf((_B, _A))))) == ("a", "b")
    assert columns_of(EVERYTHING) == ()


def test_a_predicate_is_the_same_over_columns_of_other_names() -> None:
    there = rename_columns(AllOf((_A, AnyOf((_B, HasValue("a"))))), {"a": "x", "b": "y"})
    assert there == AllOf((Among("x", (1, 2)), AnyOf((Between("y", 3, None), HasValue("x")))))
    assert rename_columns(NOTHING, {}) == NOTHING


def test_a_row_without_the_column_is_refused() -> None:
    with pytest.raises(KeyError):
        matches(Among("a", (None,)), {"b": 1})


def test_a_range_without_bounds_is_refused() -> None:
    with pytest.raises(ValueError, match="a: expected a lower or an upper bound, found neither"):
        Between("a", None, None)


def test_any_of_has_no_level_that_says_nothing() -> None:
    assert any_of([]) == NOTHING
    assert any_of([_A]) == _A
    assert any_of([_A, _B]) == AnyOf((_A, _B))
    assert any_of([_A, EVERYTHING]) == EVERYTHING


def test_all_of_has_no_level_that_says_nothing() -> None:
    assert all_of([]) == EVERYTHING
    assert all_of([EVERYTHING, _A]) == _A
    assert all_of([_A, _B]) == AllOf((_A, _B))
