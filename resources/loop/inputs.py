"""The lake tables that a user's step reads beside the rows, each at one version a slice.

The version is fixed before the slice's intent and recorded in it, so a run that finishes the slice reads
the same rows.

See docs/how-to/chains.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from partitions.errors import BadPart, SourceError
from resources.tables.contract.commits import Version
from resources.tables.contract.table import Table
from resources.tables.unreadable import UNREADABLE_VERSION, unreadable_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class InputTables:
    """The inputs of one dataflow.

    Attributes:
        tables: the tables, by their names in the definition.
        key: the key of the definition that names them.
    """

    tables: Mapping[str, Table] = field(default_factory=dict)
    key: str = "inputs"

    def newest_versions(self) -> dict[str, Version]:
        """Return the newest version of each table. Starts no Spark.

        Raises:
            SourceError: code ``source_missing`` if a table does not exist; or its log cannot be listed.
        """
        return {name: self._newest_version(name, table) for name, table in self.tables.items()}

    def read(self, spark: SparkSession, versions: Mapping[str, Version]) -> dict[str, DataFrame]:
        """Return all rows of each table at its version."""
        return {name: self.tables[name].contents.read(spark, version) for name, version in versions.items()}

    def find_unreadable(
        self, spark: SparkSession, versions: Mapping[str, Version], error: Exception
    ) -> BadPart | None:
        """Return the first version that cannot be read; None if all can.

        :func:`resources.tables.unreadable.unreadable_version` decides.
        """
        for name, version in versions.items():
            if why := unreadable_version(spark, self.tables[name], version, error):
                return BadPart(
                    f"{self.key}.{name}: {why}", part=f"{self.key}.{name}", why=why, code=UNREADABLE_VERSION
                )
        return None

    def _newest_version(self, name: str, table: Table) -> Version:
        try:
            return table.contents.newest_version()
        except SourceError as error:
            raise type(error)(f"{self.key}.{name}: {error.message}", code=error.code) from error
