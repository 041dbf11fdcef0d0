"""The registry of kinds of watermark, by the class of their definition.

To add a kind: a package beside ``path`` and ``window``, its class in ``AnyWatermark``, and a line in
``KINDS``.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from partitions.column import refusals as column
from partitions.column.definition import ColumnWatermark
from partitions.dataflow_parts import KindRules
from partitions.offset import refusals as offset
from partitions.offset.definition import OffsetWatermark
from partitions.path import refusals as path
from partitions.path.definition import PathWatermark
from partitions.spark_stream import refusals as spark_stream
from partitions.spark_stream.definition import StructuredStream
from partitions.stream import refusals as stream
from partitions.stream.definition import StreamWatermark
from partitions.watermark_definition import WatermarkDefinition
from partitions.window import refusals as window
from partitions.window.definition import WindowWatermark


def _engine(watermark: Any) -> str:
    named = (
        watermark.get("engine", "splits")
        if isinstance(watermark, Mapping)
        else getattr(watermark, "engine", "splits")
    )
    return "structured_streaming" if named == "structured_streaming" else "splits"


_AnyStream = Annotated[
    Annotated[StreamWatermark, Tag("splits")] | Annotated[StructuredStream, Tag("structured_streaming")],
    Discriminator(_engine),
]

AnyWatermark = Annotated[
    PathWatermark | ColumnWatermark | WindowWatermark | OffsetWatermark | _AnyStream,
    Field(discriminator="type"),
]
"""A watermark by its ``type``; a stream by its ``engine``, too."""

KINDS: Mapping[type[WatermarkDefinition], KindRules[Any]] = MappingProxyType(
    {
        PathWatermark: path.RULES,
        ColumnWatermark: column.RULES,
        WindowWatermark: window.RULES,
        OffsetWatermark: offset.RULES,
        StreamWatermark: stream.RULES,
        StructuredStream: spark_stream.RULES,
    }
)
"""The rules of each kind, by the class of ``dataflow.watermark``."""


_BY_NAME = {definition.kind(): definition for definition in tuple(KINDS)[::-1]}


def definition_class(kind: str) -> type[WatermarkDefinition] | None:
    """Return the class that declares a kind; None if there is none. Streams have that of our own engine."""
    return _BY_NAME.get(kind)
