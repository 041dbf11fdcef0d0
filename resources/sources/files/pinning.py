"""Find the schema of files: declared, or inferred from a bounded sample.

See docs/reference/files.md, The pinned schema.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.path.source import SourceFile
from partitions.plan import pluralize
from partitions.sources.formats import FORMATS
from partitions.spelling import first_few
from partitions.table_types import VARIANT, can_hold
from partitions.untyped_columns import typed_fields
from resources.sources.evolving import check_free, evolution_of, follows, schema_evolved
from resources.sources.files.changed_schema import changed_schema_error
from resources.sources.files.failures import bad_document_error
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.merging import nullable
from resources.sources.files.lines import find_read_fault
from resources.sources.files.paths import folder_names
from resources.sources.files.pinned import PinnedSchema
from resources.spark.process import error_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

_WITH_NAMES = ("ndjson", "jsonl", "json", "xml", "debezium")
"""Formats whose maps come from objects or elements, so that their keys are text."""

SAMPLE_FILES = 20
_SAMPLE_BYTES = 64 * 2**20
_NAMED = 10
"""The most columns that the warning about columns without a value names."""


class SchemaPinner:
    """A finder of the schema of files under a root."""

    def __init__(self, form: FormatReader, dataflow: Dataflow) -> None:
        """Store the format's reader and the definition."""
        self._format, self._source, self._dataflow = form, form.source, dataflow
        self._valueless: Sequence[str] = ()

    @property
    def remarks(self) -> Sequence[str]:
        """The warning about columns that were pinned as text because no file of the sample has a value there."""
        if not self._valueless:
            return ()
        columns = pluralize(len(self._valueless), "column")
        warning = (
            f"{columns} without a value in the first files, so pinned as text: {first_few(self._valueless, _NAMED)}."
            f" For another type declare all columns in `schema` below `source`, and load again: strandline state reset {self._dataflow.name} --replace --reason TEXT"
        )
        return (warning,)

    def pin(
        self, spark: SparkSession, files: Sequence[SourceFile], skipped_files: Sequence[SourceFile] = ()
    ) -> PinnedSchema | None:
        """Return the declared schema, or one inferred from a bounded sample, with the folders' columns.

        Args:
            spark: a session.
            files: the files that are about to be loaded. At most 20 of them, of 64 MiB together, are read.
            skipped_files: files that are not loaded and never read; their folders name columns if there are no other
                files.

        Returns:
            None if no file of the sample holds a row and no schema is declared.
        """
        from pyspark.sql.types import StringType, StructField, StructType

        declared = self._declared(spark)
        data = declared if declared is not None else self._infer(spark, sample_of(files))
        folders = folder_names(file.path for file in files or skipped_files)
        if data is None or (declared is None and not data.fields):
            return None
        data = _with_folders_as_text(data, folders)
        data_names = {field.name.lower() for field in data.fields}
        added = [
            StructField(name, StringType()) for lower, name in folders.items() if lower not in data_names
        ]
        names = tuple(field.name for field in [*data.fields, *added] if field.name.lower() in folders)
        return PinnedSchema(StructType([*data.fields, *added]).json(), names, self._source.schema_)

    def check_schema(self, spark: SparkSession, pinned: PinnedSchema, dataflow: str) -> None:
        """Refuse a declared schema that changed after it was pinned; the run would ignore it.

        Raises:
            SchemaError: reason ``incompatible_schema``, or another one in a mode that accepts some changes.
            SchemaEvolved: the mode accepts the change.
        """
        if self._source.schema_ == pinned.declared:
            return
        declared = self._declared(spark)
        if follows(self._dataflow):
            self._follow(pinned, declared)
            return
        if declared is None:
            return
        is_beginning = declared.fields == pinned.struct.fields[: len(declared.fields)]
        if is_beginning and set(pinned.data.names) <= set(declared.names):  # the other columns are folders'
            return
        pinned_types = {field.name: field.dataType.simpleString() for field in pinned.struct.fields}
        declared_types = {field.name: field.dataType.simpleString() for field in declared.fields}
        raise changed_schema_error(pinned_types, declared_types, pinned.data.names, dataflow)

    def _follow(self, pinned: PinnedSchema, declared: StructType | None) -> None:
        """Raise SchemaEvolved for a declared schema that changed; pinned columns that it lacks stay."""
        if declared is None:
            return
        evolution = evolution_of(
            self._dataflow.target.schema_mode,
            self._dataflow.name,
            self._dataflow.source,
            pinned,
            declared,
            "source.schema",
        )
        if evolution.action != "none":
            again = replace(pinned, declared=self._source.schema_)
            raise schema_evolved(again, evolution.schema, evolution.changes, "source.schema")

    def _declared(self, spark: SparkSession) -> StructType | None:
        if self._source.schema_ is None:
            return None
        from pyspark.errors import PySparkException

        try:
            declared = spark.createDataFrame([], self._source.schema_).schema
        except (PySparkException, ValueError, TypeError) as error:
            if "char/varchar" in str(error):
                raise ConfigurationError(
                    f"source.schema: expected texts of any length (string), found {self._source.schema_!r}: char pads "
                    "texts with blanks, and varchar refuses longer ones; declare string"
                ) from error
            raise ConfigurationError(
                f"source.schema: expected Spark DDL such as 'id long, name string', found {self._source.schema_!r}: {error_line(error)}"
            ) from error
        if self._source.format in _WITH_NAMES and (key := _find_non_text_key(declared)) is not None:
            raise ConfigurationError(
                f"source.schema: expected map<string, …>, since the names in {self._source.format} are texts, found map<{key}, …>"
            )
        for field in declared.fields:
            if any(map(_is_span, _leaves(field.dataType))):
                raise ConfigurationError(
                    f"source.schema: expected types that tables hold, found {field.dataType.simpleString()} for the column {field.name}; declare string"
                )
        for name, data_type in self._format.added_columns.items():
            declared = declared.add(name, data_type)
        return nullable(declared)  # the check of files enforces NOT NULL

    def _refuse_unreadable(self, files: Sequence[SourceFile]) -> None:
        """Raise BadFile for the first unreadable file: it holds no record to wait for."""
        for file in files if FORMATS[self._source.format].is_text else ():
            if why := find_read_fault(self._format.place, file.path):
                raise bad_document_error(file.path, f"it cannot be read: {why}")

    def _infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType | None:
        plain = [file for file in files if not self._format.scanner.needs_own_scan(file)] or list(files[:1])
        inferred = self._format.columns.infer(spark, plain) if plain else None
        if inferred is None or not inferred.fields:
            self._refuse_unreadable(plain)
            return None
        check_free(self._dataflow, inferred.names, f"file {plain[0].path}")
        self._valueless = self._format.columns.valueless
        return self._for_target_format(nullable(inferred))

    def _for_target_format(self, inferred: StructType) -> StructType:
        """Return the columns with JSON text for VARIANT if the target's format lacks that type."""
        from pyspark.sql.types import StringType, StructField, StructType

        if can_hold(self._dataflow.target.format, VARIANT):
            return inferred
        return StructType(
            [
                StructField(field.name, StringType()) if field.dataType.typeName() == VARIANT else field
                for field in inferred.fields
            ]
        )


