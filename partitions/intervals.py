"""Sorted sets of half-open intervals: each operation is one pass over them (spec 03, Ledger)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

Interval = tuple[int, int]
"""``[start, end)``; start is below end."""


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """What any of them covers: ascending, apart from each other; those that touch are one.

    Args:
        intervals: ascending by start; they may overlap.
    """
    made: list[Interval] = []
    for start, end in intervals:
        if made and start <= made[-1][1]:
            made[-1] = (made[-1][0], max(made[-1][1], end))
        else:
            made.append((start, end))
    return made


def overlaps(intervals: Iterable[Interval]) -> list[Interval]:
    """What more than one of them covers; so with :func:`union`."""
    found: list[Interval] = []
    reached: int | None = None
    for start, end in intervals:
        if reached is not None and start < reached:
            found.append((start, min(end, reached)))
        reached = end if reached is None else max(reached, end)
    return union(sorted(found))


def difference(wanted: Sequence[Interval], covered: Sequence[Interval]) -> list[Interval]:
    """What of the first is not in the second; both ascending and apart."""
    return list(_less(wanted, covered))


def _less(wanted: Sequence[Interval], covered: Sequence[Interval]) -> Iterator[Interval]:
    place = 0
    for start, end in wanted:
        while place < len(covered) and covered[place][1] <= start:
            place += 1
        at = start
        for lower, upper in _from(covered, place, end):
            if at < lower:
                yield at, lower
            at = max(at, upper)
        if at < end:
            yield at, end


def _from(intervals: Sequence[Interval], place: int, end: int) -> Iterator[Interval]:
    """Those from a place on that begin before an end."""
    while place < len(intervals) and intervals[place][0] < end:
        yield intervals[place]
        place += 1
