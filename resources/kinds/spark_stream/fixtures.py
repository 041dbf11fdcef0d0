"""The rows of a test of a stream on Spark's engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.errors import ConfigurationError
from partitions.loads import Append, Load
from resources.kinds.contract.fixtures import FixtureRules

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class SparkStreamFixtures(FixtureRules):
    """Rows of one batch, for a stream without operators."""

    @override
    def rows_read(self, rows: DataFrame) -> DataFrame:
        """Return the rows as they are.

        Raises:
            ConfigurationError: the stream has operators, which only a running query of Spark carries out, or
                several sources.
        """
        several = len(self.dataflow.source.parts) > 1
        if self.dataflow.operators or several:
            names = ", ".join(operator.type for operator in self.dataflow.operators) or "several sources"
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: expected a stream that a test can follow, found {names} with "
                "engine: structured_streaming: only a running query of Spark carries them out. Test a dataflow "
                "that reads its table, or use engine: splits",
            )
        return rows

    @override
    def load(self) -> Load:
        """Return an append: a stream only adds rows."""
        return Append()
