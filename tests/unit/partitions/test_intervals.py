from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from partitions.intervals import Interval, find_gaps, intersect, overlaps, overlay, subtract, union

WIDE = 40

stretches = st.tuples(st.integers(0, WIDE), st.integers(1, 12)).map(lambda one: (one[0], one[0] + one[1]))
ascending = st.lists(stretches, max_size=10).map(sorted)
apart = ascending.map(union)
labelled = apart.flatmap(
    lambda found: st.lists(st.sampled_from("xyz"), min_size=len(found), max_size=len(found)).map(
        lambda labels: [(*one, label) for one, label in zip(found, labels, strict=True)]
    )
)


def _cells(found: list[Interval]) -> list[int]:
    return [cell for start, end in found for cell in range(start, end)]


def _letters(found: list[tuple[int, int, str]]) -> dict[int, str]:
    return {cell: label for start, end, label in found for cell in range(start, end)}


def _apart(found: list[Interval]) -> bool:
    return all(one[1] < other[0] for one, other in pairwise(found)) and all(
        start < end for start, end in found
    )


@given(ascending)
def test_a_union_covers_what_at_least_one_covers(found: list[Interval]) -> None:
    assert _cells(union(found)) == sorted(set(_cells(found)))
    assert _apart(union(found))


@given(ascending)
def test_overlaps_are_what_at_least_two_cover(found: list[Interval]) -> None:
    every = _cells(found)
    assert _cells(overlaps(found)) == sorted({cell for cell in every if every.count(cell) > 1})
    assert _apart(overlaps(found))


@given(ascending, st.integers(0, WIDE), st.integers(0, WIDE))
def test_what_is_missing_is_what_none_covers(found: list[Interval], start: int, width: int) -> None:
    gaps = find_gaps(found, start, start + width)
    assert _cells(gaps) == [cell for cell in range(start, start + width) if cell not in _cells(found)]
    assert _apart(gaps)


@given(ascending, apart)
def test_a_difference_is_what_only_the_first_cover(found: list[Interval], others: list[Interval]) -> None:
    assert _cells(subtract(found, others)) == sorted(set(_cells(found)) - set(_cells(others)))


@given(labelled, apart)
def test_an_intersection_keeps_labels(found: list[tuple[int, int, str]], others: list[Interval]) -> None:
    cells = set(_cells(others))
    wanted = {cell: label for cell, label in _letters(found).items() if cell in cells}
    assert _letters(intersect(found, others)) == wanted


@given(labelled, labelled)
def test_of_stretches_over_others_those_above_count(
    below: list[tuple[int, int, str]], above: list[tuple[int, int, str]]
) -> None:
    found = overlay(below, above)
    assert _letters(found) == _letters(below) | _letters(above)
    assert all(one[1] <= other[0] for one, other in pairwise(found))


def test_neighbours_are_one_and_nothing_is_nothing() -> None:
    assert union([(0, 2), (2, 3), (4, 5)]) == [(0, 3), (4, 5)]
    assert (union([]), overlaps([]), find_gaps([], 3, 3), overlaps([(0, 2), (2, 3)])) == ([], [], [], [])
    assert find_gaps([], 1, 3) == [(1, 3)]
