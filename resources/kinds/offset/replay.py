"""Replays of commits, chosen by their versions or times, and cut by ``checkpoint``.

A promote swaps the change rows of the commits.

See docs/reference/replay.md, Commits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision
from partitions.log_position import LogPosition
from partitions.offset.commits import Commit
from partitions.offset.definition import OffsetWatermark
from partitions.offset.past_commits import (
    CommitBound,
    PastCommits,
    check_log_reaches,
    commit_bounds,
    commits_between,
    rows_of_commits,
)
from partitions.offset.plan import read_as
from partitions.offset.slices import CommitRange, OffsetSlice, cut_commits
from partitions.offset.state import OffsetState
from partitions.plan import Skip, pluralize
from partitions.predicate import Between, Predicate
from partitions.request import CommitNumber, ReplayCommits
from partitions.sentinels import serialise
from resources.kinds.contract.kind import Kind
from resources.kinds.offset.change_rows import COMMIT_VERSION, keeps_changes
from resources.kinds.offset.opening import open_offset, source_log
from resources.kinds.offset.past_commits import replayed_slice
from resources.kinds.offset.source_log import SourceLog
from resources.kinds.offset.stored_slices import StoredOffsetSlices
from resources.kinds.state_of_entry import state_of
from resources.replay.chunks import ReplayChunk
from resources.replay.isolated.refusals import never_loaded
from resources.replay.isolated.standing import IsolatedReplay, drop_command
from resources.replay.kind import Cut, ReplayKind, Swap
from resources.replay.options import name_dataflow_in_errors, refuse_chunks
from resources.replay.under_way import ReplayInPlace, done_keys
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ENTRIES = 1_000_000
"""All that the log has."""


@dataclass(frozen=True)
class CommitReplay(ReplayKind):
    """A replay of the commits of a range, in slices by ``checkpoint``."""

    @property
    @override
    def can_promote(self) -> bool:
        """Whether rows of the table tell their commit: those of ``on_change: keep``."""
        return keeps_changes(self.dataflow) and not self._is_renumbered

    @property
    def _is_renumbered(self) -> bool:
        """Whether the table above was set back or replaced: rows then have other numbers than their commits."""
        return state_of(OffsetState, self.dataflow, self.newest).number is not None

    def check(self) -> None:
        """Check the range, and in place also that the load can take commits again."""
        options, name = self.options, self.dataflow.name
        refuse_chunks(
            self.dataflow, options, "commits have no chunks but those of checkpoint", "column", "by"
        )
        if options.gone_files is not None:
            raise ConfigurationError(
                f"dataflow {name}: expected no --gone with a watermark of type offset: a delete is a commit like others"
            )
        self._bounds()
        if not options.is_isolated:
            self._check_load()

    def _check_load(self) -> None:
        name, target = self.dataflow.name, self.dataflow.target
        if keeps_changes(self.dataflow):
            if self._is_renumbered:
                raise self._renumbered()
            return
        if not target.only_adds and target.load != "merge_overwrite":
            if self.options.replace and target.load != "scd2":
                raise ConfigurationError(
                    f"dataflow {name}: expected no --replace with load: {target.load} and a watermark of type offset: a commit says which keys it"
                    " deletes"
                )
            return
        why = (
            "rows do not tell which commit they come from, so they would be in the table twice"
            if target.only_adds
            else "the rows of a key are those of the last slice that had some, and earlier commits would replace them"
        )
        isolated = replace(self.options, table=f"{self.dataflow.table}_replay", replace=False)
        raise ConfigurationError(
            f"dataflow {name}: expected load: merge_upsert or scd2, or source.on_change: keep, for a replay of commits in place, found load:"
            f" {target.load}: {why}. Load the table as it is now with `state reset --replace`; or read the commits into a table of their own with --into",
            choices=(f"strandline state reset {name} --replace --reason TEXT", isolated.command(name)),
        )

    def range(self) -> str:
        """Return the bounds: versions, or times."""
        lower, upper = self._bounds()
        return serialise({"lower": lower, "upper": upper})

    @override
    def cut(self, range_: str | None = None) -> Cut:
        """Cut the commits of the range into slices by ``checkpoint``. Reads the log of the table."""
        chosen = self._chosen()
        treated = [read_as(self._log.treatment, self._state, commit) for commit in chosen.commits]
        limits = self.dataflow.watermark_as(OffsetWatermark).checkpoint
        parts = list(cut_commits(limits, chosen.since, treated))
        chunks = [self._chunk(part) for part in parts]
        slices = [self._slice(part, chunk) for part, chunk in zip(parts, chunks, strict=True)]
        skips = []
        if chosen.unread:
            skips.append(
                Skip(pluralize(chosen.unread, "commit"), "lies behind the position; the next run reads it")
            )
        passed = [f"{change}; it is passed over" for slice_ in slices for change in slice_.passes_over]
        with_rows = [[slice_] if not slice_.reads_nothing else [] for slice_ in slices]
        return Cut(chunks, with_rows, skips, passed)

    def _chunk(self, part: CommitRange) -> ReplayChunk:
        first, last = part.commits[0].position, part.last
        after = None if part.since is None else _number_of(part.since)
        return ReplayChunk.of(first.version, last.version + 1, commits=(after, _number_of(last)))

    def _slice(self, part: CommitRange, chunk: ReplayChunk) -> OffsetSlice:
        _, commits = self._logged
        first = [commit.position for commit in commits].index(part.commits[0].position)
        return replayed_slice(self._log, self._state, self.request(chunk), part.since, commits[first:])

    @override
    def request(self, chunk: ReplayChunk, since: int = 0, table: Table | None = None) -> ReplayCommits:
        """Return the request for the chunk's commits."""
        assert chunk.commits is not None
        after, last = chunk.commits
        options = self.options
        return ReplayCommits(
            after,
            last,
            since,
            self.reason(chunk),
            replaces=options.replace and not options.is_isolated,
            saves=options.is_isolated,
        )

    @override
    def done(self, cut: Cut, in_progress: ReplayInPlace | None) -> Collection[ReplayChunk]:
        """Return the chunks whose last commit has an entry of the replay: commits are read in order."""
        if in_progress is None:
            return ()
        positions = done_keys(self.platform.log, self.kind_of(self.dataflow), in_progress)
        numbers = {_number_of(position) for position in positions}
        return {chunk for chunk in cut.chunks if chunk.commits is not None and chunk.commits[1] in numbers}

    def kind_of(self, dataflow: Dataflow) -> Kind[OffsetSlice]:
        """Return the offset kind."""
        return open_offset(self.platform, dataflow)

    def swap(self, isolated: IsolatedReplay, entry: Entry | None, since: Sequence[Entry]) -> Swap:  # noqa: ARG002 - a commit never changes
        """Swap the change rows of the commits, except of those that no run has read yet.

        Raises:
            NeedsDecision: rows of the table do not tell their commit, or no run has read one of these.
        """
        if not self.can_promote:
            raise self._renumbered() if keeps_changes(self.dataflow) else self._not_promotable(isolated)
        state = state_of(OffsetState, self.dataflow, entry)
        commits = self._read_commits(isolated)
        first = commits[0].position if commits else None
        if first is None or state.position is None or state.position.table != first.table:
            raise never_loaded(isolated)
        read = [commit for commit in commits if commit.position.version <= state.position.version]
        if not read:
            raise never_loaded(isolated)
        with name_dataflow_in_errors(self.dataflow):
            self._check_behind_first_read(read[0].position.version, entry)
        part = CommitRange(None, tuple(read), read[-1].position)
        slice_ = OffsetSlice(state.watermark(), part, why="replay", replaces=True, saves=False)
        where = rows_of_commits(read)
        unread = len(commits) - len(read)
        stays = (
            [f"rows of {pluralize(unread, 'commit')} wait for the next run, which reads them"]
            if unread
            else []
        )

        def rows_of(_: DataFrame) -> Predicate:
            return where

        amount = f"rows of {pluralize(len(read), 'commit')} ({isolated.words})"
        return Swap(slice_, slice_.lower, slice_.upper, rows_of, amount, stays)

    def _renumbered(self) -> ConfigurationError:
        name, into = self.dataflow.name, f"{self.dataflow.table}_replay"
        isolated = replace(self.options, table=self.options.table or into, replace=False)
        return ConfigurationError(
            f"dataflow {name}: expected change rows whose _commit_version is the number of their commit, found a table {self.dataflow.source.label} that was"
            " set back or replaced, after which rows have numbers of their own: nothing says which rows are those of a commit. Read the commits into a table of"
            " their own with --into; or read the table again with `state reset --replace`",
            choices=(isolated.command(name), f"strandline state reset {name} --replace --reason TEXT"),
        )

    def _not_promotable(self, isolated: IsolatedReplay) -> NeedsDecision:
        in_place = replace(isolated.options, table=None).command(self.dataflow.name)
        by_keys = self.dataflow.target.load in ("merge_upsert", "scd2")
        remedy = "Replay in place, without --into, and drop this replay" if by_keys else "Drop it"
        return NeedsDecision(
            f"dataflow {self.dataflow.name}: expected a table whose rows tell their commit (source.on_change: keep), found load: {self.dataflow.target.load}:"
            f" nothing says which rows of {self.dataflow.table} those of {isolated.table} replace. {remedy}",
            code="nothing_to_promote",
            choices=(*([in_place] if by_keys else []), drop_command(isolated)),
        )

    def _read_commits(self, isolated: IsolatedReplay) -> list[Commit]:
        """Return the commits that an isolated replay has read, ascending."""
        log, commits = self.platform.log, list[Commit]()
        stored = StoredOffsetSlices()
        for entry in log.history(isolated.log, _ENTRIES):
            intent = log.intent(isolated.log, entry.number)
            if entry.why == "replay" and entry.file_list and intent is not None:
                slice_ = stored.from_rows(intent, log.get_list(entry.file_list, stored.list_kind))
                assert isinstance(slice_.input, CommitRange)
                commits[:0] = slice_.input.commits
        return commits

    def _bounds(self) -> tuple[CommitBound, CommitBound]:
        with name_dataflow_in_errors(self.dataflow):
            return commit_bounds(self.options.start, self.options.end)

    @cached_property
    def _log(self) -> SourceLog:
        return source_log(self.platform, self.dataflow, None)

    @cached_property
    def _logged(self) -> tuple[str, tuple[Commit, ...]]:
        """The id of the table, and all commits that its log has."""
        return self._log.commits_behind(None)

    @property
    def _state(self) -> OffsetState:
        if self.options.is_isolated:
            return OffsetState()
        return state_of(OffsetState, self.dataflow, self.newest)

    def _chosen(self) -> PastCommits:
        """Return the commits of the range that runs have read; of an isolated replay, all of them.

        Raises:
            ConfigurationError: the log lacks some of them, or the table holds rows of a first read among theirs.
            NeedsDecision: the log is not the one that runs have read.
        """
        lower, upper = self._bounds()
        table, commits = self._logged
        position = self._state.position
        if not self.options.is_isolated:
            position = self._position_in_log(table, commits, position)
        read = (
            position if position is not None else None if self.options.is_isolated else LogPosition(table, -1)
        )
        chosen = commits_between(commits, lower, upper, read)
        with name_dataflow_in_errors(self.dataflow):
            check_log_reaches(commits, lower, chosen, self._log.label)
            if chosen.commits and not self.options.is_isolated and keeps_changes(self.dataflow):
                self._check_behind_first_read(chosen.commits[0].position.version, self.newest)
        return chosen

    def _position_in_log(
        self, table: str, commits: Sequence[Commit], position: LogPosition | None
    ) -> LogPosition | None:
        """Return the position up to which the log was read, with the number that its commit has there.

        A rollback of an Iceberg table, which a run has followed, has the number of the commit before it.

        Raises:
            NeedsDecision: code ``source_replaced``: the log does not have that commit.
        """
        if position is None or not commits:
            return position
        if table == position.table:
            if position.version < commits[0].position.version:
                return position
            for commit in commits:
                if _is_same_commit(commit.position, position):
                    return commit.position
        name = self.dataflow.name
        raise NeedsDecision(
            f"dataflow {name}: expected table {self._log.label} with the commits that were read up to {position.words}, found another table, or one that was"
            " set back. Run the dataflow, and replay then",
            code="source_replaced",
            choices=(f"strandline run {name}",),
        )

    def _check_behind_first_read(self, start: int, entry: Entry | None) -> None:
        """Raise ConfigurationError if rows of a first read have the number of a commit of the range.

        A first read gives all its rows the number of its version. The first number of the table may be
        one, and so may the version at which another table was accepted.
        """
        table = self.platform.table(self.dataflow)
        version = table.contents.newest_version() if table.exists() else None
        below = Between(COMMIT_VERSION, None, start)
        first_reads = [
            state.position.version
            for past in self.platform.log.history(self.dataflow.name, _ENTRIES)
            if past.why == "accept" and past.number > (entry.era if entry else 0)
            for state in [OffsetState.of(past.state())]
            if state.position is not None and state.snapshot is not None
        ]
        if (
            version is not None
            and table.contents.holds_any(version, below)
            and start > max(first_reads, default=-1)
        ):
            return
        raise ConfigurationError(
            f"expected a start behind the first read, found version {start}: the table has no rows of earlier commits, or another table was accepted at or behind"
            " it, so rows with this number may be all rows of the table above at that time. Choose a later start, or load the table"
            f" anew: strandline state reset {self.dataflow.name} --replace --reason TEXT"
        )


def _number_of(position: LogPosition) -> CommitNumber:
    return position.version, position.id


def _is_same_commit(position: LogPosition, read: LogPosition) -> bool:
    """Return whether a position in the log is one that was read, whatever number it had then."""
    return position.version == read.version if read.id is None else position.id == read.id
