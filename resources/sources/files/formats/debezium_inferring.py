"""The columns of change events: those that their schema names, else those that their rows show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.path.source import SourceFile
from partitions.schema_merging import merge_schemas, new_fields
from partitions.schema_types import Schema
from partitions.sources.event_columns import EVENT_COLUMNS
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.formats.debezium_staging import EventStaging
from resources.sources.files.formats.format import FileColumns, FormatReader
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType


class DebeziumColumns(FileColumns):
    """A finder of the columns of change events."""

    def __init__(self, form: FormatReader, events: EventStaging) -> None:
        """Store the format's reader and its staged rows; decode nothing."""
        super().__init__(form)
        self._events = events

    @override
    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        """Return the columns of the rows, then those that say what each event is.

        Raises:
            BadFile: a file cannot be read; or its rows contradict each other.
        """
        schema = self._named_columns(files)
        if schema is None:
            columns = self._events.rows.columns
            inferred = columns.infer(spark, files)
            self.valueless = [name for name in columns.valueless if name not in EVENT_COLUMNS]
            return None if inferred is None else _with_event_columns(inferred)
        self.valueless = []
        return _with_event_columns(_struct(schema)) if schema["fields"] else None

    def _named_columns(self, files: Sequence[SourceFile]) -> Schema | None:
        """Return the columns that the events of these files name; None if some do not name them."""
        schema: Schema = {"type": "struct", "fields": []}
        for events in self._events.stage(files).values():
            if events.schema is None:
                return None
            schema = merge_schemas(schema, events.schema)
        return schema

    @override
    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]] | None:
        """Return the names that any row of a file has."""
        self._events.stage(files)
        return self._events.rows.columns.names_of(spark, files, names)

    @override
    def incoming_columns(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType] | None:
        """Return the pinned columns plus new ones: as the schema of events types them, else as values show."""
        unknown = check().unknown
        with_new = [file for file in files if file.path in unknown]
        by_schema: dict[str, StructType] = {}
        for file, events in self._events.stage(with_new).items():
            if events.schema is not None:
                by_schema[file.path] = _struct(new_fields(pinned.struct.jsonValue(), events.schema))
        without_schema = [file for file in with_new if file.path not in by_schema]
        by_values = (
            self._events.rows.columns.incoming_columns(spark, without_schema, pinned, check)
            if without_schema
            else {}
        )
        return {**(by_values or {}), **by_schema}

    @override
    def wider_integers(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> StructType | None:
        """Return the pinned columns with wide enough integers, from all rows."""
        self._events.stage(files)
        return self._events.rows.columns.wider_integers(spark, files, pinned)


def _struct(schema: Schema) -> StructType:
    from pyspark.sql.types import StructType

    return StructType.fromJson(dict(schema))


def _with_event_columns(rows: StructType) -> StructType:
    """Return columns without those of events, and these behind them in their own types."""
    from pyspark.sql.types import StructType

    schema = StructType([field for field in rows.fields if field.name not in EVENT_COLUMNS])
    for name, data_type in EVENT_COLUMNS.items():
        schema = schema.add(name, data_type)
    return schema
