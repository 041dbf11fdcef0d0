"""Change the columns and partitions of an Iceberg table (docs/reference/iceberg.md, Columns)."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from resources.sql import quoted
from resources.tables.iceberg.columns import dotted, sql_type, stored_type
from resources.tables.iceberg.metadata import Metadata, spark_schema, walk_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Layout:
    """Changes a table's columns and partitions to those of new rows.

    Iceberg changes columns apart from rows: until the rows are replaced, changed columns of old rows are
    NULL.

    Attributes:
        name: name of the table in SQL.
        metadata: metadata of the table.
        partition_by: target partition columns.
    """

    name: str
    metadata: Metadata
    partition_by: tuple[str, ...]

    def fit(self, session: SparkSession, columns: StructType) -> None:
        """Give the table exactly the columns of new rows, in their order, and the target's partitions.

        Can safely be repeated.
        """
        for change in self._changes(columns):
            session.sql(f"ALTER TABLE {self.name} {change}").collect()

    def _changes(self, columns: StructType) -> list[str]:
        from pyspark.sql.types import StructType

        table_fields = {
            field.name: field for field in StructType.fromJson(spark_schema(self.metadata.schema))
        }
        types = {field.name: stored_type(field.dataType) for field in columns}
        # A struct that refuses NULL where rows may have one counts as another type.
        dropped_columns = [name for name, field in table_fields.items() if types.get(name) != field.dataType]
        added_columns = [name for name in types if name not in table_fields or name in dropped_columns]
        required_columns = [
            name for name, field in table_fields.items() if name not in dropped_columns and not field.nullable
        ]
        spec = self.metadata.partition_spec
        partitions = None if set(spec.partition_by or ()) & set(dropped_columns) else spec.partition_by
        changes = []
        if identifiers := self.metadata.identifiers:  # identifier fields may not be NULL
            changes.append(f"DROP IDENTIFIER FIELDS {', '.join(map(dotted, identifiers))}")
        if self._is_sorted_by(dropped_columns):
            changes.append("WRITE UNORDERED")
        if partitions != self.partition_by:
            changes += [f"DROP PARTITION FIELD {quoted(name)}" for name in spec.field_names]
        changes += [f"DROP COLUMN {quoted(name)}" for name in dropped_columns]
        changes += [f"ALTER COLUMN {quoted(name)} DROP NOT NULL" for name in required_columns]
        row_types = {field.name: field.dataType for field in columns}
        changes += [f"ADD COLUMN {quoted(name)} {sql_type(row_types[name])}" for name in added_columns]
        order = [name for name in table_fields if name not in dropped_columns] + added_columns
        if order != list(types):
            places = zip(types, [None, *types], strict=False)
            changes += [
                f"ALTER COLUMN {quoted(name)} {f'AFTER {quoted(before)}' if before else 'FIRST'}"
                for name, before in places
            ]
        if partitions != self.partition_by:
            changes += [f"ADD PARTITION FIELD {quoted(column)}" for column in self.partition_by]
        return changes

    def _is_sorted_by(self, columns: Collection[str]) -> bool:
        column_ids = {id_ for path, id_ in walk_columns(self.metadata.schema) if path[0] in columns}
        return bool(self.metadata.sorted_by & column_ids)
