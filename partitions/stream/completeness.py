"""The time up to which a stream's table is complete, which ``to: watermark`` waits for.

See docs/reference/streams.md, Complete days.
"""

from __future__ import annotations

from datetime import timedelta

from partitions.dataflow import Dataflow
from partitions.refusal import Refusal
from partitions.stream.definition import StreamWatermark
from partitions.stream.event_time import EventTime
from partitions.stream.operators import Aggregate, OverWindow, SessionWindows, splits_operator
from partitions.stream.windows import Hop
from partitions.window.upstream_refusals import retention_refusal

_TO, _COLUMN = ("watermark", "definition"), ("source", "window_column")


def completeness_refusal(reader: Dataflow, makers: tuple[Dataflow, ...]) -> Refusal | None:
    """Return why a dataflow that follows a watermark has nothing to wait for; None if nothing is wrong.

    Args:
        reader: the dataflow whose windows wait.
        makers: the dataflows that write the table it reads.
    """
    if not reader.watermark.follows or reader.watermark.waits_for_upstream:
        return None
    table = reader.source.lake_table
    if table is None:
        return Refusal(
            _TO, f"to: watermark beside {reader.source.form}", "a source of type table, which a stream loads"
        )
    stream = makers[0] if len(makers) == 1 else None
    if stream is None or not isinstance(stream.watermark, StreamWatermark):
        return Refusal(
            _TO,
            f"to: watermark over {table}, which no stream with engine: splits loads",
            "the table of such a stream, or another value of to",
        )
    if not isinstance(stream.watermark.timeout, timedelta):
        problem = f"to: watermark over {table}, whose event times are whole numbers"
        return Refusal(_TO, problem, "a stream with timestamps")
    columns = complete_columns(stream)
    column = reader.source.row_columns.window
    if column not in columns:
        expected = (
            f"{' or '.join(columns)} ({table} is complete by this time)"
            if columns
            else _no_complete_column(stream)
        )
        return Refusal(_COLUMN, column or "nothing", expected)
    return retention_refusal(_TO, stream, column or "", "to: watermark")


def complete_columns(stream: Dataflow) -> tuple[str, ...]:
    """Return the time columns of a stream's table that tell completeness; empty if there are none.

    No new row has a time below the complete time in such a column.
    """
    match splits_operator(stream.operators):
        case None:
            return (stream.stream.event_time,)
        case OverWindow(columns=columns):
            ahead = any(column.call.reach[1] > 0 for column in columns.values())
            return () if ahead else (stream.stream.event_time,)
        case Aggregate(window=SessionWindows()):
            return ("window_end",)
        case Aggregate():
            return ("window_start", "window_end")


def complete_up_to(stream: Dataflow, column: str | None, drained: EventTime | None) -> EventTime | None:
    """Return the time of a column below which a stream's table has all its rows; None if it is unknown.

    Args:
        stream: writes the table.
        column: one of :func:`complete_columns`.
        drained: the global watermark of its newest epoch, up to which rows have left the buffer.
    """
    aggregate = splits_operator(stream.operators)
    if drained is None or column != "window_start" or not isinstance(aggregate, Aggregate):
        return drained
    window = aggregate.window
    assert not isinstance(window, SessionWindows)
    return Hop.of(window).live_from(drained)


def _no_complete_column(stream: Dataflow) -> str:
    return (
        f"another stream than {stream.name}: its rows wait for later ones (lead, or a frame that ends after "
        "the row)"
    )
