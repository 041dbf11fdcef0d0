"""Replays aside of files: those of a range of partition folders, in slices by ``checkpoint``; a promote swaps the rows of each file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.path.slices import PathSlice, watermark_of
from partitions.path.source import SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.plan import Plan, counted
from partitions.predicate import Among, Between, Predicate
from partitions.replay.parts import promoted_files, rows_of_files
from partitions.request import ReplayFiles
from partitions.sentinels import serialise
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.kinds.path.kind import PathKind
from resources.kinds.path.opening import open_path
from resources.kinds.path.replay import check_files_of_rows
from resources.replay.asked import Asked, asked_partitions
from resources.replay.isolated.chunks import AsideChunk, Parts
from resources.replay.isolated.kind import AsideKind, Begun, Swap
from resources.replay.isolated.refusals import again_refused, never_loaded
from resources.replay.isolated.standing import Aside
from resources.sources.files.paths import SOURCE_FILE
from resources.sql import quoted
from resources.watermarks.entry import Entry
from resources.watermarks.ingested import Ingested
from resources.watermarks.quarantine import read_quarantine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_NAMED = 100
"""Files of one condition that are named."""


class AsideFiles(AsideKind):
    """Files of a range of partitions."""

    def check(self, asked: Asked, now: datetime) -> None:
        """Of partitions, in a table whose rows tell their files."""
        asked_partitions(self.dataflow, asked)
        check_files_of_rows(self.platform, self.dataflow)

    def planned(self, asked: Asked, now: datetime) -> Plan[PathSlice]:
        """List the source."""
        kind, newest = open_path(self.platform, self.dataflow), self.platform.log.newest(self.dataflow.name)
        return kind.read_again(newest, *asked_partitions(self.dataflow, asked), now, replaces=True)

    def begun(self, asked: Asked, now: datetime) -> Begun:
        """Bounds are folders."""
        lower, upper = asked_partitions(self.dataflow, asked)
        return Begun(serialise({"lower": lower, "upper": upper}))

    def parts(self, aside: Aside, now: datetime) -> Parts:
        """Its files as they are listed now."""
        plan = self.planned(Asked(aside.request["start"], aside.request["end"]), now)
        chunks = tuple(_chunk(slice_) for slice_ in plan.slices)
        return Parts(chunks=chunks, warnings=tuple(plan.warnings))

    def loaded_by(self, aside: Aside) -> Dataflow:
        """The live dataflow under the replay's name."""
        return aside.of(self.dataflow)

    def kind_of(self, loaded_by: Dataflow) -> PathKind:
        """The live source under the replay's name."""
        return open_path(self.platform, loaded_by)

    def request(self, aside: Aside, chunk: AsideChunk) -> ReplayFiles:
        """Its files, as they are when they are read."""
        return ReplayFiles(chunk.files, 0, chunk.words, replaces=True, saves=True)

    def swap(self, aside: Aside, entry: Entry | None, since: Sequence[Entry]) -> Swap:
        """The rows of each file that the replay has loaded, but for files that the live flow has loaded since or will load."""
        log, dataflow, kind = self.platform.log, self.dataflow, open_path(self.platform, self.dataflow)
        known = list(Ingested(log, aside.log, log.newest(aside.log)).all())
        loaded = [SourceFile(*file[:4]) for file in known if file.reason is None]
        paths = [file.path for file in loaded]
        recorded = Ingested(log, dataflow.name, entry).recorded(paths)
        newer = {path for path, file in recorded.items() if file.number > aside.number}
        released = {aside.file.path for aside in read_quarantine(log, entry).released}
        below = kind.not_new(entry, paths) - released
        files = in_pair_order(list(promoted_files(loaded, newer, below)))
        if not files and newer:
            number = max(recorded[path].number for path in newer)
            raise again_refused(aside, f"entry {number}")
        if not files:
            raise never_loaded(aside)
        state = watermark_of(dataflow.path, PathState.of(entry.state() if entry else None))
        slice_ = PathSlice(files, state, state, dataflow.path, why="replay", replaces=True)
        unread = [file.path for file in known if file.reason is not None]
        left = {
            "could not be read": unread,
            "were loaded by runs since": sorted(newer),
            "are left to the next run": sorted({*paths} - below - newer),
        }
        stays = [
            f"rows of {_named(names)} stay as they are: they {why}" for why, names in left.items() if names
        ]
        swapped = {file.path for file in files}
        where = partial(self._where, swapped, {file.path for file in known} - swapped)
        amount = f"rows of {counted(len(files), 'file')} ({aside.words})"
        return Swap(slice_, None, slice_.upper, where, amount, stays)

    def _where(self, swapped: Collection[str], aside: Collection[str], rows: DataFrame) -> Predicate:
        """The rows of files; of many by ranges of paths between which neither table holds another's: each path costs some milliseconds."""
        live = self.platform.table(self.dataflow)
        if len(swapped) <= _MOST_NAMED or not live.exists():
            return Among(SOURCE_FILE, tuple(sorted(swapped)))
        within = Between(SOURCE_FILE, min(swapped), max(swapped), upper_inclusive=True)
        there = live.read(rows.sparkSession, live.newest_version(), within).where(sql(within, SPARK))
        held = {row[0] for row in there.select(quoted(SOURCE_FILE)).distinct().collect()}
        return rows_of_files(SOURCE_FILE, swapped, held.union(aside))


def _chunk(slice_: PathSlice) -> AsideChunk:
    bounds = {"lower": slice_.files[0].path, "upper": slice_.files[-1].path}
    return AsideChunk(range=serialise(bounds), files=tuple(slice_.keys))


def _named(paths: Sequence[str]) -> str:
    shown = ", ".join(paths[:5])
    more = f" and {len(paths) - 5:,} more" if len(paths) > 5 else ""
    return f"{counted(len(paths), 'file')} ({shown}{more})"
