"""The kinds of watermark, each bound to its source. Here is which definition is which kind, and how it reads its source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from partitions.column.definition import ColumnWatermark
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.look import Look
from partitions.path.definition import PathWatermark
from partitions.stream.definition import StreamWatermark
from partitions.window.definition import WindowWatermark
from resources.kinds.column.kind import ColumnKind
from resources.kinds.kind import Kind
from resources.kinds.path.kind import PathKind
from resources.kinds.stream.kind import open_stream
from resources.kinds.window.kind import WindowKind
from resources.kinds.window.sources import AskedWindows, FolderWindows, NumberedWindows, WindowSource
from resources.kinds.window.waits import Waits
from resources.notes.looks import last_awaited, last_look
from resources.sources.files.rows import FileRows
from resources.sources.files.source import FileSource
from resources.sources.registry import Source
from resources.sources.source import CanNumber, ReadsAbove
from resources.sources.table import TableRows
from resources.tables.table import Table
from resources.watermarks.log import WatermarkLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_kind(
    dataflow: Dataflow,
    source: Source,
    log: WatermarkLog,
    units: Callable[[], tuple[str, ...]],
    spark: Callable[[], SparkSession],
    sides: Mapping[str, Table],
    waits: Callable[[], Waits | None],
) -> Kind[Any]:
    """Return the kind of a dataflow's watermark, bound to its source.

    Args:
        dataflow: its definition.
        source: what it reads.
        log: the watermark log.
        units: looks up the identities of all units of windows.
        spark: makes a session, for what only a read of the source tells while it is planned.
        sides: the side tables, by their short names.
        waits: looks up what windows wait for; None if they wait for nothing.
    """
    match dataflow.watermark, source:
        case PathWatermark(), FileSource():
            return PathKind(dataflow, source, log)
        case ColumnWatermark(), FileSource():
            rows = _file_rows(dataflow, source, log, spark)
            return ColumnKind(dataflow, rows, rows)
        case ColumnWatermark(), source if not isinstance(source, FileSource) and isinstance(
            source, ReadsAbove
        ):
            return ColumnKind(dataflow, source, source, partial(last_awaited, log, dataflow.name))
        case StreamWatermark(), TableRows() | FileSource():
            return open_stream(dataflow, source, sides)
        case WindowWatermark(), _:
            entries = partial(log.history, dataflow.name)
            return WindowKind(dataflow, _window_source(dataflow, source), units, entries, waits)
    raise ConfigurationError(
        f"dataflow {dataflow.name}: expected a source that a {dataflow.kind} watermark reads, found {dataflow.source.shown}"
    )


def _file_rows(
    dataflow: Dataflow, source: FileSource, log: WatermarkLog, spark: Callable[[], SparkSession]
) -> FileRows:
    def pinned() -> str | None:
        entry = log.newest(dataflow.name)
        return log.get_schema(entry.pinned) if entry and entry.pinned else None

    def seen() -> Look | None:
        return last_look(log, dataflow.name, log.newest(dataflow.name))

    return FileRows(dataflow, source, cache(spark), pinned, seen)


def _window_source(dataflow: Dataflow, source: Source) -> WindowSource:
    if isinstance(source, FileSource):
        return FolderWindows(dataflow, source)
    return (
        NumberedWindows(dataflow, source, source)
        if isinstance(source, CanNumber)
        else AskedWindows(dataflow, source)
    )