def _with_folders_as_text(data: StructType, folders: Collection[str]) -> StructType:
    """Return the columns of records, with text for untyped columns that folders name, in lower case."""
    from pyspark.sql.types import StringType, StructField, StructType

    typed = {field["name"] for field in typed_fields(data.jsonValue())["fields"]}
    return StructType(
        [
            StructField(field.name, StringType())
            if field.name not in typed and field.name.lower() in folders
            else field
            for field in data.fields
        ]
    )


def _find_non_text_key(data_type: DataType) -> str | None:
    """Return the key type of a map, at any depth, whose keys are no texts; None if there is no such map."""
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType

    if isinstance(data_type, StructType):
        return next((key for field in data_type.fields if (key := _find_non_text_key(field.dataType))), None)
    if isinstance(data_type, ArrayType):
        return _find_non_text_key(data_type.elementType)
    if isinstance(data_type, MapType):
        is_text = isinstance(data_type.keyType, StringType)
        return _find_non_text_key(data_type.valueType) if is_text else data_type.keyType.simpleString()
    return None


def _leaves(data_type: DataType) -> Iterator[DataType]:
    """Yield the simple types in a type, at any depth."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    match data_type:
        case StructType():
            inner = [field.dataType for field in data_type.fields]
        case ArrayType():
            inner = [data_type.elementType]
        case MapType():
            inner = [data_type.keyType, data_type.valueType]
        case _:
            yield data_type
            return
    for part in inner:
        yield from _leaves(part)


def _is_span(data_type: DataType) -> bool:
    """Return whether a type is an interval or a time of day."""
    return data_type.simpleString().startswith(("interval", "time("))


def sample_of(files: Sequence[SourceFile]) -> list[SourceFile]:
    """Return files with content, spread evenly over the list, within the bounds; at least one."""
    nonempty_files = [file for file in files if file.size > 0]
    step = max(1, len(nonempty_files) // SAMPLE_FILES)
    chosen: list[SourceFile] = []
    for file in nonempty_files[::step][:SAMPLE_FILES]:
        if chosen and sum(earlier.size for earlier in chosen) + file.size > _SAMPLE_BYTES:
            break
        chosen.append(file)
    return chosen
