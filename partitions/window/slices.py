"""Slices of the window kind: some work units, one read, one commit (docs/reference/windows.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from itertools import accumulate, groupby
from typing import Any, Literal

from partitions.errors import BadPart, BadUnits
from partitions.instants import as_datetime
from partitions.path.source import SourceFile
from partitions.plan import Size
from partitions.sentinels import Watermark
from partitions.window.calendar_grid import Grid
from partitions.window.extent import Extent
from partitions.window.state import WindowState
from partitions.window.work_outcomes import DeferredUnits, LoadedUnit, TimeBound
from partitions.window.work_unit import FailedUnit, Old, WorkUnit, extents, together


@dataclass(frozen=True)
class WindowSlice:
    """Work units that share one read, one delete and one commit.

    Attributes:
        works: in planning order: windows ascending, units as given.
        zone: of texts for people.
        grid: text of how most windows of the definition are cut.
        name: of the time dimension.
        at: the clock of the plan, epoch milliseconds.
        failed: what was found unreadable; the entry says so, and asks for it again.
        deferred: what was due and is not in the plan, since it holds no more.
        early: what is known now to have been loaded before its time.
        old: windows as they were cut before, whose rows are deleted in the same commit.
        version: of the source that they are read from; None if it has none, or it is not fixed yet.
        files: of each work unit that is a folder, by its key; None for other sources, or if they are not listed yet.
        makes_room: whether rows that are in the table already are deleted, whatever the target's load says.
        why: what brought it here.
    """

    works: tuple[WorkUnit, ...]
    zone: tzinfo
    grid: str = "none"
    name: str = "window"
    at: int | None = None
    failed: tuple[FailedUnit, ...] = ()
    deferred: tuple[DeferredUnits, ...] = ()
    early: tuple[DeferredUnits, ...] = ()
    old: tuple[Old, ...] = ()
    makes_room: bool = False
    version: int | str | None = None
    files: Mapping[tuple[TimeBound, str], tuple[SourceFile, ...]] | None = None
    why: Literal["run", "replay"] = "run"

    @property
    def lower(self) -> Watermark | None:
        """The earliest instant that is read."""
        return self._bound(min((work.lower for work in self._all if work.lower is not None), default=None))

    @property
    def upper(self) -> Watermark:
        """The latest, exclusive."""
        return self._bound(max((work.end for work in self._all if work.end is not None), default=None)) or {}

    @property
    def since(self) -> None:
        """No window is below a cold start."""
        return

    @property
    def replaces(self) -> bool:
        """Whether rows are deleted: loaded windows are to be written again, or they are cut otherwise now."""
        return self.makes_room or bool(self.old) or any(work.reason == "forced" for work in self.works)

    def advance(self, before: Watermark) -> Watermark:
        """The state after it."""
        done = [
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
                done,
                failed,
                [*self.deferred, *self._asked()],
                at=self.at,
                early=self.early,
                replaced=[(old.unit, old.start) for old in self.old],
                rest=rest,
            )
            .watermark()
        )

    def _asked(self) -> Iterator[DeferredUnits]:
        """What was to be read again from its start on and could not be: so is the next try."""
        for work, _ in self.failed:
            if work.reason == "forced":
                yield DeferredUnits(work.unit, work.start, work.end, work.grid, whole=True)

    def describe(self) -> list[dict[str, Any]]:
        """Each work unit in the plan's JSON form."""
        return [work.describe(self.zone) for work in self.works]

    def halve(self) -> tuple[WindowSlice, ...]:
        """Two slices of half the work units each, or only itself."""
        sizes = list(accumulate(len(list(same)) for _, same in groupby(self.works, together)))
        half = [size for size in sizes if 0 < size < len(self.works)]
        if not half:
            return (self,)
        cut = min(half, key=lambda size: abs(size - len(self.works) // 2))
        first = replace(self, works=self.works[:cut])
        second = replace(self, works=self.works[cut:], failed=(), deferred=(), early=())
        return first._with_its_old(), second._with_its_old()

    def without(self, failed: Sequence[FailedUnit]) -> WindowSlice:
        """The slice that passes over work units, and says why; what must be read with one of them is passed over, too."""
        gone = {failure.work.key for failure in failed}
        bound = {together(failure.work): failure for failure in failed if failure.work.bound is not None}
        more = [
            FailedUnit(work, f"is read in one commit with {first.work.label(self.zone)}: {first.error}")
            for work in self.works
            if work.key not in gone and (first := bound.get(together(work)))
        ]
        gone |= {failure.work.key for failure in more}
        works = tuple(work for work in self.works if work.key not in gone)
        return replace(self, works=works, failed=(*self.failed, *failed, *more))._with_its_old()

    def _with_its_old(self) -> WindowSlice:
        """Only the old windows that its work units read again."""
        there = {(work.unit, work.bound) for work in self.works if work.bound is not None}
        return replace(self, old=tuple(old for old in self.old if (old.unit, old.bound) in there))

    @property
    def source_files(self) -> list[SourceFile]:
        """The files that are read, if its work units are folders."""
        listed = self.files or {}
        return [file for work in self.works for file in listed.get(work.key, ())]

    @property
    def size(self) -> Size:
        """Work units, and the files of those that are folders."""
        files = self.source_files
        total = None if self.files is None else sum(file.size for file in files)
        return Size(len(files), total, len(self.works), len(self.failed))

    @property
    def keys(self) -> Collection[tuple[TimeBound, str]]:
        """Window start and unit of each work unit."""
        return [work.key for work in self.works]

    @property
    def failures(self) -> Mapping[tuple[TimeBound, str], str]:
        """Each work unit that could not be read, with the reason."""
        return {unit.work.key: f"{unit.work.label(self.zone)}: {unit.error}" for unit in self.failed}

    def contains(self, bad: BadPart) -> bool:
        """Whether one of the bad work units is of this slice."""
        return isinstance(bad, BadUnits) and any(key in bad.units for key in self.keys)

    def up_to(self, bad: BadPart) -> None:
        """None: a work unit stands for itself, so none is before another."""

    def extents(self) -> tuple[Extent, ...]:
        """What is read, as few stretches as it takes."""
        return extents(self.works)

    @property
    def _all(self) -> Iterable[WorkUnit]:
        return (*self.works, *(failure.work for failure in self.failed))

    def _bound(self, instant: int | None) -> Watermark | None:
        return None if instant is None else {self.name: as_datetime(instant, self.zone)}


def files_of(
    works: Sequence[WorkUnit], rows: Sequence[Sequence[Sequence[Any]]]
) -> dict[tuple[TimeBound, str], tuple[SourceFile, ...]]:
    """Return the files of each work unit, from their rows in the order of the work units."""
    return {
        work.key: tuple(SourceFile(*row) for row in files) for work, files in zip(works, rows, strict=True)
    }
