"""The pinned schema of a source with columns of its own, and its comparison with the source.

See docs/reference/files.md, The pinned schema.
"""

from __future__ import annotations

import difflib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.errors import ConfigurationError
from partitions.evolution import SchemaMode
from partitions.loads import LackingColumn
from partitions.schema_types import Schema
from partitions.sources.rows import RowsSource
from partitions.unit_values import TIMES, WORDS, ValueType
from resources.sources.evolving import FOLLOWS, evolution_of, schema_evolved
from resources.sources.files.failures import schema_mismatch_error
from resources.sources.files.pinned import PinnedSchema
from resources.spark.frames import with_cached_columns
from resources.sql import quoted

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
"""By the name of a type in Spark's JSON form of a schema, without its parameters."""


def kind_of(type_name: str) -> ValueType | None:
    """Return the comparable data type of a type such as ``decimal(10,2)``; None if it has none."""
    return _KINDS.get(type_name.partition("(")[0])


def value_types_of(schema: Schema) -> dict[str, ValueType]:
    """Return the types of the columns with single values that can be compared, by name."""
    return {
        field["name"]: value_type
        for field in schema["fields"]
        if isinstance(field["type"], str) and (value_type := kind_of(field["type"])) is not None
    }


class PinsColumns(ABC):
    """A source whose columns are pinned as they are, and compared with the pinned ones in every run."""

    _source: RowsSource
    _mode: SchemaMode
    _may_merge: bool = True
    """Whether a definition can accept new columns, by ``schema_mode: merge``."""
    _missing: frozenset[str] = frozenset()
    """Pinned columns that the source no longer has, by the last comparison."""

    @abstractmethod
    def _columns(self, spark: SparkSession) -> StructType:
        """Return the source's current columns; raise SourceError if they cannot be read."""

    def pin(self, spark: SparkSession) -> str:
        """Return the source's columns as text.

        Raises:
            ConfigurationError: a column that the definition names is missing, or cannot be compared.
            SourceError: the source does not exist, refuses, or does not answer (SourceUnreachable).
        """
        schema = self._columns(spark)
        check_columns(self._source, schema)
        return PinnedSchema(plain(schema).json(), ()).to_text()

    def check_schema(self, spark: SparkSession, pinned: str, dataflow: str) -> None:
        """Compare the source's columns with the pinned ones, in any order.

        Raises:
            SchemaError: reason ``incompatible_schema``: names each column that is new, missing or of
            another type, or that the schema mode refuses.
            SchemaEvolved: the schema mode accepts the change.
            SourceError: as for :meth:`pin`.
        """
        columns = self._columns(spark)
        if self._mode not in FOLLOWS:
            if changes := column_changes(columns, pinned):
                difference = (
                    f"source: expected the pinned columns of {self._source.label}, found changes: "
                    f"{'; '.join(changes.values())}"
                )
                remedy = _restore_remedy(self._source, dataflow, may_merge=self._may_merge)
                raise schema_mismatch_error(difference, remedy, dataflow, next(iter(changes)))
            return
        source_columns = {name.casefold() for name in columns.fieldNames()}
        pinned_schema = PinnedSchema.of(pinned)
        where = f"{self._source.label}"
        evolution = evolution_of(self._mode, dataflow, self._source, pinned_schema, plain(columns), where)
        self._missing = frozenset(
            field["name"]
            for field in evolution.schema["fields"]
            if field["name"].casefold() not in source_columns
        )
        if evolution.action != "none":
            raise schema_evolved(pinned_schema, evolution.schema, evolution.changes, where)

    @property
    def remarks(self) -> Sequence[str]:
        """Warnings about pinned columns that the source no longer has."""
        if not self._missing:
            return ()
        names = ", ".join(sorted(self._missing))
        return (f"{self._source.label} no longer has {names}: new rows have NULL there",)

    def lacking(self, spark: SparkSession, pinned: str) -> Sequence[LackingColumn]:
        """Return the pinned columns that the source lacks; none if the mode does not follow the source."""
        if self._mode not in FOLLOWS:
            return ()
        source_columns = {name.casefold() for name in self._columns(spark).fieldNames()}
        names = pinned_struct(pinned).fieldNames()
        return tuple(LackingColumn(name) for name in names if name.casefold() not in source_columns)

    def _available_columns(self, schema: StructType) -> StructType:
        """Return the columns of a schema that the source still has."""
        from pyspark.sql.types import StructType

        return StructType([field for field in schema.fields if field.name not in self._missing])


