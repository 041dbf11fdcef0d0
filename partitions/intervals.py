"""Compute with sets of half-open intervals, each in one pass.

See docs/reference/cli.md, docs/reference/windows.md. Arguments ascend by start and may overlap unless a
docstring says otherwise; results ascend and are disjoint.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import TypeVar

Interval = tuple[int, int]
"""``[start, end)``, epoch milliseconds."""

ALWAYS: Interval = (-(2**62), 2**62)
"""From before all times to after them."""

LabelT = TypeVar("LabelT")


def consecutive(
    ascending: Iterable[int], label: Callable[[int], object] = lambda number: None
) -> Iterator[Interval]:
    """Yield runs of consecutive numbers with the same label, as ``[first, after)``."""
    for _, same in groupby(enumerate(ascending), lambda item: (item[1] - item[0], label(item[1]))):
        run = [number for _, number in same]
        yield run[0], run[-1] + 1


def union(intervals: Iterable[Sequence[int]]) -> list[Interval]:
    """Return the stretches that at least one interval covers; adjacent ones are joined."""
    merged: list[Interval] = []
    begin = reached = None
    for start, end in intervals:
        if reached is None or begin is None or start > reached:
            if begin is not None and reached is not None:
                merged.append((begin, reached))
            begin, reached = start, end
        elif end > reached:
            reached = end
    if begin is not None and reached is not None:
        merged.append((begin, reached))
    return merged


def overlaps(intervals: Iterable[Sequence[int]]) -> list[Interval]:
    """Return the stretches that at least two intervals cover."""
    twice: list[Interval] = []
    reached: int | None = None
    for start, end in intervals:
        if reached is not None and start < reached:
            twice.append((start, min(end, reached)))
        reached = end if reached is None else max(end, reached)
    return union(twice)


def find_gaps(intervals: Iterable[Sequence[int]], start: int, end: int) -> list[Interval]:
    """Return the stretches from ``start`` to ``end`` that no interval covers."""
    gaps: list[Interval] = []
    reached = start
    for first, after in intervals:
        if first > reached:
            if first >= end:
                break
            gaps.append((reached, first))
        if after > reached:
            reached = after
    if reached < end:
        gaps.append((reached, end))
    return gaps


def subtract(intervals: Iterable[Sequence[int]], excluded: Sequence[Interval]) -> list[Interval]:
    """Return the union of intervals minus ``excluded``, whose intervals must be disjoint."""
    return [part for start, end in union(intervals) for part in find_gaps(_near(excluded, start), start, end)]


def intersect(
    labelled: Iterable[tuple[int, int, LabelT]], covering: Sequence[Interval]
) -> list[tuple[int, int, LabelT]]:
    """Return the parts of labelled stretches that ``covering`` covers; both must be disjoint."""
    parts: list[tuple[int, int, LabelT]] = []
    for start, end, label in labelled:
        for first, after in _near(covering, start):
            if first >= end:
                break
            parts.append((max(first, start), min(after, end), label))
    return parts


def overlay(
    below: Iterable[tuple[int, int, LabelT]], above: Sequence[tuple[int, int, LabelT]]
) -> list[tuple[int, int, LabelT]]:
    """Lay labelled stretches over others: ``above`` wins where they overlap. Both must be disjoint."""
    if not above:
        return list(below)
    stretches, covered, index = list(above), [(start, end) for start, end, _ in above], 0
    for start, end, label in below:
        while index < len(covered) and covered[index][1] <= start:
            index += 1
        if index == len(covered) or covered[index][0] >= end:
            stretches.append((start, end, label))
        else:
            rest = find_gaps(islice(covered, index, None), start, end)
            stretches.extend((first, after, label) for first, after in rest)
    return sorted(stretches, key=lambda interval: interval[0])


def _near(intervals: Sequence[Interval], start: int) -> Iterable[Interval]:
    """Return the disjoint intervals that end after an instant."""
    return islice(intervals, bisect_right(intervals, start, key=lambda interval: interval[1]), None)
