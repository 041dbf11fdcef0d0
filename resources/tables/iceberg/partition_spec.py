"""How an Iceberg table lays out new files: the fields of its partition spec. Nothing is read here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PartitionSpec:
    """The partition spec of new files.

    Attributes:
        fields: as the table's metadata has them, also those that partition no more.
        columns: names of the table's columns, by their ids.
    """

    fields: Sequence[Mapping[str, Any]]
    columns: Mapping[int, str]

    @property
    def is_partitioned(self) -> bool:
        """Whether new files are laid out by anything, also by what partitions no more."""
        return bool(self.fields)

    @property
    def field_names(self) -> tuple[str, ...]:
        """The names of the fields that partition the table, by the values of columns or by something else."""
        return tuple(field["name"] for field in self._active_fields)

    @property
    def partition_by(self) -> tuple[str, ...] | None:
        """The columns that partition the table by their values; None if it is partitioned by something else, too."""
        fields = self._active_fields
        if any(
            field["transform"] != "identity" or field["source-id"] not in self.columns for field in fields
        ):
            return None
        return tuple(self.columns[field["source-id"]] for field in fields)

    @property
    def _active_fields(self) -> list[Mapping[str, Any]]:
        return [field for field in self.fields if field["transform"] != "void"]
