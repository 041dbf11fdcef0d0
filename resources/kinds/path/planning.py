"""What is due of files: those above the last committed one, and those that wait beside it (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.path.definition import PathWatermark
from partitions.path.plan import PendingFiles, plan
from partitions.path.position_of_state import listing_start, start_between, sweep_start
from partitions.path.settle import is_settling, settled_files
from partitions.path.slices import PathSlice, cut_pending_slices, make_slice, watermark_of
from partitions.path.source import ListedFiles, SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.plan import Plan, Skip, pluralize
from partitions.request import DUE, ReplayFiles, Request
from partitions.sentinels import Watermark, deserialise
from partitions.spelling import first_few
from resources.kinds.contract.planning import CountsFirstLoads, Planning
from resources.kinds.path.sweep import unhandled
from resources.kinds.state_of_entry import cold_start_of, state_of
from resources.listing import Budget, Listing
from resources.sources.files.source import FileSource
from resources.watermarks.entry import Entry
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog
from resources.watermarks.quarantine_list import read_quarantine

_NAMED = 5
"""Files that a warning names."""

_LATE_AT_ONCE = 10_000
"""Late files that one plan looks at; a run plans again when these are loaded."""


@dataclass(frozen=True)
class PathPlanning(Planning[PathSlice], CountsFirstLoads[PathSlice]):
    """Files above the last committed one.

    Attributes:
        dataflow: what the user declared.
        source: its files.
        log: which remembers what was dealt with.
    """

    replans_after_load: ClassVar[bool] = True
    """Files may come while others are loaded."""
    pacing: ClassVar[timedelta] = timedelta(0)

    dataflow: Dataflow
    source: FileSource
    log: WatermarkLog

    @property
    def _definition(self) -> PathWatermark:
        return self.dataflow.path

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[PathSlice]:
        """List above the watermark, in full, and cut slices; or plan files that are read again, as they are now."""
        if isinstance(request, ReplayFiles):
            return self._plan_again(entry, now, request)
        state = state_of(PathState, self.dataflow, entry)
        listing = self.source.list_above(listing_start(self._definition, state, now, cold_start_of(entry)))
        planned = plan(
            self._definition,
            state,
            listing.listed,
            now,
            dataflow=self.dataflow.name,
            number=entry.number if entry else 0,
            pending=self._pending(entry, state, listing.listed, now),
            request=request,
        )
        reminder = read_quarantine(self.log, entry).reminder(self.dataflow.name)
        return replace(
            planned, calls=listing.listed.calls, warnings=(*planned.warnings, *filter(None, [reminder]))
        )

    def _plan_again(self, entry: Entry | None, now: datetime, request: ReplayFiles) -> Plan[PathSlice]:
        """One slice, whatever its size; whoever died with it may have loaded it already."""
        planned = Plan[PathSlice](self.dataflow.name, "path", entry.number if entry else 0, now, "")
        unmoved = watermark_of(self._definition, state_of(PathState, self.dataflow, entry))
        files = in_pair_order(self._there(request.paths))
        if not files:
            return replace(planned, why="its files are gone at the source")
        after = make_slice(self._definition, unmoved, files, None).after if request.saves else unmoved
        slice_ = PathSlice(files, unmoved, after, self._definition, why="replay", replaces=request.replaces)
        done = entry is not None and entry.number > request.since and entry.reason == request.reason
        if done and entry is not None and entry.upper and deserialise(entry.upper) == slice_.upper:
            return replace(planned, why=f"loaded before: {pluralize(len(files), 'file')}")
        return replace(planned, why=f"replay of {pluralize(len(files), 'file')}", slices=(slice_,))

    def read_again(
        self, entry: Entry | None, start: str, end: str, now: datetime, *, replaces: bool
    ) -> Plan[PathSlice]:
        """Plan what a replay of partitions reads: files at or below the watermark that are there and have settled, but none in quarantine.

        Args:
            entry: the newest.
            start: the first partition, in byte order.
            end: where they end; it is no part.
            now: the clock, aware.
            replaces: whether rows of these files go.
        """
        definition, state = self._definition, state_of(PathState, self.dataflow, entry)
        listing = self.source.list_above(start_between(start, end))
        listed = listing.listed.files
        dealt_with = self.not_new(entry, [file.path for file in listed])
        files = tuple(file for file in listed if file.path in dealt_with)
        quarantined = {aside.file.path for aside in read_quarantine(self.log, entry).waiting}
        files = tuple(
            file for file in files if file.path not in quarantined and not is_settling(definition, file, now)
        )
        slices = cut_pending_slices(
            definition, watermark_of(definition, state), files, "replay", replaces=replaces
        )
        left_out, listed_paths = len(listed) - len(files), {file.path for file in listed}
        held_back = f"{pluralize(left_out, 'file')} above the watermark, in quarantine, or still settling"
        nothing = (f"nothing is read again: {held_back}",) if left_out and not files else ()
        why = f"{pluralize(len(files), 'file')} of partitions from {start!r} to {end!r}"
        return Plan(
            self.dataflow.name,
            "path",
            entry.number if entry else 0,
            now,
            why,
            tuple(slices),
            (Skip(pluralize(left_out, "file"), "above the watermark, in quarantine, or still settling"),)
            if left_out
            else (),
            (*nothing, *self._gone(entry, start, end, listed_paths)),
            listing.listed.calls,
        )

    def not_new(self, entry: Entry | None, paths: Sequence[str]) -> set[str]:
        """Return those of these paths that lie at or below the watermark; with ``tracking: set`` those that were ingested."""
        if entry is None:
            return set()
        if self._definition.tracking == "set":
            return self._known(entry, paths)
        state = state_of(PathState, self.dataflow, entry)
        below = sweep_start(self._definition, state, cold_start_of(entry))
        return {path for path in paths if below.is_above(path)}

    def count_first_loads(self, entry: Entry | None, slice_: PathSlice) -> int:
        """Return how many files of a slice were not loaded before; those in quarantine were not."""
        paths = [file.path for file in slice_.files]
        if entry is None or not paths:
            return len(paths)
        aside = {quarantined.file.path for quarantined in read_quarantine(self.log, entry).files}
        return len(paths) - len(self._known(entry, paths) - aside)

    def _gone(self, entry: Entry | None, start: str, end: str, listed: Collection[str]) -> Iterator[str]:
        """Say which files of these partitions were loaded and are gone."""
        if entry is None:
            return
        within = start_between(start, end)
        ingested = IngestedFiles(self.log, self.dataflow.name, entry).all()
        missing = [file.path for file in ingested if within.is_above(file.path) and file.path not in listed]
        if missing:
            yield f"gone at the source, so their rows stay: {first_few(missing, _NAMED)}"

    def _pending(
        self, entry: Entry | None, state: PathState, listed: ListedFiles, now: datetime
    ) -> PendingFiles:
        """What waits beside the watermark. What was dealt with is looked up only if something waits for the answer."""
        if entry is None:
            return PendingFiles()
        by_set, until = self._definition.tracking == "set", entry.replace_until
        paths = [file.path for file in listed.files]
        return PendingFiles(
            late=() if by_set else self._late(entry, state, now),
            released=self._released(entry, state),
            replace_until=PathState.of(deserialise(until)) if until else None,
            ingested_paths=frozenset(self._known(entry, paths)) if by_set else frozenset(),
        )

    def _known(self, entry: Entry, paths: Sequence[str]) -> set[str]:
        return IngestedFiles(self.log, self.dataflow.name, entry).find_handled(paths)

    def _late(self, entry: Entry, state: PathState, now: datetime) -> tuple[SourceFile, ...]:
        """What the sweep has found and no entry has dealt with since, as it is now; what did not settle comes last."""
        if self.dataflow.late_files != "ingest":
            return ()
        below = sweep_start(self._definition, state, cold_start_of(entry))
        late = unhandled(self.log, self.dataflow, entry, now)
        paths = [file.path for file in (*late.files, *late.settling) if below.is_above(file.path)]
        return self._there(paths[:_LATE_AT_ONCE])

    def _released(self, entry: Entry, state: PathState) -> tuple[SourceFile, ...]:
        """What was taken out of quarantine. What lies above the watermark is read with all that is new there."""
        below = sweep_start(self._definition, state, cold_start_of(entry))
        paths = [released.file.path for released in read_quarantine(self.log, entry).released]
        by_set = self._definition.tracking == "set"
        return self._there([path for path in paths if by_set or below.is_above(path)])

    def _there(self, paths: Sequence[str]) -> tuple[SourceFile, ...]:
        files = self.source.find_files(paths)
        return tuple(files[path] for path in paths if path in files)

    def peek(self, entry: Entry | None, now: datetime, budget: Budget, resume: str | None) -> Listing:
        """Look for what the next run would load within a budget, to see whether a run is worth asking for, and count what ``settle`` holds back."""
        definition, state = self._definition, state_of(PathState, self.dataflow, entry)
        start = listing_start(definition, state, now, cold_start_of(entry))
        listing = self.source.list_above(start, budget=budget, resume=resume)
        files = listing.listed.files
        if entry is not None and definition.tracking == "set":
            ingested = self._known(entry, [file.path for file in files])
            files = tuple(file for file in files if file.path not in ingested)
        new, files = len(files), settled_files(definition, files, now)
        settling = new - len(files)
        if entry is not None:
            released = (
                file for file in self._released(entry, state) if not is_settling(definition, file, now)
            )
            files = in_pair_order([*files, *released])
        return replace(listing, listed=replace(listing.listed, files=files), settling=settling)

    def covers(self, state: str, other: str) -> bool:
        """Compare the last file, or that of every open partition."""
        newer, older = (PathState.of(deserialise(text)) for text in (state, other))
        return newer.covers(older, self._definition.template)

    @override
    def modified(self, slice_: PathSlice, before: Watermark, now: datetime) -> int | None:
        """Of the file modified last; what is late or released tells nothing of how far the source is loaded."""
        times = (file.modified for file in slice_.all_files)
        return max(times, default=None) if slice_.why == "run" else None
