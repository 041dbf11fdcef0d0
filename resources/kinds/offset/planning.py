"""Plan the commits of a table that are not read yet (docs/reference/offsets.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.instants import milliseconds
from partitions.offset.definition import OffsetWatermark
from partitions.offset.plan import plan
from partitions.offset.slices import CommitRange, OffsetSlice
from partitions.offset.state import OffsetState
from partitions.plan import Plan
from partitions.request import DUE, Forced, LateOnly, ReplayCommits, Request
from partitions.sentinels import Watermark, deserialise
from partitions.sources.table import FromTime
from resources.kinds.contract.planning import Planning
from resources.kinds.offset.past_commits import plan_again
from resources.kinds.offset.source_log import SourceLog
from resources.kinds.state_of_entry import state_of
from resources.watermarks.entry import Entry


@dataclass(frozen=True)
class OffsetPlanning(Planning[OffsetSlice]):
    """Plans of commits behind a position.

    Attributes:
        dataflow: the definition.
        log: the table's log.
    """

    replans_after_load: ClassVar[bool] = False
    """A run reads the commits that exist when it starts."""
    pacing: ClassVar[timedelta] = timedelta(0)

    dataflow: Dataflow
    log: SourceLog

    @override
    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[OffsetSlice]:
        """Read the log behind the position, and cut slices. Starts no Spark.

        Raises:
            ConfigurationError: the request is a forced one.
            NeedsDecision: the log is not what it was, or a commit changes rows and must not be passed over.
            SourceError: the table is missing, or its log cannot be read.
        """
        number, name = entry.number if entry else 0, self.dataflow.name
        if isinstance(request, LateOnly):
            return Plan(
                name,
                self.dataflow.kind,
                number,
                now,
                "an offset has no late files: what comes later stands behind it",
            )
        if isinstance(request, ReplayCommits):
            return self._plan_replay(entry, now, request)
        if isinstance(request, Forced):
            raise ConfigurationError(f"dataflow {name}: a forced run needs windows, and an offset has none")
        state = state_of(OffsetState, self.dataflow, entry)
        if state.position is None:
            _check_start(self.dataflow, self.log, now)
        return plan(
            self.dataflow.watermark_as(OffsetWatermark),
            self.log.treatment,
            state,
            self.log.tail(state),
            now,
            dataflow=name,
            table=self.log.label,
            state_number=number,
            begins_with_snapshot=self.log.begins_with_snapshot,
            # all rows of a key that are there when it begins are those of one commit
            cuts_snapshot=self.dataflow.target.load != "merge_overwrite",
        )

    def _plan_replay(self, entry: Entry | None, now: datetime, request: ReplayCommits) -> Plan[OffsetSlice]:
        """Plan the requested commits in one slice; a run that died may have loaded it already."""
        state = state_of(OffsetState, self.dataflow, entry)
        planned = Plan[OffsetSlice](
            self.dataflow.name, self.dataflow.kind, entry.number if entry else 0, now, ""
        )
        slice_ = plan_again(self.log, state, request)
        is_done = entry is not None and entry.number > request.since and entry.reason == request.reason
        if is_done and entry is not None and entry.upper and deserialise(entry.upper) == slice_.upper:
            return replace(planned, why=f"already loaded: {slice_.input.words}")
        if slice_.reads_nothing:
            return replace(planned, why=f"no rows in {slice_.input.words}")
        return replace(planned, why=f"replay of {slice_.input.words}", slices=(slice_,))

    @override
    def covers(self, state: str, other: str) -> bool:
        """Return whether the position does not fall; both are sentinel JSON texts."""
        return OffsetState.of(deserialise(state)).covers(OffsetState.of(deserialise(other)))

    @override
    def modified(self, slice_: OffsetSlice, before: Watermark, now: datetime) -> int | None:
        """Return when the newest commit of a slice was made; None if the log does not say.

        A first read has none.
        """
        if not isinstance(slice_.input, CommitRange) or not slice_.saves:
            return None
        times = [commit.time for commit in slice_.input.commits if commit.time is not None]
        return milliseconds(max(times)) if times else None


def _check_start(dataflow: Dataflow, log: SourceLog, now: datetime) -> None:
    """Raise ConfigurationError if the first run begins at a time that has not come yet."""
    start = log.source.from_
    if isinstance(start, FromTime) and start.time > now:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a time that has come (source.from), found {start.time.isoformat()}: commits up to it would be read."
            " Set source.from to a time up to now; or to latest, and run when you want to begin"
        )
