"""The schema of a source that has one of its own: pinned as text, and compared with what is there (docs/reference/files.md, The pinned schema)."""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.errors import ConfigurationError
from partitions.evolution import SchemaMode
from partitions.loads import LackingColumn
from partitions.sources.rows import RowsSource
from partitions.unit_values import TIMES, WORDS, ValueType
from resources.sources.evolving import FOLLOWS, changed, evolution_of
from resources.sources.files.failures import schema_mismatch_error
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

_KINDS: dict[str, ValueType] = {
    "timestamp": "instant",
    "timestamp_ntz": "local",
    "date": "day",
    "string": "text",
    "char": "text",
    "varchar": "text",
    "byte": "whole",
    "short": "whole",
    "integer": "whole",
    "long": "whole",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "boolean": "flag",
}
"""By the name of a type in Spark's JSON of a schema, without its parameters."""


def kind_of(type_name: str) -> ValueType | None:
    """Return what a column of a type holds, such as ``decimal(10,2)``; None if it cannot be compared."""
    return _KINDS.get(type_name.partition("(")[0])


class PinsColumns(ABC):
    """A source whose columns are pinned as they are, and compared with the pinned ones in every run."""

    _source: RowsSource
    _mode: SchemaMode
    _may_merge: bool = True
    """Whether a definition of it can take new columns, by ``schema_mode: merge``."""
    _missing: frozenset[str] = frozenset()
    """Pinned columns that the source does not have any more, by the last comparison."""

    @abstractmethod
    def _columns(self, spark: SparkSession) -> StructType:
        """Return the source's columns as they are now; raise SourceError if it does not tell them."""

    def pin(self, spark: SparkSession) -> str:
        """Return the source's columns as text.

        Raises:
            ConfigurationError: if a column that the definition names is not there, or cannot be compared.
            SourceError: if there is no such source, or it refuses, or does not answer (SourceUnreachable).
        """
        schema = self._columns(spark)
        check_columns(self._source, schema)
        return PinnedSchema(plain(schema).json(), ()).to_text()

    def check_schema(self, spark: SparkSession, pinned: str, dataflow: str) -> None:
        """Compare the source's columns with the pinned ones, in any order.

        Raises:
            SchemaError: reason ``incompatible_schema``, naming each column that is new, missing or of another type; or what the schema mode
                does not accept of it.
            SchemaEvolved: the schema mode accepts the change.
            SourceError: as for :meth:`pin`.
        """
        columns = self._columns(spark)
        if self._mode not in FOLLOWS:
            if changes := column_changes(columns, pinned):
                said = f"source: expected the columns of {self._source.label} that were pinned, found others: {'; '.join(changes.values())}"
                back = _way_back(self._source, dataflow, may_merge=self._may_merge)
                raise schema_mismatch_error(said, back, dataflow, next(iter(changes)))
            return
        there = {name.casefold() for name in columns.fieldNames()}
        known = PinnedSchema.of(pinned)
        where = f"{self._source.label}"
        evolution = evolution_of(self._mode, dataflow, known, plain(columns), where)
        self._missing = frozenset(
            field["name"] for field in evolution.schema["fields"] if field["name"].casefold() not in there
        )
        if evolution.action != "none":
            raise changed(known, evolution.schema, evolution.changes, where)

    @property
    def remarks(self) -> Sequence[str]:
        """Which pinned columns the source does not have any more."""
        if not self._missing:
            return ()
        names = ", ".join(sorted(self._missing))
        return (
            f"{self._source.label} has no {names} any more: NULL in the rows that are loaded from now on",
        )

    def lacking(self, spark: SparkSession, pinned: str) -> Sequence[LackingColumn]:
        """Return the pinned columns that the source does not have; a mode that does not follow it accepts none."""
        if self._mode not in FOLLOWS:
            return ()
        there = {name.casefold() for name in self._columns(spark).fieldNames()}
        names = pinned_struct(pinned).fieldNames()
        return tuple(LackingColumn(name) for name in names if name.casefold() not in there)

    def _there(self, schema: StructType) -> StructType:
        """The columns of a schema that the source has."""
        from pyspark.sql.types import StructType

        return StructType([field for field in schema.fields if field.name not in self._missing])


