"""The end of input: how far the global watermark rises so that waiting rows leave.

An operator decides it, or a time without input passes.

See docs/reference/streams.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from partitions.stream.event_time import EventTime, after, later
from partitions.stream.inputs import NoInput
from partitions.stream.operators import Aggregate, Operator, SessionWindows, splits_operator
from partitions.stream.state import Flush, StreamState
from partitions.stream.ticks import HIGHEST
from partitions.stream.windows import Hop

FLUSHED, CLOSED = "flush", "close_after"
"""Why rows leave without input: a decision, or a time without input."""


def draining_watermark(state: StreamState, operators: Sequence[Operator]) -> EventTime | None:
    """Return the lowest global watermark at which all buffered rows leave; the present one if none wait."""
    highest = max((segment.highest for segment in state.segments), default=None)
    if highest is None:
        return state.value
    match splits_operator(operators):
        case Aggregate(window=SessionWindows(gap=gap)):
            end = _next(after(highest, gap))
        case Aggregate(window=window):
            assert not isinstance(window, SessionWindows)
            end = max(end for _, end in Hop.of(window).windows(highest))
        case _:
            end = _next(highest)
    return later(state.value, _capped(end))


def request_flush(state: StreamState, before: EventTime | None) -> StreamState:
    """Return the state after a decision to flush rows once all present input is read.

    Rows below ``before`` leave; None: all rows, as if nothing came after them.
    """
    requested = state.flush
    if before is None or (requested is not None and requested.to is None):
        return replace(state, flush=Flush())
    return replace(state, flush=Flush(later(requested.to if requested else None, _capped(before))))


def flush_epoch(state: StreamState) -> NoInput | None:
    """Return the epoch without input that a decision has requested, after all present input; else None."""
    flush = state.flush
    return None if flush is None else NoInput(flush.to, flush.to is None, FLUSHED)


def pending_epoch(state: StreamState) -> NoInput | None:
    """Return the epoch without input that lets rows below a risen global watermark out; else None.

    It rises without input if a split is removed.
    """
    if state.value is None or (state.drained is not None and state.value <= state.drained):
        return None
    waits = any(segment.lowest < state.value for segment in state.segments)
    return NoInput(state.value, False, FLUSHED) if waits or state.drained is not None else None


def closes_at(
    state: StreamState, close_after: timedelta | None, operators: Sequence[Operator]
) -> datetime | None:
    """Return when waiting rows leave if no input comes before; None if none wait, or they wait for ever."""
    if close_after is None or state.heard_at is None or not state.buffered:
        return None
    ahead = state.carry is not None and state.carry.waiting
    if not ahead and draining_watermark(state, operators) == state.value:
        return None  # The row is at the last possible event time: no watermark lets it out.
    try:
        return state.heard_at + close_after
    except OverflowError:
        return None


def closing_epoch(
    state: StreamState, close_after: timedelta | None, operators: Sequence[Operator], now: datetime
) -> NoInput | None:
    """Return the epoch without input that is due since no input came for ``close_after``; else None."""
    at = closes_at(state, close_after, operators)
    return NoInput(None, True, CLOSED) if at is not None and at <= now else None


def raised_watermark(ending: NoInput, state: StreamState, operators: Sequence[Operator]) -> EventTime | None:
    """Return the global watermark after an epoch without input."""
    return later(state.value, draining_watermark(state, operators) if ending.ends else ending.up_to_time)


def _capped(at: EventTime) -> EventTime:
    """Return an event time that a column can hold."""
    return at if isinstance(at, datetime) else min(at, HIGHEST)


def _next(at: EventTime) -> EventTime:
    """Return the first event time above another; the last possible one stays."""
    return after(at, timedelta(microseconds=1) if isinstance(at, datetime) else 1)
