"""The rows of a test of a dataflow with an offset watermark: what commits have done to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.loads import Load
from partitions.offset.changes import CHANGE_COLUMNS
from resources.kinds.contract.fixtures import FixtureRules
from resources.kinds.offset.change_rows import (
    carries_changes,
    check_change_columns,
    load_of,
    steered,
    with_change_columns,
)
from resources.tables.contract.commit_log import VERSION

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class OffsetFixtures(FixtureRules):
    """Rows of one commit that adds them, unless the test gives them columns of changes."""

    @override
    def rows_read(self, rows: DataFrame) -> DataFrame:
        """Return the rows with the columns of changes, if the load needs them."""
        from pyspark.sql import functions as F

        has_own = set(CHANGE_COLUMNS) <= {name.casefold() for name in rows.columns}
        if has_own or not carries_changes(self.dataflow):
            return rows
        return with_change_columns(rows.withColumn(VERSION, F.lit(0).cast("long")), {}, {})

    @override
    def steered(self, rows: DataFrame) -> DataFrame:
        """Return the rows with the columns that steer the load."""
        check_change_columns(self.dataflow, rows.columns, of_step=True)
        return steered(self.dataflow, rows)

    @override
    def load(self) -> Load:
        """Return the target's load."""
        return load_of(self.dataflow)
