"""Columns that come with rows: what an Iceberg table's become, by the schema mode, and the statements that make them so (docs/reference/schemas.md).

Iceberg changes columns apart from rows: a version of the metadata of its own, which changes no row and no snapshot, and does no harm if it is made
twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.errors import RowsRefused
from partitions.evolution import SchemaMode, evolved
from partitions.loads import Load, ReplaceAll, Scd2
from partitions.schema_types import Schema, all_nullable, shown
from partitions.target import COMMIT_COLUMN, HISTORY_COLUMNS
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.iceberg.columns import as_stored, dotted, sql_type
from resources.tables.iceberg.metadata import Metadata
from resources.tables.iceberg.numbered_commit import NumberedCommit
from resources.tables.row_columns import evolve_columns, with_columns_of, with_validity

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType, StructType


@dataclass(frozen=True)
class ColumnChanges:
    """What a load changes of the table's columns.

    Attributes:
        commit: of the number.
        schema_mode: what becomes of the table's columns if rows come with others.
    """

    commit: NumberedCommit
    schema_mode: SchemaMode

    def make(self, rows: DataFrame, load: Load) -> None:
        """Give the table the columns of rows, as the schema mode says, before they come: all that is written is built from columns that are there."""
        commit = self.commit
        if not self._are_taken(load):
            return

        def attempt() -> None:
            metadata = commit.catalog.newest()
            if metadata is None or commit.is_taken(metadata):
                return
            if not (changes := self._taken(metadata).statements(rows.schema, load)):
                return
            session = rows.sparkSession
            name = commit.catalog.name(session)
            with commit.telling_conflicts():
                for change in changes:
                    session.sql(f"ALTER TABLE {name} {change}")

        retry_conflicts(attempt)

    def fitted(self, rows: DataFrame, load: Load, metadata: Metadata) -> DataFrame:
        """Return rows with the columns that the table takes."""
        if not self._are_taken(load):
            return rows
        return self._taken(metadata).fitted(rows, HISTORY_COLUMNS if isinstance(load, Scd2) else ())

    def _are_taken(self, load: Load) -> bool:
        """Whether the table takes columns of rows; else it keeps its own, or is given new ones with all of its rows."""
        return self.schema_mode in ("merge", "rescue") and not isinstance(load, ReplaceAll)

    def _taken(self, metadata: Metadata) -> TakenColumns:
        table = self.commit.columns(metadata)
        own = [field for field in table.fields if field.name != COMMIT_COLUMN]
        return TakenColumns(self.schema_mode, type(table)(own), self.commit.shown)


@dataclass(frozen=True)
class TakenColumns:
    """What becomes of a table's columns with rows that are not replacing all of its own.

    Attributes:
        mode: of the target, ``merge`` or ``rescue``.
        table: the columns that are there, without Strandline's own.
        shown: the table's name, for people.
    """

    mode: SchemaMode
    table: StructType
    shown: str

    def statements(self, rows: StructType, load: Load) -> list[str]:
        """Return what ``ALTER TABLE`` must do before rows of these columns are loaded; nothing if they fit.

        Raises:
            RowsRefused: the mode does not accept the rows' columns, or Iceberg cannot change a type like this.
        """
        from pyspark.sql.types import StructType

        incoming = _incoming(with_validity(rows, load))
        evolution = evolve_columns(self.table.jsonValue(), incoming, self.mode, self.shown)
        if evolution.action == "none":
            return []
        becomes = StructType.fromJson(json.loads(json.dumps(evolution.schema)))
        return list(_changes((), self.table, becomes, self.shown))

    def fitted(self, rows: DataFrame, made: Sequence[str]) -> DataFrame:
        """Return rows with the columns of the table: what they lack is NULL, narrower values are cast up. What does not fit stays as it is.

        Args:
            rows: of the slice.
            made: columns that the load makes, which the rows do not get here.
        """
        if evolved(self.table.jsonValue(), _incoming(rows.schema), "rescue").rescued:
            return rows
        there = [field for field in self.table.fields if field.name not in made]
        return with_columns_of(rows, type(self.table)(there))


def _incoming(rows: StructType) -> Schema:
    stored: Any = as_stored(rows).jsonValue()
    return all_nullable(stored)


def _changes(path: tuple[str, ...], was: DataType, becomes: DataType, table: str) -> Iterator[str]:
    from pyspark.sql import types as T

    if isinstance(was, T.StructType) and isinstance(becomes, T.StructType):
        there = {field.name.casefold(): field for field in was.fields}
        for field in becomes.fields:
            own = there.get(field.name.casefold())
            if own is None:
                yield f"ADD COLUMN {dotted((*path, field.name))} {sql_type(field.dataType)}"
            else:
                yield from _changes((*path, own.name), own.dataType, field.dataType, table)
    elif isinstance(was, T.ArrayType) and isinstance(becomes, T.ArrayType):
        yield from _changes((*path, "element"), was.elementType, becomes.elementType, table)
    elif isinstance(was, T.MapType) and isinstance(becomes, T.MapType):
        yield from _changes((*path, "value"), was.valueType, becomes.valueType, table)
    elif was != becomes:
        if (
            isinstance(was, T.DecimalType)
            and isinstance(becomes, T.DecimalType)
            and was.scale != becomes.scale
        ):
            raise RowsRefused(
                f"table {table}: column {'.'.join(path)}: expected {shown(was.jsonValue())} or one with more digits before the point, found"
                f" {shown(becomes.jsonValue())}: Iceberg keeps the digits after it. Convert it in sql, or load into a new table"
            )
        yield f"ALTER COLUMN {dotted(path)} TYPE {sql_type(becomes)}"
