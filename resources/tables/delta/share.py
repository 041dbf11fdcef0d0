"""Which rows of a Delta table are a dataflow's: all of them, unless several dataflows share it (docs/shared-tables.md)."""

from __future__ import annotations

from dataclasses import dataclass

from partitions.predicate import EVERYTHING, Among, Predicate
from partitions.target import DATAFLOW_COLUMN
from resources.tables.contract.commits import MOST_ROWS
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.rows import distinct_rows


@dataclass(frozen=True)
class Share:
    """A table as one of its dataflows sees it.

    Attributes:
        log: of the table.
        dataflow: that shares it; None: nobody does.
    """

    log: DeltaLog
    dataflow: str | None

    @property
    def columns(self) -> list[str]:
        """The names of the table's columns."""
        table = self.log.table()
        return [field.name for field in table.schema().fields] if table else []

    @property
    def rows(self) -> Predicate:
        """The rows that the dataflow deletes, updates and counts: all, unless the table is shared by now."""
        if self.dataflow is None or DATAFLOW_COLUMN not in self.columns:
            return EVERYTHING
        return Among(DATAFLOW_COLUMN, (self.dataflow,))

    @property
    def is_alone(self) -> bool:
        """Whether no row is another dataflow's."""
        return DATAFLOW_COLUMN in self.columns and all(
            row[DATAFLOW_COLUMN] == self.dataflow
            for row in distinct_rows(self.log, [DATAFLOW_COLUMN], MOST_ROWS)
        )

    @property
    def is_of_others(self) -> bool:
        """Whether a table that is to be shared still is that of one dataflow, whose rows tell nothing of this one's."""
        columns = self.columns if self.dataflow is not None else []
        return bool(columns) and DATAFLOW_COLUMN not in columns
