"""Parquet: files with their own types, and footers that tell them without Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.sources.formats import Option
from resources.connections.places import Place
from resources.sources.files.checked import CheckedFiles
from resources.sources.files.converting import converted, own_struct, own_type, with_own_types
from resources.sources.files.failures import bad_document, names_twice, unreadable_type
from resources.sources.files.footers import FieldPath, Footer, FooterCache, paths_of, shown
from resources.sources.files.formats.merging import merged, nullable
from resources.sources.files.formats.typed import TypedFiles, taken_columns, unknown_names
from resources.sources.files.nanoseconds import as_inferred, as_numbers, as_times
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.rescuing import FolderValue, rescued_columns
from resources.sources.files.scan import Scanner
from resources.spark.settings import settings_for_a_while
from resources.sql import quoted
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructField, StructType

_CHECKSUMS = "parquet.page.verify-checksum.enabled"
_NANOSECONDS = {"spark.sql.legacy.parquet.nanosAsLong": "true"}


class ParquetFiles(TypedFiles):
    """Columns with types of their own."""

    READER: ClassVar[str] = "parquet"

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Read no footer yet."""
        super().__init__(place, dataflow, staging)
        self._footers = FooterCache(place)

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
        bad = [_bad_footer(path, footer) for path, footer in footers.items()]
        bad_files = {error.path: error for error in bad if error is not None}
        sound = [file for file in files if file.path not in bad_files]
        types = {path: footer.types for path, footer in footers.items()}
        unknown = self._unknown_fields(sound, pinned)
        return self._check_sound(spark, files, bad_files, types, unknown, pinned)

    def _remark(self, data: StructType, nanoseconds: Mapping[FieldPath, bool]) -> None:
        changed = [path for path, instant in nanoseconds.items() if as_numbers(data, {path: instant}) != data]
        self._remark_cut(map(shown, changed))

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType:
        """Return the columns of all files; those without a value in any of them may have no type yet."""
        return self.with_deferred_types(self._merged_columns(spark, files).jsonValue())

    def _merged_columns(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType:
        """Spark's own way; of files with nanoseconds apart, since Spark tells these times as whole numbers, if at all."""
        footers = self._footers.read(files)
        bad = [_bad_footer(file.path, footers[file.path]) for file in files if file.path in footers]
        refused = {error.path: error for error in bad if error is not None}
        sound = [file for file in files if file.path not in refused]
        for error in () if sound else refused.values():
            raise error
        firsts = self._first_of_each(sound)
        unread = [file for file in sound if file.path not in footers]
        has_nanoseconds = any(footers[file.path].nanoseconds for file in firsts.values())
        with settings_for_a_while(spark, _NANOSECONDS if has_nanoseconds else {}):
            schemas = [self._columns_of(spark, file) for file in [*firsts.values(), *unread]]
        return merged(schemas)

    def _columns_of(self, spark: SparkSession, file: SourceFile) -> StructType:
        """The columns of one file: by its footer if Spark cannot tell them all, else by Spark.

        Raises:
            BadFile: the type of a column is known to neither.
        """
        footer = self._footers.read([file]).get(file.path)
        if footer is None or not footer.needs_own_types:
            schema = nullable(self.scan(spark, [file], None).schema)
            for field in schema.fields:  # Spark writes them as numbers, and tells itself what they were
                if "interval" in field.dataType.simpleString():
                    raise unreadable_type(file.path, field.name, "an interval, which no table holds")
            return schema if footer is None else as_inferred(schema, footer.nanoseconds)
        strange = next((name for name, data_type in footer.types.items() if data_type is None), None)
        if strange is not None:
            raise unreadable_type(file.path, strange, "another one than Spark's")
        return own_struct(footer.types)

    def _unknown_fields(self, files: Sequence[SourceFile], pinned: PinnedSchema) -> Mapping[str, list[str]]:
        """Read the footers, without Spark."""
        pinned_paths = paths_of(pinned.struct)
        return {
            path: unknown_names(footer.fields, footer.types, pinned_paths)
            for path, footer in self._footers.read(files).items()
        }

    @override
    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Read the footers, without Spark."""
        return {
            path: frozenset(field[0].casefold() for field in footer.fields)
            for path, footer in self._footers.read(files).items()
            if footer.fault is None
        }

    @override
    def other_columns(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        check: Callable[[], CheckedFiles],
    ) -> Mapping[str, StructType]:
        """Read the footers, without Spark; of files with the same columns Spark tells the types of one."""
        groups = self._first_of_each([file for file in files if not self._is_unreadable(file)])
        return taken_columns(self._types_by_footer(spark, groups), groups, pinned)

    def _is_unreadable(self, file: SourceFile) -> bool:
        footer = self._footers.read([file]).get(file.path)
        return footer is not None and _bad_footer(file.path, footer) is not None

    @override
    def own_schemas(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        data: StructType,
    ) -> Mapping[str, StructType]:
        """The columns of each file; its nanoseconds as whole numbers."""
        footers = self._footers.read(files)
        types = self._types_by_footer(spark, self._first_of_each(files))
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
        real = self._types_by_footer(spark, self._first_of_each(files))[footer.columns]
        self._remark(real, footer.nanoseconds)
        values = [_as_column(read, real[read.name].dataType).alias(read.name) for read in own.fields]
        rows = self.scan(spark, files, own, scanner).select(*values)
        return rescued_columns(rows, real, data, folders, self.parsed)

    def _first_of_each(self, files: Sequence[SourceFile]) -> dict[str, SourceFile]:
        """The first of the files with the same columns, by these as text."""
        footers = self._footers.read(files)
        groups: dict[str, SourceFile] = {}
        for file in files:
            if file.path in footers:
                groups.setdefault(footers[file.path].columns, file)
        return groups

    def _types_by_footer(
        self, spark: SparkSession, groups: Mapping[str, SourceFile]
    ) -> Mapping[str, StructType]:
        return self._types_of(groups, lambda _, file: self._merged_columns(spark, [file]))


def _bad_footer(path: str, footer: Footer) -> BadFile | None:
    """Why a file cannot be loaded, whatever its rows are; None if it can."""
    if footer.fault is not None:
        return bad_document(path, footer.fault)
    if footer.twice is not None:
        return names_twice(path, *footer.twice)
    for column, data_type in footer.unreadable.items():
        return unreadable_type(path, column, data_type)
    return None


def _read_with(data: StructType, footer: Footer) -> StructType:
    """The columns to read a file with that become these: values of its own types, and nanoseconds as whole numbers."""
    own = {name.casefold(): data_type for name, data_type in footer.types.items() if data_type is not None}
    return as_numbers(with_own_types(data, own), footer.nanoseconds)


def _as_column(read: StructField, column: DataType) -> Column:
    """What was read as :func:`_read_with` says, in the type that it becomes."""
    from pyspark.sql import functions as F

    value, own = F.col(quoted(read.name)), own_type(read)
    return as_times(value, read.dataType, column) if own is None else converted(value, own, column)
