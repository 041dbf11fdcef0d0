"""Plan the due epochs of a stream over splits (docs/reference/streams.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import ClassVar

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision, SourceError
from partitions.plan import Plan
from partitions.request import DUE, Forced, LateOnly, Request
from partitions.sentinels import deserialise
from partitions.stream.ending import pending_epoch
from partitions.stream.plan import plan
from partitions.stream.slices import EpochSlice
from partitions.stream.state import StreamState
from resources.kinds.contract.planning import Planning
from resources.kinds.state_of_entry import state_of
from resources.kinds.stream.epochs import Epochs, Waiting
from resources.watermarks.entry import Entry


@dataclass(frozen=True)
class StreamPlanning(Planning[EpochSlice]):
    """Plans of epochs over a source's unread input.

    Attributes:
        dataflow: the definition.
        epochs: the source.
    """

    replans_after_load: ClassVar[bool] = False
    """A run reads the input that exists when it starts."""
    pacing: ClassVar[timedelta] = timedelta(0)

    dataflow: Dataflow
    epochs: Epochs

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[EpochSlice]:
        """List the source's unread input, and cut it into epochs. Starts no Spark.

        Raises:
            ConfigurationError: the request is a forced one.
            NeedsDecision: the source was replaced by another one, or no longer lists all unread input.
            SourceError: the source is missing, or has changed rows.
        """
        number, name = entry.number if entry else 0, self.dataflow.name
        if isinstance(request, LateOnly):
            return Plan(name, "stream", number, now, "a stream has late rows, but no late files")
        if isinstance(request, Forced):
            raise ConfigurationError(f"dataflow {name}: a forced run needs windows, and a stream has none")
        state = known_state(self.dataflow, entry)
        waiting = self._waiting(entry, state, now)
        planned = plan(
            self.dataflow.stream,
            state,
            waiting.inputs,
            now,
            dataflow=name,
            state_number=number,
            held_back=waiting.held_back,
            operators=self.dataflow.operators,
        )
        slices = tuple(replace(slice_, since=waiting.since) for slice_ in planned.slices)
        return replace(
            planned, slices=slices, warnings=(*planned.warnings, *waiting.warnings), calls=waiting.calls
        )

    def _waiting(self, entry: Entry | None, state: StreamState, now: datetime) -> Waiting:
        """Return the source's unread input; if listing it fails, none, so that flushed rows still leave.

        Raises:
            SourceError: the listing fails, and no flushed row waits.
            NeedsDecision: the same.
        """
        try:
            return self.epochs.waiting(entry, state, now)
        except (SourceError, NeedsDecision) as error:
            if state.flush is None and pending_epoch(state) is None:
                raise
            return Waiting((), warnings=[f"cannot look for new input: {error.message}"])

    def covers(self, state: str, other: str) -> bool:
        """Return whether no value falls: the global watermark, those of common splits, the read position."""
        after, before = StreamState.of(deserialise(state)), StreamState.of(deserialise(other))
        common_splits = [name for name in before.splits if name in after.splits]
        pairs = [(after.splits[name].watermark, before.splits[name].watermark) for name in common_splits]
        pairs.append((after.value, before.value))
        none_falls = all(old is None or (new is not None and new >= old) for new, old in pairs)
        return none_falls and self.epochs.covers(after, before)


def known_state(dataflow: Dataflow, entry: Entry | None) -> StreamState:
    """Return the state of a stream over splits.

    A state of an older version lacks the time of its last input: it gets the entry's time.
    """
    state = state_of(StreamState, dataflow, entry)
    if state.heard_at is not None or entry is None or not state.epoch:
        return state
    return replace(state, heard_at=datetime.fromisoformat(entry.time))
