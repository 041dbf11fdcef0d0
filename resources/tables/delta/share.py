"""A dataflow's share of the rows of a Delta table (docs/reference/loads.md)."""

from __future__ import annotations

from dataclasses import dataclass

from partitions.predicate import EVERYTHING, Among, Predicate
from partitions.target import DATAFLOW_COLUMN
from resources.tables.contract.commits import MAX_ROWS
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.rows import distinct_rows


@dataclass(frozen=True)
class DeltaShare:
    """A table as one of its dataflows sees it.

    Attributes:
        log: log of the table.
        dataflow: dataflow that shares the table; None: no one shares it.
    """

    log: DeltaLog
    dataflow: str | None

    @property
    def columns(self) -> list[str]:
        """Names of the table's columns."""
        table = self.log.table()
        return [field.name for field in table.schema().fields] if table else []

    @property
    def rows(self) -> Predicate:
        """Rows that the dataflow deletes, updates and counts: all, unless the table is shared."""
        if self.dataflow is None or DATAFLOW_COLUMN not in self.columns:
            return EVERYTHING
        return Among(DATAFLOW_COLUMN, (self.dataflow,))

    @property
    def is_alone(self) -> bool:
        """Return whether every row is this dataflow's."""
        return DATAFLOW_COLUMN in self.columns and all(
            row[DATAFLOW_COLUMN] == self.dataflow
            for row in distinct_rows(self.log, [DATAFLOW_COLUMN], MAX_ROWS)
        )

    @property
    def is_of_others(self) -> bool:
        """Return whether the table still belongs to one other dataflow.

        Its rows then say nothing about this dataflow's.
        """
        columns = self.columns if self.dataflow is not None else []
        return bool(columns) and DATAFLOW_COLUMN not in columns
