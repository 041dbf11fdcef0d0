"""The columns and partitions of an Iceberg table whose rows are all replaced (docs/iceberg.md, Columns)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from resources.sql import quoted
from resources.tables.iceberg.columns import as_stored, sql_type
from resources.tables.iceberg.metadata import Metadata, spark_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Layout:
    """Makes a table fit rows. Iceberg changes columns apart from rows: until the rows are replaced, old ones are NULL in what changed.

    Attributes:
        name: of the table, in SQL.
        metadata: of the table.
        partition_by: the columns that it is to be partitioned by.
    """

    name: str
    metadata: Metadata
    partition_by: tuple[str, ...]

    def fit(self, session: SparkSession, wanted: StructType) -> None:
        """Give the table exactly the columns of rows, in their order, and the partitions. Done twice it does no harm."""
        for change in self._changes(wanted):
            session.sql(f"ALTER TABLE {self.name} {change}").collect()

    def _changes(self, wanted: StructType) -> list[str]:
        from pyspark.sql.types import StructType

        there = StructType.fromJson(spark_schema(self.metadata.schema))
        kinds = {field.name: field.dataType.simpleString() for field in there}
        needed = {field.name: as_stored(field.dataType).simpleString() for field in wanted}
        gone = [name for name, kind in kinds.items() if needed.get(name) != kind]
        new = [name for name, kind in needed.items() if kinds.get(name) != kind]
        changes = []
        partitions = self.metadata.partition_by
        if partitions != self.partition_by:
            changes += [f"DROP PARTITION FIELD {quoted(name)}" for name in self.metadata.partition_fields]
        changes += [f"DROP COLUMN {quoted(name)}" for name in gone]
        kinds_of_rows = {field.name: field.dataType for field in wanted}
        changes += [f"ADD COLUMN {quoted(name)} {sql_type(kinds_of_rows[name])}" for name in new]
        order = [name for name in kinds if name not in gone] + new
        if order != list(needed):
            places = zip(needed, [None, *needed], strict=False)
            changes += [
                f"ALTER COLUMN {quoted(name)} {f'AFTER {quoted(before)}' if before else 'FIRST'}"
                for name, before in places
            ]
        if partitions != self.partition_by:
            changes += [f"ADD PARTITION FIELD {quoted(column)}" for column in self.partition_by]
        return changes
