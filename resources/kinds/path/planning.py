"""Planning of files: those above the watermark, and those that wait beside it.

See docs/reference/files.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.path.definition import PathWatermark
from partitions.path.gone import with_gone_files
from partitions.path.listing_positions import FromBeginning
from partitions.path.plan import PendingFiles, plan
from partitions.path.position_of_state import above_state, listing_start, start_between, sweep_start
from partitions.path.settle import is_settling, settled_files
from partitions.path.slices import PathSlice, cut_pending_slices, make_slice, watermark_of
from partitions.path.source import ListedFiles, SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.plan import Plan, Skip, pluralize
from partitions.request import DUE, ReplayFiles, Request
from partitions.retention import expired_folders
from partitions.sentinels import Watermark, deserialise
from partitions.spelling import first_few
from resources.decisions.reasons import WITH_ROWS
from resources.kinds.contract.planning import CountsFirstLoads, Planning
from resources.kinds.path.sweep import unhandled
from resources.kinds.state_of_entry import cold_start_of, state_of
from resources.listing import Budget, Listing
from resources.loop.missing_source import warn_of_emptied_source
from resources.sources.files.source import FileSource
from resources.watermarks.entry import Entry
from resources.watermarks.file_ranges import GOES
from resources.watermarks.ingested import IngestedFiles
from resources.watermarks.log import WatermarkLog
from resources.watermarks.quarantine_list import read_quarantine

_NAMED = 5
"""The most files that a warning names."""

_STAT_AT_MOST = 1_000
"""The most files of a replay that are looked up one by one; more are found by a listing of all."""

_LATE_AT_ONCE = 10_000
"""The most late files that one plan looks at; a run plans again when these are loaded."""


@dataclass(frozen=True)
class PathPlanning(Planning[PathSlice], CountsFirstLoads[PathSlice]):
    """Plans of files above the last committed one.

    Attributes:
        dataflow: the definition.
        source: the files.
        log: the log, which knows the files that were handled.
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
        """List everything above the watermark and cut slices; or plan the requested files as they are now."""
        if isinstance(request, ReplayFiles):
            return self._plan_replay(entry, now, request)
        state = state_of(PathState, self.dataflow, entry)
        listing = self.source.list_above(listing_start(self._definition, state, now, cold_start_of(entry)))
        planned = plan(
            self._definition,
            state,
            listing.listed,
            now,
            dataflow=self.dataflow.name,
            state_number=entry.number if entry else 0,
            pending=self._pending(entry, state, listing.listed, now),
            request=request,
        )
        reminder = read_quarantine(self.log, entry).reminder(self.dataflow.name)
        paths = [file.path for slice_ in planned.slices for file in slice_.files]
        expired = expired_folders(self.dataflow.target.retention, paths, now)
        of_files = f"of {pluralize(len(expired), 'file')} is loaded: {first_few(expired, _NAMED)}"
        more = [*filter(None, [reminder, f"below the retention, so no row {of_files}" if expired else None])]
        if not listing.listed.files:
            more += self.warn_if_emptied(entry)
        return replace(planned, calls=listing.listed.calls, warnings=(*planned.warnings, *more))

    def _plan_replay(self, entry: Entry | None, now: datetime, request: ReplayFiles) -> Plan[PathSlice]:
        """Plan the requested files in one slice; a run that died may have loaded it already."""
        planned = Plan[PathSlice](self.dataflow.name, "path", entry.number if entry else 0, now, "")
        unmoved = watermark_of(self._definition, state_of(PathState, self.dataflow, entry))
        files = in_pair_order(self._existing_files(request.paths))
        if not files and not request.gone_paths:
            return replace(planned, why="its files no longer exist at the source")
        saves = request.saves and files
        after = make_slice(self._definition, unmoved, files, None).after if saves else unmoved
        slice_ = PathSlice(
            files,
            unmoved,
            after,
            self._definition,
            why="replay",
            replaces=request.replaces,
            gone_paths=request.gone_paths,
        )
        is_done = entry is not None and entry.number > request.since and entry.reason == request.reason
        if is_done and entry is not None and entry.upper and deserialise(entry.upper) == slice_.upper:
            return replace(planned, why=f"already loaded: {pluralize(len(files), 'file')}")
        return replace(planned, why=f"replay of {pluralize(len(files), 'file')}", slices=(slice_,))

    def plan_partitions(
        self,
        entry: Entry | None,
        start: str,
        end: str,
        now: datetime,
        *,
        replaces: bool,
        gone_paths: Sequence[str] = (),
    ) -> Plan[PathSlice]:
        """Plan the files that a replay of partitions reads.

        These are files at or below the watermark that exist, have settled, and are not in quarantine.

        Args:
            entry: the newest entry.
            start: the first partition, in byte order.
            end: the exclusive end of the partitions.
            now: the clock, aware.
            replaces: whether the files' earlier rows are deleted.
            gone_paths: paths of loaded files that are gone at the source, whose rows are deleted too.
        """
        listing = self.source.list_above(start_between(start, end))
        why = f"partitions from {start!r} to {end!r}"
        within = start_between(start, end)
        missing = self._loaded_files(entry, within.is_above, {file.path for file in listing.listed.files})
        return self._plan_again(entry, listing.listed, now, why, missing, gone_paths, replaces=replaces)

    def plan_files(
        self,
        entry: Entry | None,
        paths: Collection[str],
        now: datetime,
        why: str,
        *,
        replaces: bool,
        gone_paths: Sequence[str] = (),
    ) -> Plan[PathSlice]:
        """Plan a replay of chosen files, as :meth:`plan_partitions` plans those of partitions.

        Args:
            entry: the newest entry.
            paths: the paths of the chosen files.
            now: the clock, aware.
            why: what has chosen them, for people.
            replaces: whether the files' earlier rows are deleted.
            gone_paths: paths of loaded files that are gone at the source, whose rows are deleted too.
        """
        if len(paths) > _STAT_AT_MOST:
            listing = self.source.list_above(FromBeginning()).listed
            files = tuple(file for file in listing.files if file.path in paths)
        else:
            listing, files = ListedFiles(()), self._existing_files(sorted(paths))
        missing = sorted(set(paths) - {file.path for file in files})
        listed = replace(listing, files=in_pair_order(files))
        return self._plan_again(entry, listed, now, why, missing, gone_paths, replaces=replaces)

    def _plan_again(
        self,
        entry: Entry | None,
        listing: ListedFiles,
        now: datetime,
        chosen_by: str,
        missing: Sequence[str],
        gone_paths: Sequence[str],
        *,
        replaces: bool,
    ) -> Plan[PathSlice]:
        """Plan listed files that a replay reads; the next run reads the others."""
        definition, state = self._definition, state_of(PathState, self.dataflow, entry)
        listed = listing.files
        dealt_with = self.at_or_below_watermark(entry, [file.path for file in listed])
        files = tuple(file for file in listed if file.path in dealt_with)
        quarantined = {aside.file.path for aside in read_quarantine(self.log, entry).waiting}
        files = tuple(
            file for file in files if file.path not in quarantined and not is_settling(definition, file, now)
        )
        unmoved = watermark_of(definition, state)
        slices = cut_pending_slices(definition, unmoved, files, "replay", replaces=replaces)
        left_out = len(listed) - len(files)
        held_back = f"{pluralize(left_out, 'file')} above the watermark, in quarantine, or still settling"
        nothing = (f"nothing is read again: {held_back}",) if left_out and not files else ()
        return Plan(
            self.dataflow.name,
            "path",
            entry.number if entry else 0,
            now,
            f"{pluralize(len(files), 'file')} of {chosen_by}",
            tuple(with_gone_files(slices, gone_paths, definition, unmoved, "replay")),
            (Skip(pluralize(left_out, "file"), "above the watermark, in quarantine, or still settling"),)
            if left_out
            else (),
            (*nothing, *_warn_of_missing(missing, gone_paths)),
            listing.calls,
        )

    def at_or_below_watermark(self, entry: Entry | None, paths: Sequence[str]) -> set[str]:
        """Return the paths at or below the watermark; with ``tracking: set`` the ingested ones."""
        if entry is None:
            return set()
        if self._definition.tracking == "set":
            return self._ingested_paths(entry, paths)
        state = state_of(PathState, self.dataflow, entry)
        below = sweep_start(self._definition, state, cold_start_of(entry))
        return {path for path in paths if below.is_above(path)}

    def count_first_loads(self, entry: Entry | None, slice_: PathSlice) -> int:
        """Return how many files a slice adds to the loaded ones; below 0 if it deletes rows of more.

        Files in quarantine were not loaded.
        """
        paths = [file.path for file in slice_.files]
        if entry is None or not (paths or slice_.gone_paths):
            return len(paths)
        aside = {quarantined.file.path for quarantined in read_quarantine(self.log, entry).files}
        ingested = self._ingested_paths(entry, [*paths, *slice_.gone_paths])
        gone_paths = ingested & {*slice_.gone_paths}
        return len({*paths} - (ingested - aside)) - len(gone_paths)

    def _loaded_files(
        self, entry: Entry | None, is_chosen: Callable[[str], bool], listed: Collection[str]
    ) -> Sequence[str]:
        """Return the chosen files that were loaded and are not listed."""
        if entry is None:
            return ()
        ingested = IngestedFiles(self.log, self.dataflow.name, entry).all()
        loaded = (file.path for file in ingested if file.reason in WITH_ROWS)
        return [path for path in loaded if is_chosen(path) and path not in listed]

    def _pending(
        self, entry: Entry | None, state: PathState, listed: ListedFiles, now: datetime
    ) -> PendingFiles:
        """Return the files that wait beside the watermark.

        The ingested files are looked up only if the plan needs them.
        """
        if entry is None:
            return PendingFiles()
        by_set, until = self._definition.tracking == "set", entry.replace_until
        paths = [file.path for file in listed.files]
        gone_paths = self._marked_as_gone(entry, paths) if until else ()
        return PendingFiles(
            late=() if by_set else self._late(entry, state, now),
            released=self._released(entry, state),
            replace_until=PathState.of(deserialise(until)) if until else None,
            ingested_paths=frozenset(self._ingested_paths(entry, paths)) if by_set else frozenset(),
            gone_paths=gone_paths,
            kept_paths=self._kept_paths(entry, state, {*paths, *gone_paths}) if until else (),
        )

    def _kept_paths(self, entry: Entry, state: PathState, others: Collection[str]) -> tuple[str, ...]:
        """Return the loaded files above the watermark that are not among others, if a load finds rows by keys."""
        if not self.dataflow.target.merges:
            return ()
        return tuple(self._loaded_files(entry, above_state(self._definition, state).is_above, others))

    def _marked_as_gone(self, entry: Entry, listed: Collection[str]) -> tuple[str, ...]:
        """Return the files that are still gone, and whose rows an operator wants out of the table."""
        marked = IngestedFiles(self.log, self.dataflow.name, entry).with_reason(GOES)
        return tuple(file.path for file in marked if file.path not in {*listed})

    def _ingested_paths(self, entry: Entry, paths: Sequence[str]) -> set[str]:
        return IngestedFiles(self.log, self.dataflow.name, entry).find_handled(paths)

    def _late(self, entry: Entry, state: PathState, now: datetime) -> tuple[SourceFile, ...]:
        """Return the late files that no entry has handled, as they are now; unsettled ones come last."""
        if self.dataflow.late_files != "ingest":
            return ()
        below = sweep_start(self._definition, state, cold_start_of(entry))
        late = unhandled(self.log, self.dataflow, entry, now)
        paths = [file.path for file in (*late.files, *late.settling) if below.is_above(file.path)]
        return self._existing_files(paths[:_LATE_AT_ONCE])

    def _released(self, entry: Entry, state: PathState) -> tuple[SourceFile, ...]:
        """Return the released files at or below the watermark; a run reads those above it with the new files."""
        below = sweep_start(self._definition, state, cold_start_of(entry))
        paths = [released.file.path for released in read_quarantine(self.log, entry).released]
        by_set = self._definition.tracking == "set"
        return self._existing_files([path for path in paths if by_set or below.is_above(path)])

    def _existing_files(self, paths: Sequence[str]) -> tuple[SourceFile, ...]:
        files = self.source.find_files(paths)
        return tuple(files[path] for path in paths if path in files)

    def peek(self, entry: Entry | None, now: datetime, budget: Budget, resume: str | None) -> Listing:
        """List files for the next run within a budget, and count those that ``settle`` holds back.

        Shows whether a run has work to do.
        """
        definition, state = self._definition, state_of(PathState, self.dataflow, entry)
        start = listing_start(definition, state, now, cold_start_of(entry))
        listing = self.source.list_above(start, budget=budget, resume=resume)
        files = listing.listed.files
        if entry is not None and definition.tracking == "set":
            ingested = self._ingested_paths(entry, [file.path for file in files])
            files = tuple(file for file in files if file.path not in ingested)
        new, files = len(files), settled_files(definition, files, now)
        settling = new - len(files)
        if entry is not None:
            released = (
                file for file in self._released(entry, state) if not is_settling(definition, file, now)
            )
            files = in_pair_order([*files, *released])
        return replace(listing, listed=replace(listing.listed, files=files), settling=settling)

    def warn_if_emptied(self, entry: Entry | None) -> list[str]:
        """Return a warning if the source holds no file although the dataflow has loaded some."""
        command = f"strandline ledger {self.dataflow.name} --compare"
        return warn_of_emptied_source(entry, self.source, f"; `{command}` names them")

    def covers(self, state: str, other: str) -> bool:
        """Return whether the last file, or that of no open partition, falls from ``other`` to ``state``."""
        newer, older = (PathState.of(deserialise(text)) for text in (state, other))
        return newer.covers(older, self._definition.template)

    @override
    def modified(self, slice_: PathSlice, before: Watermark, now: datetime) -> int | None:
        """Return the time of the file that was modified last.

        None for late or released files, which say nothing about how far the source is loaded.
        """
        times = (file.modified for file in slice_.all_files)
        return max(times, default=None) if slice_.why == "run" else None


def _warn_of_missing(missing: Sequence[str], deleted: Sequence[str]) -> Iterator[str]:
    """Warn of loaded files that are missing at the source, and say what becomes of their rows."""
    staying = [path for path in missing if path not in {*deleted}]
    if deleted:
        yield f"missing at the source, so their rows are deleted: {first_few(deleted, _NAMED)}"
    if staying:
        yield f"missing at the source, so their rows stay: {first_few(staying, _NAMED)}"
