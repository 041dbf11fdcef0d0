"""Slices of the window kind: some work units, one read, one commit (docs/reference/windows.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from itertools import accumulate, groupby
from typing import Any, Literal

from partitions.errors import BadPart, BadUnits
from partitions.instants import as_datetime
from partitions.path.source import SourceFile
from partitions.plan import Size
from partitions.sentinels import Watermark
from partitions.window.alike_reasons import describe_failures
from partitions.window.calendar_grid import Grid
from partitions.window.extent import Extent
from partitions.window.reasons import WHOLE
from partitions.window.state import WindowState
from partitions.window.work_outcomes import LoadedUnit, OutdatedStretch, TimeBound, UpstreamRead, WindowSpan
from partitions.window.work_unit import FailedUnit, OldWindow, WorkUnit, commit_key, extents


@dataclass(frozen=True)
class WindowSlice:
    """Work units that share one read, one delete and one commit.

    Attributes:
        works: the work units in planning order: windows ascending, units in their order.
        zone: the zone of texts for people.
        grid: the text of the grid that cuts most windows of the definition.
        name: the time dimension's name.
        at: the clock of the plan, epoch milliseconds.
        failed: work units that could not be read; the entry records them for another try.
        deferred: due work units that do not fit into the plan.
        early: windows that turn out to have been loaded before their end.
        old: windows as an earlier definition cut them, whose rows are deleted in the same commit.
        version: the version of the source to read; None if it has none, or it is not fixed yet.
        files: the files of each work unit that is a folder, by its key; None for other sources, or if they are not
        listed yet.
        makes_room: whether rows in the table are deleted, whatever the target's load is.
        upstream: the upstream as the plan saw it; None if the windows do not wait for it.
        outdated: loaded stretches that have changed in the table that is read since they were read, if the
        slice takes rows of an isolated replay.
        input_versions: the versions of inputs that the plan has fixed, by name; a stored slice has none, since
        its intent has all versions.
        why: the origin of the slice.
    """

    works: tuple[WorkUnit, ...]
    zone: tzinfo
    grid: str = "none"
    name: str = "window"
    at: int | None = None
    failed: tuple[FailedUnit, ...] = ()
    deferred: tuple[WindowSpan, ...] = ()
    early: tuple[WindowSpan, ...] = ()
    old: tuple[OldWindow, ...] = ()
    makes_room: bool = False
    version: int | str | None = None
    files: Mapping[tuple[TimeBound, str], tuple[SourceFile, ...]] | None = None
    upstream: UpstreamRead | None = None
    outdated: tuple[OutdatedStretch, ...] = ()
    input_versions: Mapping[str, Any] = field(default_factory=dict)
    why: Literal["run", "replay"] = "run"

    @property
    def lower(self) -> Watermark | None:
        """Return the earliest instant that is read; None without a time dimension."""
        return self._bound(min((work.lower for work in self._all if work.lower is not None), default=None))

    @property
    def upper(self) -> Watermark:
        """Return the latest instant that is read, exclusive; {} without a time dimension."""
        return self._bound(max((work.end for work in self._all if work.end is not None), default=None)) or {}

    @property
    def since(self) -> None:
        """Return None: windows have no cold start."""
        return

    @property
    def replaces(self) -> bool:
        """Return whether rows are deleted: loaded windows are written again, or are cut differently now."""
        return self.makes_room or bool(self.old) or any(work.reason in WHOLE for work in self.works)

    def advance(self, before: Watermark) -> Watermark:
        """Return the state after this slice."""
        loaded = [
            LoadedUnit(work.start, work.end, work.lower, work.unit, work.open, Grid.parse(work.grid))
            for work in self.works
            if work.reason != "rest"
        ]
        failed = [
            (failure.work.unit, failure.work.start, failure.error)
            for failure in self.failed
            if failure.work.reason != "rest"
        ]
        rest = [(work.unit, work.start or 0, work.end or 0) for work in self.works if work.reason == "rest"]
        return (
            WindowState.of(before)
            .rebased(Grid.parse(self.grid))
            .after(
                loaded,
                failed,
                [*self.deferred, *self._forced_again()],
                at=self.at,
                early=self.early,
                replaced=[(old.unit, old.start) for old in self.old],
                rest=rest,
                upstream=self.upstream,
                outdated=self.outdated,
            )
            .watermark()
        )

    def _forced_again(self) -> Iterator[WindowSpan]:
        """Yield forced work units that could not be read; the next try is forced, too."""
        for work, _ in self.failed:
            if work.reason == "forced":
                yield WindowSpan(work.unit, work.start, work.end, work.grid, reread_whole=True)

    def is_superseded(self, highest: int | None) -> bool:
        """Return whether a window that ends later is loaded.

        Of a complete source this slice then changes nothing.

        Args:
            highest: the highest end of all loaded windows, epoch milliseconds; None: none is loaded.
        """
        ends = [work.end for work in self.works if work.end is not None]
        return highest is not None and bool(ends) and max(ends) < highest

    def describe(self) -> list[dict[str, Any]]:
        """Return the JSON form of the work units in a plan."""
        return [work.describe(self.zone) for work in self.works]

    def halve(self) -> tuple[WindowSlice, ...]:
        """Return two slices with half of the work units each; only itself if it cannot be split."""
        sizes = list(accumulate(len(list(same)) for _, same in groupby(self.works, commit_key)))
        half = [size for size in sizes if 0 < size < len(self.works)]
        if not half:
            return (self,)
        cut = min(half, key=lambda size: abs(size - len(self.works) // 2))
        first = replace(self, works=self.works[:cut])
        second = replace(self, works=self.works[cut:], failed=(), deferred=(), early=())
        return first._with_own_old_windows(), second._with_own_old_windows()

    def without(self, failed: Sequence[FailedUnit]) -> WindowSlice:
        """Return the slice without some work units, which it records as failed.

        Work units that must share a commit with one of them are left out, too.
        """
        failed_keys = {failure.work.key for failure in failed}
        failed_groups = {
            commit_key(failure.work): failure for failure in failed if failure.work.group_start is not None
        }
        more = [
            FailedUnit(
                work, f"one commit reads it together with {first.work.label(self.zone)}: {first.error}"
            )
            for work in self.works
            if work.key not in failed_keys and (first := failed_groups.get(commit_key(work)))
        ]
        failed_keys |= {failure.work.key for failure in more}
        works = tuple(work for work in self.works if work.key not in failed_keys)
        return replace(self, works=works, failed=(*self.failed, *failed, *more))._with_own_old_windows()

    def _with_own_old_windows(self) -> WindowSlice:
        """Return the slice with only the old windows that its work units read again."""
        groups = {(work.unit, work.group_start) for work in self.works if work.group_start is not None}
        return replace(self, old=tuple(old for old in self.old if (old.unit, old.group_start) in groups))

    @property
    def source_files(self) -> list[SourceFile]:
        """Return the files to read, if its work units are folders."""
        listed = self.files or {}
        return [file for work in self.works for file in listed.get(work.key, ())]

    @property
    def size(self) -> Size:
        """Return the number of work units, and the number and size of their files."""
        files = self.source_files
        total = None if self.files is None else sum(file.size for file in files)
        return Size(len(files), total, len(self.works), len(self.failed))

    @property
    def keys(self) -> Collection[tuple[TimeBound, str]]:
        """Return window start and unit of each work unit."""
        return [work.key for work in self.works]

    @property
    def failures(self) -> Mapping[tuple[TimeBound, str], str]:
        """Return the reasons of the work units that could not be read, by their keys."""
        return {unit.work.key: f"{unit.work.label(self.zone)}: {unit.error}" for unit in self.failed}

    def failure_lines(self, owners: Mapping[tuple[TimeBound, str], WindowSlice]) -> Sequence[str]:
        """Return a line for each kind of reason, with its work units.

        Args:
            owners: by key of a failed work unit, the slice that records it.
        """
        failed = {id(slice_): {unit.work.key: unit for unit in slice_.failed} for slice_ in owners.values()}
        units = [failed[id(slice_)][key] for key, slice_ in owners.items()]
        return [f"{works}: {why}" for works, why in describe_failures(units, self.zone)]

    def contains(self, bad: BadPart) -> bool:
        """Return whether this slice holds one of the bad work units."""
        return isinstance(bad, BadUnits) and any(key in bad.units for key in self.keys)

    def up_to(self, bad: BadPart) -> None:
        """Return None: work units are independent, so none comes before another."""

    def extents(self) -> tuple[Extent, ...]:
        """Return the stretches to read, as few as possible."""
        return extents(self.works)

    @property
    def _all(self) -> Iterable[WorkUnit]:
        return (*self.works, *(failure.work for failure in self.failed))

    def _bound(self, instant: int | None) -> Watermark | None:
        return None if instant is None else {self.name: as_datetime(instant, self.zone)}


def files_of(
    works: Sequence[WorkUnit], rows: Sequence[Sequence[Sequence[Any]]]
) -> dict[tuple[TimeBound, str], tuple[SourceFile, ...]]:
    """Return the files of each work unit, from rows in the order of the work units."""
    return {
        work.key: tuple(SourceFile(*row) for row in files) for work, files in zip(works, rows, strict=True)
    }
