"""What the buffered rows of a stream wait for."""

from __future__ import annotations

from typing import Any

import pytest

from partitions.stream.definition import StreamWatermark
from partitions.stream.epoch import close_epoch, open_epoch
from partitions.stream.state import Carry, Flush, Segment, Split, StreamState
from partitions.stream.waiting_rows import waiting_rows

BUFFER = (Segment("4", 2, 30, 60), Segment("3", 1, 35, 40))


def waiting(state: StreamState, **keys: Any) -> tuple[str, str] | None:
    definition = StreamWatermark.model_validate(
        {"type": "stream", "event_time": "ts", "split": "d", "timeout": 5} | keys
    )
    rows = waiting_rows(definition, state)
    return (rows.reason, rows.in_words) if rows else None


@pytest.mark.parametrize(
    ("state", "keys", "expected"),
    [
        (StreamState({"a": Split(30)}, 30), {}, None),
        (
            StreamState({"a": Split(30), "b": Split(90)}, 30, BUFFER, drained=30),
            {},
            ("slowest", "split a, the slowest, at 30"),
        ),
        (
            StreamState({"a": Split(30, 2), "b": Split(30)}, 30, BUFFER, drained=30),
            {},
            ("slowest", "splits a, b, the slowest, at 30, without rows for 2 epochs"),
        ),
        (
            StreamState({"a": Split(30, 9), "b": Split(40)}, 40, BUFFER, drained=40),
            {},
            ("slowest", "split b, the slowest, at 40"),
        ),
        (
            StreamState({"a": Split(30, 9), "b": Split(40)}, 30, BUFFER, drained=30),
            {"idle": "stall"},
            ("slowest", "split a, the slowest, at 30, without rows for 9 epochs"),
        ),
        (
            StreamState({"": Split(30)}, 30, BUFFER, drained=30),
            {"split": None},
            ("slowest", "newer rows: the watermark is at 30"),
        ),
        (
            StreamState({"a": Split(60)}, None, BUFFER),
            {"splits": ["a", "n1", "n2", "n3", "n4"]},
            ("awaited", "the first row of splits n1, n2, n3 and 1 more"),
        ),
        (
            StreamState({"a": Split(60)}, None, BUFFER),
            {"min_splits": 2},
            ("too_few_splits", "more splits: 1 split so far (min_splits)"),
        ),
        (
            StreamState({"a": Split(60, 5)}, 30, BUFFER, drained=30),
            {},
            ("all_idle", "new rows: all splits are idle"),
        ),
        (
            StreamState({"a": Split(60)}, 30, BUFFER, drained=30, flush=Flush()),
            {},
            ("next_run", "the next run, with which they leave"),
        ),
        (
            StreamState({"a": Split(60)}, 50, BUFFER, drained=30),
            {},
            ("next_run", "the next run, with which they leave"),
        ),
    ],
)
def test_rows_wait_for_what_holds_the_global_watermark_back(
    state: StreamState, keys: dict[str, Any], expected: tuple[str, str] | None
) -> None:
    assert waiting(state, **keys) == expected


def test_the_oldest_epoch_with_waiting_rows_says_since_when_they_wait() -> None:
    definition = StreamWatermark.model_validate({"type": "stream", "event_time": "ts", "timeout": 5})
    rows = waiting_rows(definition, StreamState({"": Split(30)}, 30, BUFFER, carry=Carry(2, 9, 4)))
    assert rows is not None
    assert (rows.rows, rows.epoch, rows.lowest) == (7, 3, 30)


def test_the_newest_event_counts_late_rows_and_never_falls() -> None:
    options = StreamWatermark.model_validate({"type": "stream", "event_time": "ts", "timeout": 5}).policy
    state = StreamState()
    for tops, newest in (({"a": 50}, 50), ({"b": 20}, 50), ({"a": 60}, 60), ({}, 60)):
        state = close_epoch(open_epoch(state, options, tops), options, tops)
        assert state.newest_event == newest
    assert StreamState.of(state.watermark()) == state
    assert StreamState({"a": Split(30)}, 30, BUFFER).newest_event == 60, "a state of an older version"
