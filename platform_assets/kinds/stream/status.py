"""The status of a stream: how far behind it is, and what its buffered rows wait for.

See docs/reference/streams.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.instants import time_text
from partitions.plan import pluralize
from partitions.stream.event_time import EventTime
from partitions.stream.state import StreamState
from partitions.stream.waiting_rows import WaitingRows, waiting_rows
from platform_assets.kinds.profile import HasStreamStatus
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog

_NAMED = 50


class TellsStreamStatus(HasStreamStatus):
    """Tells how far a stream is behind, and what its rows wait for."""

    def stream_status(
        self, log: WatermarkLog, dataflow: Dataflow, entry: Entry, now: datetime
    ) -> dict[str, Any]:
        """Return the lags and the waiting rows, as public JSON (docs/reference/cli.md). Opens no source.

        Args:
            log: the log, for the time of the oldest epoch whose rows wait.
            dataflow: the definition.
            entry: its newest entry.
            now: the clock, aware.
        """
        state = StreamState.of(entry.state())
        document: dict[str, Any] = {
            "global_watermark": _time(state.value),
            "newest_event": _time(state.newest_event),
            "watermark_lag_seconds": lag_seconds(state.value, now),
            "event_lag_seconds": lag_seconds(state.newest_event, now),
            "spread": _spread(state),
        }
        if dataflow.streams_with_spark:  # the rows that wait are in the state of Spark's operators
            return {**document, "splits": None, "waiting_rows": None}
        idle_after = dataflow.stream.idle_after
        splits = {
            "known": len(state.splits),
            "awaited": sum(split.watermark is None for split in state.splits.values())
            + len(set(dataflow.stream.splits) - set(state.splits)),
            "idle": sum(split.idle >= idle_after for split in state.splits.values()),
        }
        return {**document, "splits": splits, "waiting_rows": _waiting_rows(log, dataflow, state)}

    def waiting_line(self, status: Mapping[str, Any]) -> str | None:
        """Return what the waiting rows wait for, and since when; None if no row waits."""
        rows = status["waiting_rows"]
        if not rows or not rows["rows"]:
            return None
        waits = "waits" if rows["rows"] == 1 else "wait"
        since = f" since {time_text(rows['since'])} (entry {rows['epoch']})" if rows["since"] else ""
        return f"{pluralize(rows['rows'], 'row')} {waits}{since} for {rows['why']}"


def lag_seconds(at: EventTime | None, now: datetime) -> float | None:
    """Return how far an event time lies behind the clock; None if undefined, or no time."""
    return round((now - at).total_seconds(), 3) if isinstance(at, datetime) else None


def _waiting_rows(log: WatermarkLog, dataflow: Dataflow, state: StreamState) -> dict[str, Any]:
    rows = waiting_rows(dataflow.stream, state)
    if rows is None:
        return {
            "rows": 0,
            "since": None,
            "epoch": None,
            "lowest": None,
            "reason": None,
            "why": None,
            "splits": [],
        }
    return {
        "rows": rows.rows,
        "since": _time_of_entry(log, dataflow.name, rows.epoch),
        "epoch": rows.epoch,
        "lowest": _time(rows.lowest),
        "reason": rows.reason,
        "why": rows.in_words,
        "splits": _splits(rows),
    }


def _time_of_entry(log: WatermarkLog, dataflow: str, number: int | None) -> str | None:
    """Return the time of an entry; None if it is unknown, or its object was removed from the log."""
    if number is None:
        return None
    with suppress(StrandlineError):
        return log.entry(dataflow, number).time
    return None


def _splits(rows: WaitingRows) -> list[dict[str, Any]]:
    """Return the first 50 splits that rows wait for."""
    return [
        {"split": name, "watermark": _time(split.watermark), "epochs_without_rows": split.idle}
        for name, split in rows.splits[:_NAMED]
    ]


def _spread(state: StreamState) -> float | int | None:
    """Return the newest event less the global watermark: seconds, or whole numbers beside such times."""
    if state.value is None or state.newest_event is None:
        return None
    spread = max(state.newest_event - state.value, state.value - state.value)
    return round(spread.total_seconds(), 3) if isinstance(state.value, datetime) else int(spread)


def _time(at: EventTime | None) -> str | int | None:
    return at.isoformat() if isinstance(at, datetime) else at
