"""Find the columns of Parquet files by their footers.

Spark gives the types of one file for each set of columns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from resources.sources.files.converting import struct_of_own_types
from resources.sources.files.failures import bad_document_error, doubled_names_error, unreadable_type_error
from resources.sources.files.footers import Footer, FooterCache
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.merging import merge_schemas, nullable
from resources.sources.files.formats.typed import TypedColumns
from resources.sources.files.nanoseconds import restore_times
from resources.spark.settings import temporary_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

_NANOSECONDS = {"spark.sql.legacy.parquet.nanosAsLong": "true"}


class ParquetColumns(TypedColumns):
    """A finder of the columns of Parquet files."""

    def __init__(self, form: FormatReader, footers: FooterCache) -> None:
        """Store the parts; read nothing.

        Args:
            form: the format's reader.
            footers: the footers of the files.
        """
        super().__init__(form)
        self._footers = footers

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType:
        """Return the columns of all files; columns without any value may stay untyped."""
        return self._form.rules.with_deferred_types(self._merged_columns(spark, files).jsonValue())

    def _merged_columns(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType:
        """Return the merged columns that Spark infers; nanoseconds need a setting, and become times."""
        footers = self._footers.read(files)
        bad = [footer_error(file.path, footers[file.path]) for file in files if file.path in footers]
        refused = {error.path: error for error in bad if error is not None}
        sound_files = [file for file in files if file.path not in refused]
        for error in () if sound_files else refused.values():
            raise error
        firsts = self.first_files(sound_files)
        unread = [file for file in sound_files if file.path not in footers]
        has_nanoseconds = any(footers[file.path].nanoseconds for file in firsts.values())
        with temporary_settings(spark, _NANOSECONDS if has_nanoseconds else {}):
            schemas = [self._columns_of(spark, file) for file in [*firsts.values(), *unread]]
        return merge_schemas(schemas)

    def _columns_of(self, spark: SparkSession, file: SourceFile) -> StructType:
        """Return the columns of one file: from its footer if Spark cannot tell all types, else from Spark.

        Raises:
            BadFile: neither knows the type of a column.
        """
        footer = self._footers.read([file]).get(file.path)
        if footer is None or not footer.needs_own_types:
            schema = nullable(self._form.scan(spark, [file], None).schema)
            for field in schema.fields:  # Spark writes them as numbers, and tells itself what they were
                if "interval" in field.dataType.simpleString():
                    raise unreadable_type_error(file.path, field.name, "an interval, which no table can hold")
            return schema if footer is None else restore_times(schema, footer.nanoseconds)
        unknown_column = next((name for name, data_type in footer.types.items() if data_type is None), None)
        if unknown_column is not None:
            raise unreadable_type_error(file.path, unknown_column, "a type that Spark lacks")
        return struct_of_own_types(footer.types)

    @override
    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Return the column names of each file, from its footer."""
        return {
            path: frozenset(field[0].casefold() for field in footer.fields)
            for path, footer in self._footers.read(files).items()
            if footer.fault is None
        }

    @override
    def texts_of(self, files: Sequence[SourceFile]) -> Mapping[str, str]:
        """Return the footers' columns."""
        return {path: footer.columns for path, footer in self._footers.read(files).items()}

    @override
    def can_be_read(self, file: SourceFile) -> bool:
        """Return whether the footer has no fault; one that cannot be fetched may have none."""
        footer = self._footers.read([file]).get(file.path)
        return footer is None or footer_error(file.path, footer) is None

    @override
    def columns_of(self, spark: SparkSession, text: str, file: SourceFile) -> StructType:
        """Return the columns of one file, with nanoseconds as times."""
        return self._merged_columns(spark, [file])


def footer_error(path: str, footer: Footer) -> BadFile | None:
    """Return why a file cannot be loaded, judged by its footer alone; None if it can."""
    if footer.fault is not None:
        return bad_document_error(path, footer.fault)
    if footer.doubled_names is not None:
        return doubled_names_error(path, *footer.doubled_names)
    for column, data_type in footer.unreadable.items():
        return unreadable_type_error(path, column, data_type)
    return None
