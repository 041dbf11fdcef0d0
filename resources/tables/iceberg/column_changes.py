"""Change an Iceberg table's columns for new rows, as the schema mode says (docs/reference/schemas.md).

Iceberg changes columns apart from rows: in a metadata version of its own, which changes no row and no
snapshot and can safely be repeated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from partitions.errors import RowsRefused
from partitions.evolution import SchemaMode, evolve_schema
from partitions.loads import Load, ReplaceAll, Scd2
from partitions.schema_types import Schema, all_nullable, type_text
from partitions.target import COMMIT_COLUMN
from resources.sql import quoted
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.iceberg.columns import dotted, sql_type, stored_type
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.numbered_commit import NumberedCommit
from resources.tables.row_columns import evolve_columns, fit_to_table, written_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType


@dataclass(frozen=True)
class ColumnChanges:
    """The column changes of one load.

    Attributes:
        commit: commit of the number.
        schema_mode: how writes change the table's columns.
    """

    commit: NumberedCommit
    schema_mode: SchemaMode

    def alter_table(self, rows: DataFrame, load: Load) -> None:
        """Change the table's columns for the rows before they are written, as the schema mode says.

        A table that was loaded without deletes gets the column that records them in any mode.
        """
        commit = self.commit
        if not self._may_change(load) and not _records_deletes(load):
            return

        def attempt() -> None:
            metadata = commit.catalog.newest()
            if metadata is None or commit.is_taken(metadata):
                return
            changes = self._statements(rows.schema, load, metadata)
            if not changes:
                return
            session = rows.sparkSession
            name = commit.catalog.name(session)
            with commit.raising_conflicts():
                for change in changes:
                    session.sql(f"ALTER TABLE {name} {change}")

        retry_conflicts(attempt)

    def fit_rows(self, rows: DataFrame, load: Load, metadata: Metadata) -> DataFrame:
        """Return rows with the table's columns if the mode may change these; else return them unchanged."""
        if not self._may_change(load):
            return rows
        return self._evolving_columns(metadata).fit_rows(rows, load)

    def _statements(self, rows: StructType, load: Load, metadata: Metadata) -> list[str]:
        """Return the ``ALTER TABLE`` clauses that a load of rows needs; empty if they fit."""
        columns = self._evolving_columns(metadata)
        changes = columns.statements(rows, load) if self._may_change(load) else []
        if _records_deletes(load) and load.names.is_deleted not in columns.table.names:
            changes.append(f"ADD COLUMN {quoted(load.names.is_deleted)} boolean")
        return changes

    def _may_change(self, load: Load) -> bool:
        """Return whether this load evolves the table's columns instead of keeping or replacing them."""
        return self.schema_mode in ("merge", "rescue") and not isinstance(load, ReplaceAll)

    def _evolving_columns(self, metadata: Metadata) -> EvolvingColumns:
        table = self.commit.columns(metadata)
        own_fields = [field for field in table.fields if field.name != COMMIT_COLUMN]
        return EvolvingColumns(self.schema_mode, type(table)(own_fields), self.commit.table_name)


@dataclass(frozen=True)
class EvolvingColumns:
    """The columns of a table that rows may extend or widen.

    Attributes:
        mode: schema mode of the target, ``merge`` or ``rescue``.
        table: columns of the table, without Strandline's own.
        table_name: name of the table, for people.
    """

    mode: SchemaMode
    table: StructType
    table_name: str

    def statements(self, rows: StructType, load: Load) -> list[str]:
        """Return the ``ALTER TABLE`` clauses that rows need; empty if they fit.

        Raises:
            RowsRefused: the mode does not accept the rows' columns, or Iceberg cannot change a type like
                this.
        """
        from pyspark.sql.types import StructType

        incoming = _incoming_schema(written_columns(rows, load))
        evolution = evolve_columns(self.table.jsonValue(), incoming, self.mode, self.table_name)
        if evolution.action == "none":
            return []
        target = StructType.fromJson(json.loads(json.dumps(evolution.schema)))
        return list(_alter_clauses((), self.table, target, self.table_name))

    def fit_rows(self, rows: DataFrame, load: Load) -> DataFrame:
        """Return rows with the table's columns: missing ones are NULL, narrower values are cast.

        Rows that do not fit are returned unchanged.

        Args:
            rows: rows of the slice.
            load: load of the slice; the rows do not get the columns here that it adds.
        """
        incoming = _incoming_schema(written_columns(rows.schema, load))
        if evolve_schema(self.table.jsonValue(), incoming, "rescue").rescued:
            return rows
        return fit_to_table(rows, self.table, load)


def _records_deletes(load: Load) -> TypeGuard[Scd2]:
    """Return whether the load writes a column that says which versions a delete ended."""
    return isinstance(load, Scd2) and load.deletes is not None


def _incoming_schema(rows: StructType) -> Schema:
    stored: Any = stored_type(rows).jsonValue()
    return all_nullable(stored)


def _alter_clauses(
    path: tuple[str, ...], from_type: DataType, to_type: DataType, table: str
) -> Iterator[str]:
    from pyspark.sql import types as T

    if isinstance(from_type, T.StructType) and isinstance(to_type, T.StructType):
        inner_fields = {field.name.casefold(): field for field in from_type.fields}
        for field in to_type.fields:
            existing_field = inner_fields.get(field.name.casefold())
            if existing_field is None:
                yield f"ADD COLUMN {dotted((*path, field.name))} {sql_type(field.dataType)}"
            else:
                yield from _alter_clauses(
                    (*path, existing_field.name), existing_field.dataType, field.dataType, table
                )
    elif isinstance(from_type, T.ArrayType) and isinstance(to_type, T.ArrayType):
        yield from _alter_clauses((*path, "element"), from_type.elementType, to_type.elementType, table)
    elif isinstance(from_type, T.MapType) and isinstance(to_type, T.MapType):
        yield from _alter_clauses((*path, "value"), from_type.valueType, to_type.valueType, table)
    elif from_type != to_type:
        if (
            isinstance(from_type, T.DecimalType)
            and isinstance(to_type, T.DecimalType)
            and from_type.scale != to_type.scale
        ):
            raise RowsRefused(
                f"table {table}: column {'.'.join(path)}: expected {type_text(from_type.jsonValue())} or "
                f"a type with more digits before the point, found {type_text(to_type.jsonValue())}: "
                "Iceberg cannot change the digits after the point. Convert the column in sql, or load "
                "into a new table"
            )
        yield f"ALTER COLUMN {dotted(path)} TYPE {sql_type(to_type)}"
