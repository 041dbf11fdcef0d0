"""How far a stream of Spark has read a table, as its checkpoint says.

See docs/how-to/from-delta-streaming.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from partitions.errors import ConfigurationError

_VERSION = "v1"
_BEGINNING = (-1, -100)
"""Indexes of Delta that stand before the first file of a version: of its first and of its third form of offsets."""


@dataclass(frozen=True)
class DeltaStreamOffset:
    """The end of a batch over a Delta table.

    Attributes:
        table: the id of the table.
        next_version: the version that the next batch begins with.
        is_between_versions: whether nothing of that version is read yet.
    """

    table: str
    next_version: int
    is_between_versions: bool


@dataclass(frozen=True)
class IcebergStreamOffset:
    """The end of a batch over an Iceberg table.

    Attributes:
        snapshot: the id of the snapshot that is read last.
        files: how many of its files are read.
        reads_all_files: whether all files of the table are read there, and not those alone that it adds.
    """

    snapshot: str
    files: int
    reads_all_files: bool


def parse_stream_offset(text: str) -> DeltaStreamOffset | IcebergStreamOffset:
    """Return the offset that a file in the folder ``offsets`` of a checkpoint holds.

    Raises:
        ConfigurationError: it has another form, or the query reads something else or several sources.
    """
    lines = text.splitlines()
    if lines[:1] != [_VERSION]:
        raise ConfigurationError(
            f"expected offsets of the form {_VERSION}, found {''.join(lines[:1])[:40]!r}"
        )
    sources = [line for line in lines[2:] if line.strip()]
    if len(sources) != 1:
        raise ConfigurationError(f"expected a query over one table, found one over {len(sources)} sources")
    try:
        return _offset_of(json.loads(sources[0]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"expected the offset of a Delta or Iceberg table, found {sources[0][:200]}"
        ) from error


def _offset_of(fields: Mapping[str, Any]) -> DeltaStreamOffset | IcebergStreamOffset:
    if "snapshot_id" in fields:
        return IcebergStreamOffset(
            str(int(fields["snapshot_id"])), int(fields["position"]), bool(fields["scan_all_files"])
        )
    in_first_snapshot = bool(fields.get("isStartingVersion", fields.get("isInitialSnapshot", False)))
    return DeltaStreamOffset(
        str(fields["reservoirId"]),
        int(fields["reservoirVersion"]),
        int(fields["index"]) in _BEGINNING and not in_first_snapshot,
    )
