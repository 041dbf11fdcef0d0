"""Sets of half-open stretches of time, each answered in one pass (docs/reference/cli.md, docs/reference/windows.md).

All that is given is ascending by start and may overlap, if nothing else is said; all that is returned is ascending and lies apart.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import TypeVar

Interval = tuple[int, int]
"""``[start, end)``, epoch milliseconds."""

LabelT = TypeVar("LabelT")


def consecutive(
    ascending: Iterable[int], label: Callable[[int], object] = lambda number: None
) -> Iterator[Interval]:
    """Whole numbers that follow each other and have one label, as ``[first, after)``."""
    for _, same in groupby(enumerate(ascending), lambda item: (item[1] - item[0], label(item[1]))):
        run = [number for _, number in same]
        yield run[0], run[-1] + 1


def union(intervals: Iterable[Sequence[int]]) -> list[Interval]:
    """What at least one covers; neighbours are one."""
    made: list[Interval] = []
    begin = reached = None
    for start, end in intervals:
        if reached is None or begin is None or start > reached:
            if begin is not None and reached is not None:
                made.append((begin, reached))
            begin, reached = start, end
        elif end > reached:
            reached = end
    if begin is not None and reached is not None:
        made.append((begin, reached))
    return made


def overlaps(intervals: Iterable[Sequence[int]]) -> list[Interval]:
    """What at least two cover."""
    twice: list[Interval] = []
    reached: int | None = None
    for start, end in intervals:
        if reached is not None and start < reached:
            twice.append((start, min(end, reached)))
        reached = end if reached is None else max(end, reached)
    return union(twice)


def missing(intervals: Iterable[Sequence[int]], start: int, end: int) -> list[Interval]:
    """What none covers between two instants."""
    made: list[Interval] = []
    reached = start
    for first, after in intervals:
        if first > reached:
            if first >= end:
                break
            made.append((reached, first))
        if after > reached:
            reached = after
    if reached < end:
        made.append((reached, end))
    return made


def difference(intervals: Iterable[Sequence[int]], others: Sequence[Interval]) -> list[Interval]:
    """What at least one of the first and none of the others covers; the others lie apart."""
    return [part for start, end in union(intervals) for part in missing(_near(others, start), start, end)]


def intersection(
    labelled: Iterable[tuple[int, int, LabelT]], others: Sequence[Interval]
) -> list[tuple[int, int, LabelT]]:
    """The parts of labelled stretches that others cover; both lie apart."""
    made: list[tuple[int, int, LabelT]] = []
    for start, end, label in labelled:
        for first, after in _near(others, start):
            if first >= end:
                break
            made.append((max(first, start), min(after, end), label))
    return made


def overlaid(
    below: Iterable[tuple[int, int, LabelT]], above: Sequence[tuple[int, int, LabelT]]
) -> list[tuple[int, int, LabelT]]:
    """Labelled stretches over others: if they overlap, those above count. Both lie apart."""
    if not above:
        return list(below)
    made, covered, index = list(above), [(start, end) for start, end, _ in above], 0
    for start, end, label in below:
        while index < len(covered) and covered[index][1] <= start:
            index += 1
        if index == len(covered) or covered[index][0] >= end:
            made.append((start, end, label))
        else:
            rest = missing(islice(covered, index, None), start, end)
            made.extend((first, after, label) for first, after in rest)
    return sorted(made, key=lambda interval: interval[0])


def _near(others: Sequence[Interval], start: int) -> Iterable[Interval]:
    """Those that end after an instant; they lie apart."""
    return islice(others, bisect_right(others, start, key=lambda interval: interval[1]), None)
