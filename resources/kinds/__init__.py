"""The kinds of watermark, each bound to its source. Here is which definition is which kind, and how it reads its source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partitions.column.definition import ColumnWatermark
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.path.definition import PathWatermark
from partitions.window.definition import WindowWatermark
from resources.kinds.column import ColumnKind
from resources.kinds.kind import Kind
from resources.kinds.path import PathKind
from resources.kinds.window import WindowKind
from resources.kinds.window_sources import AskedWindows, FolderWindows, NumberedWindows, WindowSource
from resources.sources import Source
from resources.sources.files.source import FileSource
from resources.sources.source import CanNumber, ReadsAbove
from resources.watermarks.log import WatermarkLog


def open_kind(
    dataflow: Dataflow, source: Source, log: WatermarkLog, units: Callable[[], tuple[str, ...]]
) -> Kind[Any]:
    """Return the kind of a dataflow's watermark, bound to its source.

    Args:
        dataflow: its definition.
        source: what it reads.
        log: the watermark log.
        units: looks up the identities of all units of windows.
    """
    match dataflow.watermark, source:
        case PathWatermark(), FileSource():
            return PathKind(dataflow, source, log)
        case ColumnWatermark(), source if not isinstance(source, FileSource) and isinstance(
            source, ReadsAbove
        ):
            return ColumnKind(dataflow, source, source)
        case WindowWatermark(), _:
            return WindowKind(
                dataflow, _window_source(dataflow, source), units, lambda: log.history(dataflow.name)
            )
    raise ConfigurationError(
        f"dataflow {dataflow.name}: expected a source that a {dataflow.kind} watermark reads, found {dataflow.source.shown}"
    )


def _window_source(dataflow: Dataflow, source: Source) -> WindowSource:
    if isinstance(source, FileSource):
        return FolderWindows(dataflow, source)
    return (
        NumberedWindows(dataflow, source, source)
        if isinstance(source, CanNumber)
        else AskedWindows(dataflow, source)
    )
