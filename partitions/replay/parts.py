"""Which files and windows a promote swaps: those of the replay, but none that the live flow has loaded since, or is still to load (docs/replay.md, Aside)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from partitions.intervals import Interval, difference, union
from partitions.path.source import SourceFile
from partitions.window.state import WindowState
from partitions.window.work_unit import WorkUnit


def promoted_files(
    files: Iterable[SourceFile], loaded_since: Collection[str], below: Collection[str]
) -> Iterator[SourceFile]:
    """Yield the files whose rows are swapped.

    Args:
        files: that the replay has loaded.
        loaded_since: paths that the live flow has dealt with since the replay began: its rows are as new.
        below: paths that no run loads any more; the others are left to the next run, which would add them once more.
    """
    return (file for file in files if file.path in below and file.path not in loaded_since)


def promoted_works(
    works: Iterable[WorkUnit], state: WindowState, since: Iterable[WorkUnit], *, whole: bool
) -> tuple[WorkUnit, ...]:
    """Return the parts of work units whose rows are swapped, in their order: what the live state has, but nothing that was read since.

    Args:
        works: that the replay has read, each whole.
        state: the live one now.
        since: what the live flow has read since the replay began.
        whole: whether rows tell no more than the window they belong to, so that no part of one can be swapped.
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
    left = difference([(start, min(end, high))], read.get(work.unit, ()))
    if whole and list(left) != [(start, end)]:
        return
    for lower, upper in left:
        yield work._replace(lower=lower, end=upper)
