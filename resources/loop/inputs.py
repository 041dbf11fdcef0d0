"""The tables of the lake that a step of the user reads beside the dataflow's own rows, each at one version a slice (docs/chains.md).

The version is fixed before the slice's intent and recorded in it, so a slice that is finished after a crash reads the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from partitions.errors import BadPart, SourceError
from resources.sources.files.failures import cause
from resources.spark_process import engine_lost
from resources.stores import spark_failure
from resources.tables.table import Table, Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

UNREADABLE_INPUT = "unreadable_input"
"""Code of a BadPart: a version of an input cannot be read. A slice that was begun on it is given up and planned again."""


@dataclass(frozen=True)
class InputTables:
    """The inputs of one dataflow.

    Attributes:
        tables: by the names that the definition gives them.
    """

    tables: Mapping[str, Table] = field(default_factory=dict)

    def newest_versions(self) -> dict[str, Version]:
        """Return the newest version of each table. Starts no Spark.

        Raises:
            SourceError: code ``source_missing``: there is no such table; or its log cannot be listed.
        """
        return {name: _newest_version(name, table) for name, table in self.tables.items()}

    def read(self, spark: SparkSession, versions: Mapping[str, Version]) -> dict[str, DataFrame]:
        """Return all rows of each table at its version."""
        return {name: self.tables[name].read(spark, version) for name, version in versions.items()}

    def find_unreadable(
        self, spark: SparkSession, versions: Mapping[str, Version], error: Exception
    ) -> BadPart | None:
        """Return the first version that cannot be read; None if all can, or if a store or the engine does not answer.

        Args:
            spark: a session.
            versions: that were to be read.
            error: of a write, which may have another reason. If Spark did not get as far as rows, none are read here.
        """
        from pyspark.errors import AnalysisException

        for name, version in versions.items():
            try:
                rows = self.tables[name].read(spark, version)
                _ = rows.schema
                if not isinstance(error, AnalysisException):
                    rows.write.format("noop").mode("overwrite").save()
            except Exception as of_input:  # noqa: BLE001 - whatever Spark says of the table is what is wrong with it
                of_store = spark_failure(str(of_input))
                if engine_lost(of_input) or (of_store and of_store[1].transient):
                    return None
                why = f"version {version} cannot be read: {cause(of_input)}"
                return BadPart(f"inputs.{name}: {why}", part=f"inputs.{name}", why=why, code=UNREADABLE_INPUT)
        return None


def _newest_version(name: str, table: Table) -> Version:
    try:
        return table.newest_version()
    except SourceError as error:
        raise type(error)(f"inputs.{name}: {error.message}", code=error.code) from error
