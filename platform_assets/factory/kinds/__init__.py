"""The Dagster definitions of each kind of watermark: one package for each, and their registry.

Importing it imports Dagster, which takes a second. What people read about a kind is in
``platform_assets.kinds``. To add a kind, add a package beside ``path`` and ``window``, and a line below.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from partitions.dataflow import Dataflow
from platform_assets.factory.kinds.column.definitions import ColumnDefinitions
from platform_assets.factory.kinds.contract import KindDefinitions
from platform_assets.factory.kinds.offset.definitions import OffsetDefinitions
from platform_assets.factory.kinds.path.definitions import PathDefinitions
from platform_assets.factory.kinds.stream.definitions import StreamDefinitions
from platform_assets.factory.kinds.window.definitions import WindowDefinitions

DEFINITIONS: Mapping[str, KindDefinitions] = MappingProxyType(
    {
        "path": PathDefinitions(),
        "column": ColumnDefinitions(),
        "window": WindowDefinitions(),
        "offset": OffsetDefinitions(),
        "stream": StreamDefinitions(),
    }
)
"""By the name of the kind: ``watermark.type`` of a dataflow."""


def definitions_of(dataflow: Dataflow) -> KindDefinitions:
    """Return the Dagster definitions of a dataflow's kind."""
    return DEFINITIONS[dataflow.kind]
