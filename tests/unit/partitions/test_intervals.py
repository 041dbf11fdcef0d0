"""Sets of intervals against sets of whole numbers."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from partitions.intervals import Interval, difference, overlaps, union

some = st.lists(
    st.tuples(st.integers(0, 40), st.integers(1, 9)).map(lambda one: (one[0], one[0] + one[1])), max_size=12
)


def points(intervals: list[Interval]) -> set[int]:
    return {number for start, end in intervals for number in range(start, end)}


def apart(intervals: list[Interval]) -> bool:
    return all(one[1] < other[0] for one, other in pairwise(intervals))


@given(some)
def test_a_union_covers_what_any_covers_and_is_apart(intervals: list[Interval]) -> None:
    found = union(sorted(intervals))
    assert points(found) == points(intervals)
    assert apart(found)


@given(some)
def test_overlaps_are_what_more_than_one_covers(intervals: list[Interval]) -> None:
    found = overlaps(sorted(intervals))
    assert points(found) == {
        number for number in range(60) if sum(start <= number < end for start, end in intervals) > 1
    }
    assert apart(found)


@given(some, some)
def test_a_difference_is_what_only_the_first_covers(wanted: list[Interval], covered: list[Interval]) -> None:
    first, second = union(sorted(wanted)), union(sorted(covered))
    assert points(difference(first, second)) == points(first) - points(second)
