"""The rows of a test of a dataflow with a column watermark."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.loads import Load, OrderByColumn, load_for_target
from partitions.predicate import NOTHING
from resources.kinds.column.writing import ColumnWriting
from resources.kinds.contract.fixtures import FixtureRules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class ColumnFixtures(FixtureRules):
    """Rows above a watermark."""

    def check_rows(self, rows: DataFrame) -> None:
        """Raise ConfigurationError if the rows lack a watermark column after the user's step."""
        ColumnWriting(self.dataflow).check_rows(rows)

    def load(self) -> Load:
        """Return the target's load; of two rows of a key the one with the higher value counts."""
        order = tuple(OrderByColumn(name) for name in self.dataflow.column.columns)
        return load_for_target(self.dataflow.target, NOTHING, order)
