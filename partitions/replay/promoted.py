"""The files and windows that a promote swaps (docs/reference/replay.md, Isolated files and windows).

They are those of the replay, except what the live dataflow has loaded since or will still load.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Protocol, TypeVar

from partitions.intervals import Interval, subtract, union
from partitions.predicate import Among, Between, Predicate, any_of
from partitions.window.state import WindowState
from partitions.window.work_unit import WorkUnit

_MAX_RANGES = 100
"""The most ranges of one condition; files of shorter ranges are named one by one."""


class _HasPath(Protocol):
    """A file."""

    @property
    def path(self) -> str:
        """Its path below the root."""


FileT = TypeVar("FileT", bound=_HasPath)


def promoted_files(
    files: Iterable[FileT], loaded_since: Collection[str], below: Collection[str]
) -> Iterator[FileT]:
    """Yield the files whose rows are swapped.

    Args:
        files: handled by the replay.
        loaded_since: paths that the live dataflow has handled since the replay started; its rows are up to
        date.
        below: paths that no run loads any more. The next run loads all others, and would add their rows
        once more.
    """
    return (file for file in files if file.path in below and file.path not in loaded_since)


def rows_of_files(column: str, paths: Collection[str], other_paths: Collection[str]) -> Predicate:
    """Return the predicate of rows of files, as ranges of paths with no other file in between.

    So the cost of the condition does not grow with the number of files.

    Args:
        column: holds the path of each row's file.
        paths: the files' paths.
        other_paths: other paths that rows may hold, at least those between the first and the last of the files.
    """
    ordered, apart = sorted(paths), sorted({*other_paths} - {*paths})
    runs = [list(run) for _, run in groupby(ordered, key=partial(bisect_left, apart))]
    wide = sorted((run for run in runs if len(run) > 1), key=len, reverse=True)[:_MAX_RANGES]
    ranged = {path for run in wide for path in run}
    named = tuple(path for path in ordered if path not in ranged)
    ranges = [Between(column, run[0], run[-1], upper_inclusive=True) for run in sorted(wide)]
    return any_of([*ranges, *([Among(column, named)] if named or not ranges else [])])


def promoted_works(
    works: Iterable[WorkUnit], state: WindowState, since: Iterable[WorkUnit], *, whole: bool
) -> tuple[WorkUnit, ...]:
    """Return the parts of work units whose rows are swapped, in their order.

    The live state has them, and no run has read them since.

    Args:
        works: read by the replay, each whole.
        state: the live one now.
        since: work units that the live dataflow has read since the replay started.
        whole: whether rows tell only the window they belong to, so that no part of one can be swapped.
    """
    read = _read_by_unit(since)
    return tuple(part for work in works for part in _parts(work, state, read, whole=whole))


def _read_by_unit(works: Iterable[WorkUnit]) -> Mapping[str, Sequence[Interval]]:
    by_unit: dict[str, list[Interval]] = {}
    for work in works:
        if work.lower is not None and work.end is not None:
            by_unit.setdefault(work.unit, []).append((work.lower, work.end))
    return {unit: union(sorted(read)) for unit, read in by_unit.items()}


def _parts(
    work: WorkUnit, state: WindowState, read: Mapping[str, Sequence[Interval]], *, whole: bool
) -> Iterator[WorkUnit]:
    start, end = work.start, work.end
    high = state.high(work.unit, start) if start is not None else None
    if start is None or end is None or high is None:
        return
    swappable = subtract([(start, min(end, high))], read.get(work.unit, ()))
    if whole and list(swappable) != [(start, end)]:
        return
    for lower, upper in swappable:
        yield work._replace(lower=lower, end=upper)
