"""The picture of how the watermarks of a stream's splits rose over the last epochs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from dagster import MetadataValue

from partitions.dataflow import Dataflow
from partitions.plan import pluralize
from partitions.stream.event_time import EventTime
from partitions.stream.state import StreamState
from partitions.stream.ticks import event_time, ticks
from platform_assets.factory.kinds.image import FAILED, FULL, NONE, PART, Mark, chart
from resources.watermarks.log import WatermarkLog

_LEGEND = {
    FULL: "green is complete",
    PART: "yellow the watermark of a split",
    FAILED: "red of an idle one",
    NONE: "grey waits",
}

_EPOCHS, _HIGH, _FEWEST = 60, 24, 5
"""The most epochs drawn, the cells of event time, and the fewest epochs for a stream with very many splits."""
_POINTS = 20_000
"""The most watermarks of splits that are read, over all epochs."""


def splits_metadata(log: WatermarkLog, dataflow: Dataflow) -> dict[str, Any]:
    """Return the picture as metadata; nothing before a split has a watermark."""
    newest = log.newest(dataflow.name)
    splits = len(StreamState.of(newest.state() if newest else None).splits)
    entry_count = max(_FEWEST, min(_EPOCHS, _POINTS // max(splits, 1)))
    states = [StreamState.of(entry.state()) for entry in log.history(dataflow.name, entry_count)]
    image = splits_picture(states[::-1], dataflow.stream.idle_after)
    return {"watermarks": MetadataValue.md(image)} if image else {}


def splits_picture(states: Sequence[StreamState], idle_after: int) -> str:
    """Return an image in Markdown: a column for each state, a cell for each stretch of event time.

    "" if no split has a watermark.

    Args:
        states: states of one stream, oldest first.
        idle_after: epochs without rows after which a split is idle.
    """
    watermarks = [
        [(ticks(split.watermark), split.idle >= idle_after) for split in state.splits.values() if split.watermark is not None]
        for state in states
    ]  # fmt: skip
    drawn_states = [(state, points) for state, points in zip(states, watermarks, strict=True) if points]
    if not drawn_states:
        return ""
    lowest = min(at for _, points in drawn_states for at, _ in points)
    highest = max(at for _, points in drawn_states for at, _ in points)
    columns = [_column(state, points, lowest, highest) for state, points in drawn_states]
    cells = [list(row) for row in zip(*columns, strict=True)][::-1]
    timed = not isinstance(
        next(split.watermark for split in drawn_states[-1][0].splits.values() if split.watermark is not None),
        int,
    )
    first, last = (_mark(event_time(at, timed=timed)) for at in (lowest, highest))
    newest, count = drawn_states[-1][0], len(drawn_states)
    numbers = sorted({0, count // 2, count - 1})
    marks = [Mark(number + 0.5, f"epoch {drawn_states[number][0].epoch}") for number in numbers]
    image = chart("watermarks", cells, {0: last, _HIGH - 1: first}, marks, row_height=8, gap=1)
    parts = [text for value, text in _LEGEND.items() if any(value in row for row in cells)]
    splits = pluralize(len(newest.splits), "split")
    return f"{image}\n\n{', '.join(parts).capitalize()}. Event time by epoch, {splits}."


def _mark(at: EventTime) -> str:
    """Return an event time for the scale: a time in UTC without seconds, or a whole number."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}" if isinstance(at, datetime) else f"{at:,}"


def _column(state: StreamState, points: Sequence[tuple[int, bool]], lowest: int, highest: int) -> list[int]:
    """Return the cells of one state from the bottom."""

    def cell(at: int) -> int:
        return min(_HIGH - 1, max(0, (at - lowest) * _HIGH // max(highest - lowest, 1)))

    complete = -1 if state.value is None or ticks(state.value) < lowest else cell(ticks(state.value))
    cells = [FULL if place <= complete else NONE for place in range(_HIGH)]
    for at, _ in points:
        cells[cell(at)] = PART
    for at, is_idle in points:
        if is_idle:
            cells[cell(at)] = FAILED
    return cells