def plain(schema: StructType) -> StructType:
    """Return names and types only: a reader's metadata is not part of the source."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, field.dataType) for field in schema.fields])


def has_fixed_texts(schema: StructType) -> bool:
    """Return whether a column is of type char or varchar, which Spark turns into string in a query."""
    return "char(" in schema.simpleString()


def pinned_struct(text: str) -> StructType:
    """Return the schema in a state's text."""
    return PinnedSchema.of(text).struct


def kinds(schema: StructType) -> dict[str, ValueType]:
    """Return the data types of the columns that can be compared."""
    value_types = {field.name: kind_of(field.dataType.typeName()) for field in schema.fields}
    return {name: kind for name, kind in value_types.items() if kind is not None}


def time_types() -> Mapping[ValueType | None, DataType]:
    """Return the Spark types for columns of times."""
    from pyspark.sql.types import DateType, TimestampNTZType, TimestampType

    return {"instant": TimestampType(), "local": TimestampNTZType(), "day": DateType()}


def check_columns(source: RowsSource, schema: StructType) -> None:
    """Raise ConfigurationError unless the columns that the definition names exist and are comparable."""
    check_names(source, schema.fieldNames())
    pinned_schema, types = (
        kinds(schema),
        {field.name: field.dataType.simpleString() for field in schema.fields},
    )
    for key, column in named_columns(source).items():
        expected_types: tuple[ValueType, ...] = TIMES if key == "window_column" else tuple(WORDS)
        if pinned_schema.get(column) not in expected_types:
            expected = " or ".join(WORDS[kind] for kind in expected_types if kind != "whole")
            raise ConfigurationError(
                f"source.{key}: expected a column of {source.label} with {expected}, found {column}, which is {types[column]}"
            )


def check_names(source: RowsSource, names: Sequence[str]) -> None:
    """Raise ConfigurationError unless the columns that the definition names exist.

    The error names the key and the column, and suggests a similar column.
    """
    for key, column in named_columns(source).items():
        if column not in names:
            other_case = [name for name in names if name.casefold() == column.casefold()]
            suggestions = other_case or difflib.get_close_matches(column, names, n=1)
            hint = f" (did you mean {suggestions[0]}?)" if suggestions else ""
            raise ConfigurationError(
                f"source.{key}: expected a column of {source.label}, which has {', '.join(names)}; found {column}{hint}"
            )


def named_columns(source: RowsSource) -> dict[str, str]:
    """Return the columns that the definition names, by their keys."""
    units = {f"unit_columns.{name}": column for name, column in source.unit_columns.items()}
    return units | ({"window_column": source.window_column} if source.window_column is not None else {})


def column_changes(schema: StructType, pinned: str) -> dict[str, str]:
    """Return in words how each column differs from the pinned ones; empty if none does."""
    pinned_types = {field.name: field.dataType.simpleString() for field in pinned_struct(pinned).fields}
    current_types = {field.name: field.dataType.simpleString() for field in schema.fields}
    changes = {
        name: f"{name} is new ({current_types[name]})" for name in current_types if name not in pinned_types
    }
    changes |= {
        name: f"{name} is missing ({pinned_types[name]})"
        for name in pinned_types
        if name not in current_types
    }
    changes |= {
        name: f"{name} was {pinned_types[name]}, is {current_types[name]}"
        for name in pinned_types
        if current_types.get(name, pinned_types[name]) != pinned_types[name]
    }
    return changes


def _restore_remedy(source: RowsSource, dataflow: str, *, may_merge: bool) -> str:
    """Return how to restore the pinned columns.

    Only a database accepts a query, and another query changes the definition.
    """
    remedy = "Restore the source's columns"
    if may_merge:
        remedy += "; or set `schema_mode: merge` below `target`, which accepts new columns and wider types"
    if not source.has_query:
        return remedy
    accept = f"`strandline state accept {dataflow} --reason TEXT`"
    return (
        f"{remedy}; or list the columns in a `query`, which leaves new ones out, and accept the changed "
        f"definition by {accept}"
    )


def strict(frame: DataFrame, schema: StructType, names: Sequence[str] | None = None) -> DataFrame:
    """Return exactly the columns of a schema, in its order and types; missing ones are NULL.

    Column metadata of a reader is dropped. A Connect server need not be asked for the result's columns.

    Args:
        frame: the rows.
        schema: the resulting columns.
        names: the names of the frame's columns; None: Spark is asked.
    """
    from pyspark.sql import functions as F

    source_columns = {name.casefold() for name in (frame.columns if names is None else names)}
    rows = frame.select(
        *[
            (F.col(quoted(field.name)) if field.name.casefold() in source_columns else F.lit(None))
            .cast(field.dataType)
            .alias(field.name)
            for field in schema.fields
        ]
    )
    return rows if has_fixed_texts(schema) else with_cached_columns(rows, plain(schema))
