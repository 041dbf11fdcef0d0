"""The rows of a test of a dataflow with windows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.loads import Load, OrderByColumn, load_for_target
from partitions.predicate import NOTHING
from resources.kinds.contract.fixtures import FixtureRules
from resources.kinds.window.columns import WindowColumns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class WindowFixtures(FixtureRules):
    """Rows of windows and units. Without columns of the source for both, they are NULL."""

    @property
    def _columns(self) -> WindowColumns:
        return WindowColumns.of(self.dataflow)

    def rows_read(self, rows: DataFrame) -> DataFrame:
        """Return the rows with the columns of window and unit; with keys the latest row of each."""
        return self._columns.tag(rows, None) if self._columns.tagged else self._columns.latest(rows)

    def check_rows(self, rows: DataFrame) -> None:
        """Raise ConfigurationError if the rows lack a window or unit column after the user's step."""
        self._columns.check(rows)

    def load(self) -> Load:
        """Return the target's load; of two rows of a key the later one counts."""
        time = self._columns.time
        return load_for_target(self.dataflow.target, NOTHING, (OrderByColumn(time),) if time else ())
