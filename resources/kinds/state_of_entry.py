"""Parsing of the state that an entry holds."""

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
    """Parse the state of an entry; the empty state without an entry.

    Args:
        form: the class of the kind's state.
        dataflow: the entry's dataflow.
        entry: the newest entry; None if there is none.

    Raises:
        CorruptWatermark: the state has another form.
    """
    try:
        return form.of(entry.state() if entry else None)
    except CorruptWatermark as error:
        raise corrupt_record_error(
            f"entry {entry.number if entry else 0} of {dataflow.name}", error.message
        ) from error


def cold_start_of(entry: Entry | None) -> PathState | None:
    """Return the state below which a filtered cold start read nothing; None without such a start."""
    return PathState.of(deserialise(entry.since)) if entry and entry.since else None
