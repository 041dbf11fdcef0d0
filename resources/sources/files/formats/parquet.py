"""Parquet files: typed, with footers that are read without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.path.source import SourceFile
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.converting import convert_value, own_type, with_own_types
from resources.sources.files.field_paths import FieldPath, dotted_name, field_paths
from resources.sources.files.footers import Footer, FooterCache
from resources.sources.files.formats.parquet_inferring import ParquetColumns, footer_error
from resources.sources.files.formats.typed import TypedFiles, unknown_names
from resources.sources.files.nanoseconds import as_numbers, as_times
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.rescuing import FolderValue, rescued_columns
from resources.sources.files.scan import Scanner
from resources.sql import quoted
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

_CHECKSUMS = "parquet.page.verify-checksum.enabled"


class ParquetFiles(TypedFiles):
    """A reader of Parquet files."""

    READER: ClassVar[str] = "parquet"

    columns: ParquetColumns

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Store the parts; read nothing."""
        super().__init__(place, dataflow, staging)
        self._footers = FooterCache(place)
        self.columns = ParquetColumns(self, self._footers)

    @override
    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """Return the options: merge the schemas of files, and verify the checksums of pages that have one."""
        return {_CHECKSUMS: True, **({"mergeSchema": True} if infer else {})}

    def has_rows(self, file: SourceFile) -> bool:
        """Return whether the footer counts rows."""
        footer = self._footers.read([file]).get(file.path) if file.size > 0 else None
        return file.size > 0 and not (footer is not None and footer.is_empty)

    def schemas(self, files: Sequence[SourceFile], data: StructType) -> Mapping[str, StructType]:
        """Return the schemas of files with other types, by path; nanoseconds are read as whole numbers."""
        by_columns: dict[str, StructType] = {}
        schemas: dict[str, StructType] = {}
        for path, footer in self._footers.read(files).items():
            if footer.columns not in by_columns:
                if footer.nanoseconds:
                    self._note_nanoseconds(data, footer.nanoseconds)
                by_columns[footer.columns] = _read_with(data, footer)
            if by_columns[footer.columns] != data:
                schemas[path] = by_columns[footer.columns]
        return schemas

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Check the footers; read values only of files whose types differ from the pinned ones."""
        footers = self._footers.read(files)
        bad = [footer_error(path, footer) for path, footer in footers.items()]
        bad_files = {error.path: error for error in bad if error is not None}
        sound_files = [file for file in files if file.path not in bad_files]
        types = {path: footer.types for path, footer in footers.items()}
        unknown = self._unknown_fields(sound_files, pinned)
        return self._check_sound(spark, files, bad_files, types, unknown, pinned)

    def _note_nanoseconds(self, data: StructType, nanoseconds: Mapping[FieldPath, bool]) -> None:
        changed = [path for path, instant in nanoseconds.items() if as_numbers(data, {path: instant}) != data]
        self._note_cut_times(map(dotted_name, changed))

    def _unknown_fields(self, files: Sequence[SourceFile], pinned: PinnedSchema) -> Mapping[str, list[str]]:
        """Return the fields that the schema lacks, by path, from the footers."""
        pinned_paths = field_paths(pinned.struct)
        return {
            path: unknown_names(footer.fields, footer.types, pinned_paths)
            for path, footer in self._footers.read(files).items()
        }

    @override
    def own_schemas(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        data: StructType,
    ) -> Mapping[str, StructType]:
        """Return the columns of each file; nanoseconds as whole numbers."""
        footers = self._footers.read(files)
        types = self.columns.types_of(spark, self.columns.first_files(files))
        return {
            file.path: _read_with(types[footers[file.path].columns], footers[file.path])
            for file in files
            if file.path in footers
        }

    def rescue(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        own: StructType | None,
        data: StructType,
        folders: Sequence[FolderValue],
        scanner: Scanner,
    ) -> DataFrame:
        """Return the pinned columns and ``_rescued_data``, with nanoseconds as times."""
        footer = self._footers.read(files).get(files[0].path)
        if own is None or footer is None:
            return super().rescue(spark, files, own, data, folders, scanner)
        real = self.columns.types_of(spark, self.columns.first_files(files))[footer.columns]
        self._note_nanoseconds(real, footer.nanoseconds)
        values = [_convert_column(read, real[read.name].dataType).alias(read.name) for read in own.fields]
        rows = self.scan(spark, files, own, scanner).select(*values)
        return rescued_columns(rows, real, data, folders, self.parse_value)


def _read_with(data: StructType, footer: Footer) -> StructType:
    """Return the columns to read a file with: its own types, and nanoseconds as whole numbers."""
    own = {name.casefold(): data_type for name, data_type in footer.types.items() if data_type is not None}
    return as_numbers(with_own_types(data, own), footer.nanoseconds)


def _convert_column(read: StructField, column: DataType) -> Column:
    """Convert a column that was read with :func:`_read_with` to its final type."""
    from pyspark.sql import functions as F

    value, own = F.col(quoted(read.name)), own_type(read)
    return as_times(value, read.dataType, column) if own is None else convert_value(value, own, column)
