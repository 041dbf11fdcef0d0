"""A dataflow's share of the rows of an Iceberg table (docs/reference/loads.md)."""

from __future__ import annotations

from dataclasses import dataclass

from partitions.predicate import EVERYTHING, Among, Predicate
from partitions.target import DATAFLOW_COLUMN
from resources.tables.iceberg.metadata import Metadata


@dataclass(frozen=True)
class IcebergShare:
    """A table as one of its dataflows sees it.

    Attributes:
        dataflow: dataflow that shares the table; None: no one shares it.
    """

    dataflow: str | None

    def rows(self, metadata: Metadata | None) -> Predicate:
        """Return the rows that the dataflow deletes, updates and counts: all, unless the table is shared."""
        if self.dataflow is None or metadata is None:
            return EVERYTHING
        is_shared = any(column["name"] == DATAFLOW_COLUMN for column in metadata.version_schema["fields"])
        return Among(DATAFLOW_COLUMN, (self.dataflow,)) if is_shared else EVERYTHING
