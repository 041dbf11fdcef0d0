"""Parquet: files with their own types, and footers that tell them without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.path.source import SourceFile
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.converting import converted, own_type, with_own_types
from resources.sources.files.footers import FieldPath, Footer, FooterCache, paths_of, shown
from resources.sources.files.formats.parquet_inferring import ParquetColumns, bad_footer
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
    """Columns with types of their own."""

    READER: ClassVar[str] = "parquet"

    columns: ParquetColumns

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Read no footer yet."""
        super().__init__(place, dataflow, staging)
        self._footers = FooterCache(place)
        self.columns = ParquetColumns(self, self._footers)

    @override
    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """The columns of all files count, and checksums of pages, where a file has some."""
        return {_CHECKSUMS: True, **({"mergeSchema": True} if infer else {})}

    def has_rows(self, file: SourceFile) -> bool:
        """The footer counts them."""
        footer = self._footers.read([file]).get(file.path) if file.size > 0 else None
        return file.size > 0 and not (footer is not None and footer.is_empty)

    def schemas(self, files: Sequence[SourceFile], data: StructType) -> Mapping[str, StructType]:
        """Columns with nanoseconds are read as whole numbers."""
        by_columns: dict[str, StructType] = {}
        schemas: dict[str, StructType] = {}
        for path, footer in self._footers.read(files).items():
            if footer.columns not in by_columns:
                if footer.nanoseconds:
                    self._remark(data, footer.nanoseconds)
                by_columns[footer.columns] = _read_with(data, footer)
            if by_columns[footer.columns] != data:
                schemas[path] = by_columns[footer.columns]
        return schemas

    def check(self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema) -> CheckedFiles:
        """Look at the footers; only of files with columns of other types than the pinned ones values are read."""
        footers = self._footers.read(files)
        bad = [bad_footer(path, footer) for path, footer in footers.items()]
        bad_files = {error.path: error for error in bad if error is not None}
        sound = [file for file in files if file.path not in bad_files]
        types = {path: footer.types for path, footer in footers.items()}
        unknown = self._unknown_fields(sound, pinned)
        return self._check_sound(spark, files, bad_files, types, unknown, pinned)

    def _remark(self, data: StructType, nanoseconds: Mapping[FieldPath, bool]) -> None:
        changed = [path for path, instant in nanoseconds.items() if as_numbers(data, {path: instant}) != data]
        self._remark_cut(map(shown, changed))

    def _unknown_fields(self, files: Sequence[SourceFile], pinned: PinnedSchema) -> Mapping[str, list[str]]:
        """Read the footers, without Spark."""
        pinned_paths = paths_of(pinned.struct)
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
        """The columns of each file; its nanoseconds as whole numbers."""
        footers = self._footers.read(files)
        types = self.columns.types_by_footer(spark, self.columns.first_of_each(files))
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
        """The same, with times of nanoseconds as times."""
        footer = self._footers.read(files).get(files[0].path)
        if own is None or footer is None:
            return super().rescue(spark, files, own, data, folders, scanner)
        real = self.columns.types_by_footer(spark, self.columns.first_of_each(files))[footer.columns]
        self._remark(real, footer.nanoseconds)
        values = [_as_column(read, real[read.name].dataType).alias(read.name) for read in own.fields]
        rows = self.scan(spark, files, own, scanner).select(*values)
        return rescued_columns(rows, real, data, folders, self.parsed)


def _read_with(data: StructType, footer: Footer) -> StructType:
    """The columns to read a file with that become these: values of its own types, and nanoseconds as whole numbers."""
    own = {name.casefold(): data_type for name, data_type in footer.types.items() if data_type is not None}
    return as_numbers(with_own_types(data, own), footer.nanoseconds)


def _as_column(read: StructField, column: DataType) -> Column:
    """What was read as :func:`_read_with` says, in the type that it becomes."""
    from pyspark.sql import functions as F

    value, own = F.col(quoted(read.name)), own_type(read)
    return as_times(value, read.dataType, column) if own is None else converted(value, own, column)
