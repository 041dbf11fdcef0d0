"""The partition spec of an Iceberg table's new files. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PartitionSpec:
    """The partition spec of new files.

    Attributes:
        fields: fields in the table's metadata, including those that no longer partition.
        columns: names of the table's columns, by id.
    """

    fields: Sequence[Mapping[str, Any]]
    columns: Mapping[int, str]

    @property
    def is_partitioned(self) -> bool:
        """Return whether the spec has any field, even one that no longer partitions."""
        return bool(self.fields)

    @property
    def field_names(self) -> tuple[str, ...]:
        """Names of the fields that partition the table, by any transform."""
        return tuple(field["name"] for field in self._active_fields)

    @property
    def partition_by(self) -> tuple[str, ...] | None:
        """Columns that partition the table by their values; None if another transform does, too."""
        fields = self._active_fields
        if any(
            field["transform"] != "identity" or field["source-id"] not in self.columns for field in fields
        ):
            return None
        return tuple(self.columns[field["source-id"]] for field in fields)

    @property
    def _active_fields(self) -> list[Mapping[str, Any]]:
        return [field for field in self.fields if field["transform"] != "void"]
