"""What a kind does to the rows of a test, which stand for the rows of one slice.

See docs/how-to/test-a-dataflow.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.loads import Load

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class FixtureRules(ABC):
    """The kind's part in the way of a slice's rows, without a source, a log and a table."""

    def __init__(self, dataflow: Dataflow) -> None:
        """Store the definition."""
        self.dataflow = dataflow

    def rows_read(self, rows: DataFrame) -> DataFrame:
        """Return the source's rows as the kind hands them to the user's step.

        Raises:
            ConfigurationError: no rows of a test can stand for a slice of this dataflow.
        """
        return rows

    def steered(self, rows: DataFrame) -> DataFrame:
        """Return the rows after the user's step with the columns that the load needs."""
        return rows

    def check_rows(self, rows: DataFrame) -> None:
        """Raise ConfigurationError if the rows after the user's step lack the columns that identify them."""

    @abstractmethod
    def load(self) -> Load:
        """Return the load of a first slice."""
