"""The state that an entry holds, as its kind reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, Self, TypeVar

from partitions.dataflow import Dataflow
from partitions.errors import CorruptWatermark
from partitions.path.state import PathState
from partitions.sentinels import deserialise
from resources.watermarks.entry import Entry, corrupt_record_error


class _State(Protocol):
    @classmethod
    def of(cls, watermark: Mapping[str, Any] | None) -> Self: ...


StateT = TypeVar("StateT", bound=_State)


def state_of(form: type[StateT], dataflow: Dataflow, entry: Entry | None) -> StateT:
    """Return what an entry says is loaded.

    Args:
        form: the kind's state.
        dataflow: whose entry it is.
        entry: the newest; None: there is none.

    Raises:
        CorruptWatermark: it is of another form.
    """
    try:
        return form.of(entry.state() if entry else None)
    except CorruptWatermark as error:
        raise corrupt_record_error(
            f"entry {entry.number if entry else 0} of {dataflow.name}", error.message
        ) from error


def cold_start_of(entry: Entry | None) -> PathState | None:
    """Return the state below which a filtered cold start looked at nothing; None if none did."""
    return PathState.of(deserialise(entry.since)) if entry and entry.since else None