def plain(schema: StructType) -> StructType:
    """Names and types alone: a reader's own notes on a column are not part of the source."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, field.dataType) for field in schema.fields])


def has_fixed_texts(schema: StructType) -> bool:
    """Return whether a column is of type char or varchar, which Spark makes a string of once it looks at a query."""
    return "char(" in schema.simpleString()


def pinned_struct(text: str) -> StructType:
    """Return the schema of the text that a state keeps."""
    return PinnedSchema.of(text).struct


def kinds(schema: StructType) -> dict[str, ValueType]:
    """What the columns hold, of those that can be compared."""
    held = {field.name: kind_of(field.dataType.typeName()) for field in schema.fields}
    return {name: kind for name, kind in held.items() if kind is not None}


def time_types() -> Mapping[ValueType | None, DataType]:
    """Return the types of columns that hold times."""
    from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

    return {"instant": TimestampType(), "local": TimestampNTZType(), "day": DateType()}


def check_columns(source: RowsSource, schema: StructType) -> None:
    """The columns that the definition names are there, and can be compared.

    Raises:
        ConfigurationError: naming key, column and type.
    """
    check_names(source, schema.fieldNames())
    known, types = kinds(schema), {field.name: field.dataType.simpleString() for field in schema.fields}
    for key, column in named_columns(source).items():
        wanted: tuple[ValueType, ...] = TIMES if key == "window_column" else tuple(WORDS)
        if known.get(column) not in wanted:
            expected = " or ".join(WORDS[kind] for kind in wanted if kind != "whole")
            raise ConfigurationError(
                f"source.{key}: expected a column of {source.label} with {expected}, found {column}, which is {types[column]}"
            )


def check_names(source: RowsSource, names: Sequence[str]) -> None:
    """The columns that the definition names are there.

    Raises:
        ConfigurationError: naming key and column, and what may have been meant.
    """
    for key, column in named_columns(source).items():
        if column not in names:
            alike = [name for name in names if name.casefold() == column.casefold()]
            close = alike or difflib.get_close_matches(column, names, n=1)
            hint = f" (did you mean {close[0]}?)" if close else ""
            raise ConfigurationError(
                f"source.{key}: expected a column of {source.label}, which has {', '.join(names)}; found {column}{hint}"
            )


def named_columns(source: RowsSource) -> dict[str, str]:
    """The columns that the definition names, by their keys."""
    units = {f"unit_columns.{name}": column for name, column in source.unit_columns.items()}
    return units | ({"window_column": source.window_column} if source.window_column is not None else {})


def column_changes(schema: StructType, pinned: str) -> dict[str, str]:
    """Return what has become of each column that is not as it was pinned, in words; nothing if all are, in any order."""
    was = {field.name: field.dataType.simpleString() for field in pinned_struct(pinned).fields}
    now = {field.name: field.dataType.simpleString() for field in schema.fields}
    changes = {name: f"{name} is new ({now[name]})" for name in now if name not in was}
    changes |= {name: f"{name} is missing ({was[name]})" for name in was if name not in now}
    changes |= {
        name: f"{name} was {was[name]}, is {now[name]}"
        for name in was
        if now.get(name, was[name]) != was[name]
    }
    return changes


def _way_back(source: RowsSource, dataflow: str, *, may_merge: bool) -> str:
    """Return how to keep the pinned columns. Only a database takes a query, and another query is another definition."""
    back = "Put the source back"
    if may_merge:
        back += "; or set `schema_mode: merge` below `target`, which takes new columns and wider types"
    if not source.has_query:
        return back
    accept = f"`strandline state accept {dataflow} --reason TEXT`"
    return f"{back}; or name the columns in a `query`, so that new ones do not count, and accept the changed definition by {accept}"


def strict(frame: DataFrame, schema: StructType, names: Sequence[str] | None = None) -> DataFrame:
    """The columns of a schema in its order and types, without a reader's own notes on them; one that is not there is NULL.

    Args:
        frame: the rows.
        schema: that they get.
        names: of the frame's columns; None: Spark is asked.
    """
    from pyspark.sql import functions as F

    from resources.sql import quoted

    there = {name.casefold() for name in (frame.columns if names is None else names)}
    return frame.select(
        *[
            (F.col(quoted(field.name)) if field.name.casefold() in there else F.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in schema.fields
        ]
    )
