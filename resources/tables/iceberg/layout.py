"""The columns and partitions of an Iceberg table whose rows are all replaced (docs/reference/iceberg.md, Columns)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from resources.sql import quoted
from resources.tables.iceberg.columns import as_stored, dotted, sql_type
from resources.tables.iceberg.metadata import Metadata, columns_within, spark_schema

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

        there = {field.name: field for field in StructType.fromJson(spark_schema(self.metadata.schema))}
        needed = {field.name: as_stored(field.dataType) for field in wanted}
        # Of another type is also a struct that refuses NULL where rows may have one.
        gone = [name for name, field in there.items() if needed.get(name) != field.dataType]
        new = [name for name in needed if name not in there or name in gone]
        required = [name for name, field in there.items() if name not in gone and not field.nullable]
        spec = self.metadata.partition_spec
        partitions = None if set(spec.partition_by or ()) & set(gone) else spec.partition_by
        changes = []
        if identifiers := self.metadata.identifiers:  # they may not be NULL
            changes.append(f"DROP IDENTIFIER FIELDS {', '.join(map(dotted, identifiers))}")
        if self._is_sorted_by(gone):
            changes.append("WRITE UNORDERED")
        if partitions != self.partition_by:
            changes += [f"DROP PARTITION FIELD {quoted(name)}" for name in spec.field_names]
        changes += [f"DROP COLUMN {quoted(name)}" for name in gone]
        changes += [f"ALTER COLUMN {quoted(name)} DROP NOT NULL" for name in required]
        kinds_of_rows = {field.name: field.dataType for field in wanted}
        changes += [f"ADD COLUMN {quoted(name)} {sql_type(kinds_of_rows[name])}" for name in new]
        order = [name for name in there if name not in gone] + new
        if order != list(needed):
            places = zip(needed, [None, *needed], strict=False)
            changes += [
                f"ALTER COLUMN {quoted(name)} {f'AFTER {quoted(before)}' if before else 'FIRST'}"
                for name, before in places
            ]
        if partitions != self.partition_by:
            changes += [f"ADD PARTITION FIELD {quoted(column)}" for column in self.partition_by]
        return changes

    def _is_sorted_by(self, columns: Collection[str]) -> bool:
        of_columns = {id_ for path, id_ in columns_within(self.metadata.schema) if path[0] in columns}
        return bool(self.metadata.sorted_by & of_columns)
