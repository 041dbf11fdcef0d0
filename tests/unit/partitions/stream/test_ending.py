"""When input ends: how far the global watermark rises, and which epoch without input is due (docs/reference/streams.md)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import TypeAdapter

from partitions.sentinels import deserialise, serialise
from partitions.stream.ending import (
    closes_at,
    closing_epoch,
    draining_watermark,
    flush_epoch,
    pending_epoch,
    raised_watermark,
    request_flush,
)
from partitions.stream.inputs import NoInput, input_of
from partitions.stream.operators import Operator
from partitions.stream.state import Carry, Flush, Segment, Split, StreamState
from partitions.stream.ticks import HIGHEST

HOUR = timedelta(hours=1)
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def operators(window: dict[str, Any]) -> tuple[Operator, ...]:
    given = {"type": "aggregate", "window": window, "aggregates": {"n": "count(*)"}}
    return (TypeAdapter[Operator](Operator).validate_python(given),)


def waiting(*times: Any, value: Any = None, **more: Any) -> StreamState:
    segments = tuple(Segment(str(number), 1, at, at, 1) for number, at in enumerate(times, 1))
    return StreamState({"a": Split(value)}, value, segments, epoch=3, drained=value, **more)


@pytest.mark.parametrize(
    ("window", "highest", "end"),
    [
        (None, 7, 8),
        (None, HIGHEST, HIGHEST),
        ({"type": "tumble", "size": 10}, 7, 10),
        ({"type": "tumble", "size": 10}, 10, 20),
        ({"type": "hop", "size": 10, "slide": 4}, 7, 14),
        ({"type": "session", "gap": 5}, 7, 13),
        ({"type": "tumble", "size": 10}, HIGHEST, HIGHEST),
    ],
)
def test_all_leaves_just_above_the_last_row(window: dict[str, Any] | None, highest: int, end: int) -> None:
    state = waiting(3, highest, value=2)
    assert draining_watermark(state, operators(window) if window else ()) == end
    asked = flush_epoch(request_flush(state, None))
    assert asked == NoInput(None, True, "flush")
    assert raised_watermark(asked, state, operators(window) if window else ()) == end


def test_times_rise_by_a_microsecond_and_no_further_than_a_time_can() -> None:
    assert draining_watermark(waiting(NOON), ()) == NOON + timedelta(microseconds=1)
    last = datetime.max.replace(tzinfo=UTC)
    assert draining_watermark(waiting(last), ()) == last


def test_a_time_before_which_rows_leave_never_lowers_the_watermark() -> None:
    state = waiting(5, 9, value=4)
    asked = flush_epoch(request_flush(state, 7))
    assert asked == NoInput(7, False, "flush")
    assert raised_watermark(asked, state, ()) == 7
    assert raised_watermark(asked, waiting(9, value=8), ()) == 8
    assert request_flush(request_flush(state, 7), 6).flush == Flush(7)
    assert request_flush(request_flush(state, 7), 8).flush == Flush(8)
    assert (
        request_flush(request_flush(state, None), 8).flush
        == request_flush(request_flush(state, 8), None).flush
        == Flush()
    )


def test_a_watermark_that_rose_between_epochs_lets_rows_out_without_input() -> None:
    state = replace(waiting(5, 9, value=4), value=7)
    assert pending_epoch(state) == NoInput(7, False, "flush")
    assert pending_epoch(waiting(5, 9, value=4)) is None
    undefined = StreamState({"a": Split()}, 7, (Segment("1", 1, 9, 9, 1),), epoch=1)
    assert pending_epoch(undefined) is None, "no row lies below it"


def test_what_waits_closes_so_long_after_the_last_input_by_the_clock_of_runs() -> None:
    state = waiting(5, value=4, heard_at=NOON)
    assert closes_at(state, HOUR, ()) == NOON + HOUR
    assert closing_epoch(state, HOUR, (), NOON + HOUR - timedelta(seconds=1)) is None
    assert closing_epoch(state, HOUR, (), NOON + HOUR) == NoInput(None, True, "close_after")
    assert closes_at(state, None, ()) is None
    assert closes_at(waiting(value=4, heard_at=NOON), HOUR, ()) is None, "nothing waits"
    assert closes_at(waiting(HIGHEST, value=HIGHEST, heard_at=NOON), HOUR, ()) is None, "it waits for ever"
    looks_ahead = waiting(value=4, heard_at=NOON, carry=Carry(3, 2, 1))
    assert closing_epoch(looks_ahead, HOUR, (), NOON + HOUR) == NoInput(None, True, "close_after")


def test_an_epoch_without_input_and_what_is_known_of_input_are_stored_and_read_back() -> None:
    nothing = NoInput(NOON, True, "flush")
    assert input_of(nothing.to_plain()) == nothing
    for flush in (Flush(), Flush(NOON), None):
        state = waiting(NOON, flush=flush, heard_at=NOON)
        assert StreamState.of(deserialise(serialise(state.watermark()))) == state
    assert "flush" not in waiting(5).watermark()
