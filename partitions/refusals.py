"""Parts of a dataflow that fit no other: combinations that are refused before anything runs (spec 05, spec 09)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from partitions.sources import FilesSource, JdbcSource, TableSource
from partitions.window.definition import WindowWatermark

if TYPE_CHECKING:
    from partitions.dataflow import Dataflow

_WHOLE = {"start", "end"}


def refusals(flow: Dataflow) -> Iterator[str]:
    """What does not fit, each in a sentence that begins with the keys."""
    watermark = flow.watermark
    if isinstance(watermark, WindowWatermark):
        yield from _source(flow, watermark)
        yield from _abstinence(flow, watermark)
        yield from _load(flow, watermark)
        return
    if not isinstance(flow.source, FilesSource):
        yield f"watermark.type: a path watermark needs files: expected source.type: files, found {flow.source.type}"
    if flow.target.load != "append" or flow.target.replace_by_watermark or flow.target.merge_keys:
        yield "target.load: files above a path watermark are appended: expected load: append without merge_keys and replace_by_watermark"
    if flow.schedule:
        yield "schedule: a path watermark has a sensor: expected no schedule"


def _source(flow: Dataflow, watermark: WindowWatermark) -> Iterator[str]:
    """Something must tell the source which window and which units are asked for."""
    source = flow.source
    if isinstance(source, FilesSource):
        yield "source.type: files are loaded above a path watermark: expected jdbc or table for windows, found files"
        return
    told = source.placeholders
    if watermark.time_entry and source.window_column is None and not told >= _WHOLE:
        yield "source.window_column: expected the column with a row's time, or a query with {start} and {end}, found neither"
    if not watermark.time_entry and (source.window_column is not None or told & _WHOLE):
        yield "source: window_column, {start} and {end} tell a window: expected a definition with a datetime entry beside them, found none"
    fields = watermark.unit_fields
    lost = [name for name in fields if name not in source.unit_columns and f"unit.{name}" not in told]
    if lost:
        yield f"source.unit_columns: expected a column for each of {', '.join(fields)} (or {{unit.{lost[0]}}} in a query), found none for {lost[0]}"
    unknown = sorted(
        {*source.unit_columns, *(name.removeprefix("unit.") for name in told - _WHOLE)} - set(fields)
    )
    if unknown:
        yield f"source.unit_columns: expected names of the definition's units ({', '.join(fields) or 'it has none'}), found {unknown[0]}"


def _abstinence(flow: Dataflow, watermark: WindowWatermark) -> Iterator[str]:
    by_range = isinstance(flow.source, JdbcSource | TableSource) and (
        flow.source.window_column is not None or flow.source.placeholders >= _WHOLE
    )
    if watermark.abstinent and by_range and not watermark.abstinent_skips:
        yield (
            "watermark.abstinent: rows are read by range here, so what lies in the abstinent period is never read:"
            " expected abstinent_skips: true beside it, or no abstinent (spec 03)"
        )


def _load(flow: Dataflow, watermark: WindowWatermark) -> Iterator[str]:
    target = flow.target
    if target.load == "merge_overwrite" and not target.replace_by_watermark:
        yield "target.replace_by_watermark: expected true with load: merge_overwrite and windows: a window is replaced by what is read of it"
    if target.load != "merge_overwrite" and target.replace_by_watermark:
        yield f"target.load: expected merge_overwrite with replace_by_watermark, found {target.load}"
    if target.load == "append" and watermark.grace:
        yield "watermark.grace: append adds what is read again a second time: expected load: merge_overwrite with replace_by_watermark: true, or no grace"
    if target.load == "append" and target.merge_keys:
        yield "target.merge_keys: append compares nothing: expected no merge_keys, or load: merge_overwrite"
    if target.load == "append" and not watermark.time_entry:
        yield "target.load: without a datetime entry each run reads every unit again: expected merge_overwrite with replace_by_watermark: true"
