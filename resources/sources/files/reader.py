"""Read exactly the listed files, with the values of their folders and their paths as columns.

See docs/reference/files.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from partitions.dataflow import Dataflow
from partitions.errors import SchemaError
from partitions.path.hive import folder_value, partition_columns
from partitions.path.source import SourceFile
from partitions.schema_merging import RESCUED_DATA
from partitions.schema_policy import may_take_columns
from partitions.target import ABSENT_COLUMN
from resources.sources.files.absent_fields import fitting_mark
from resources.sources.files.converting import convert_value, own_type
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.scan_groups import select_columns
from resources.sources.files.nanoseconds import as_times
from resources.sources.files.paths import (
    SOURCE_FILE,
    folder_column,
    folder_names,
    has_only_hive_folders,
    is_uri_safe,
    text_column,
)
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.rescuing import FolderValue, add_folders
from resources.sources.files.scan import Scanner
from resources.sources.schema import has_fixed_texts, plain
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType


class _ScanKey(NamedTuple):
    """The properties that all files of one scan share.

    Attributes:
        odd_path: the path of a file that Spark would take for a glob, and that gets its own scan; else "".
        place: the root that the files are scanned below.
        format_key: the key by which the format separates scans.
        is_safe: whether Spark reports the paths without percent-encoding.
        has_spark_folders: whether Spark reads the folders as Strandline does.
        folders: the columns that folders name, as spelled there.
        record_columns: the columns that are read from records.
        schema: the schema to read with; None: the pinned one.
    """

    odd_path: str
    place: str
    format_key: str
    is_safe: bool
    has_spark_folders: bool
    folders: tuple[str, ...]
    record_columns: tuple[str, ...]
    schema: StructType | None = None


class FilesReader:
    """A reader of exact sets of files under a root."""

    def __init__(self, form: FormatReader, dataflow: Dataflow) -> None:
        """Store the format's reader and the definition."""
        self._format, self._dataflow = form, dataflow

    def read(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        *,
        origin: bool,
        bad_texts: Mapping[str, Collection[str]] | None = None,
    ) -> DataFrame:
        """Return the rows of exactly these files, with the pinned columns in their order.

        Fields that are not pinned are left out.

        Args:
            spark: a session.
            files: the files to read.
            pinned: their schema.
            origin: whether rows get ``_source_file``, the path of their file.
            bad_texts: the texts of records to leave out, by the path of their file.

        Raises:
            SchemaError: reason ``incompatible_schema``: a folder names a column that the pinned schema lacks.
            BadFile: the rows of a file cannot be read.
        """
        from pyspark.sql import functions as F

        if self._format.rules.is_strict:
            self._check_folders(files, pinned)
        files_with_rows = [file for file in files if self._format.has_rows(file)]
        scanners = self._format.locate_rows(files_with_rows, pinned, bad_texts or {})
        frames = [
            self._load(spark, scanners[group[0].path], key, group, pinned, origin)
            for key, group in self._group_by_scan(spark, scanners, files_with_rows, pinned).items()
        ]
        if not frames:
            empty = spark.createDataFrame([], pinned.struct)
            added = [text_column(None).alias(name) for name in self._added_names(origin)]
            marks = [F.array().cast("array<string>").alias(name) for name in self._mark_names]
            return empty.select("*", *added, *marks)
        result = frames[0]
        for frame in frames[1:]:
            result = result.unionByName(frame)
        return result

    def columns(self, pinned: PinnedSchema, *, origin: bool) -> StructType | None:
        """Return the columns of the rows that :meth:`read` returns; None if Spark changes their types."""
        from pyspark.sql.types import ArrayType, StringType, StructField, StructType

        if has_fixed_texts(pinned.struct):
            return None
        added = [StructField(name, StringType()) for name in self._added_names(origin)]
        marks = [StructField(name, ArrayType(StringType())) for name in self._mark_names]
        return StructType([*plain(pinned.struct).fields, *added, *marks])

    @property
    def _mark_names(self) -> list[str]:
        """Return the name of the column that says what a record lacks, if rows have it."""
        return [ABSENT_COLUMN] if self._format.rules.marks_absent else []

    def _added_names(self, origin: bool) -> list[str]:
        """Return the names of the text columns that reading adds behind the pinned columns."""
        return ([RESCUED_DATA] if self._format.rules.rescues else []) + ([SOURCE_FILE] if origin else [])

    def _group_by_scan(
        self,
        spark: SparkSession,
        scanners: Mapping[str, Scanner],
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
    ) -> dict[_ScanKey, list[SourceFile]]:
        """Group the files into scans."""
        rescues = self._format.rules.rescues
        schemas = (
            self._format.own_schemas(spark, files, pinned.struct)
            if rescues
            else self._format.schemas(files, pinned.struct) or {}
        )
        groups: dict[_ScanKey, list[SourceFile]] = {}
        for file in files:
            scanner = scanners[file.path]
            odd_path = file.path if scanner.needs_own_scan(file) else ""
            folders = tuple(folder_names([file.path]).values())
            is_safe = is_uri_safe(file.path)
            has_spark_folders = (
                is_safe and has_only_hive_folders(file.path) and self._format.has_folder_columns(file.path)
            )
            record_columns = tuple(self._format.schema_of_file(file, pinned).data.names)
            format_key = self._format.scan_key(file.path)
            place = scanner.place.url
            key = _ScanKey(
                odd_path,
                place,
                format_key,
                is_safe,
                has_spark_folders,
                folders,
                record_columns,
                schemas.get(file.path),
            )
            groups.setdefault(key, []).append(file)
        return groups

    def _load(
        self,
        spark: SparkSession,
        scanner: Scanner,
        key: _ScanKey,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        origin: bool,
    ) -> DataFrame:
        """Read the files of one group in one scan.

        The path of a single file is known here. For several files, Spark's own folder columns are used if they
        equal Strandline's: they cost nothing per row. Otherwise the values of folders are computed from the path
        that Spark reports.
        """
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructField, StructType

        if self._format.rules.rescues or self._format.rules.marks_absent:
            return self._load_from_texts(spark, scanner, key, files, pinned, origin)
        data = select_columns(pinned.struct if key.schema is None else key.schema, key.record_columns)
        path, values = _path_and_folders(scanner, key, files)
        root = scanner.place.spark_url
        has_own_names = values.keys().isdisjoint(map(str.lower, data.names))
        if len(files) > 1 and key.has_spark_folders and is_uri_safe(root) and has_own_names:
            columns = [StructField(name, StringType()) for name in key.folders]
            schema = StructType([*data.fields, *columns])
            scan = self._format.scan_rows(
                spark, files, schema, scanner, basePath=root, recursiveFileLookup="false"
            )
            values = {name.lower(): F.col(quoted(name)) for name in key.folders}
        else:
            scan = self._format.scan_rows(spark, files, data, scanner)
        return _select_columns(scan, pinned, data, [path.alias(SOURCE_FILE)] if origin else [], values)

    def _load_from_texts(
        self,
        spark: SparkSession,
        scanner: Scanner,
        key: _ScanKey,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        origin: bool,
    ) -> DataFrame:
        """Read the files of one group with ``_rescued_data``, or with what each record lacks, or both.

        ``_rescued_data`` also holds the values of folders that are no columns. Without it a value that does
        not fit fails: checks have found none.
        """
        from pyspark.sql import functions as F

        data = select_columns(pinned.struct, key.record_columns)
        path, values = _path_and_folders(scanner, key, files)
        folders = [
            FolderValue(field, values[field.name.lower()])
            for field in pinned.struct.fields
            if field.name.lower() in values
        ]
        rows = self._format.rescue(spark, files, key.schema, data, folders, scanner)
        pinned_names = {name.lower() for name in pinned.struct.names}
        other_folders = {
            name: values[name.lower()] for name in key.folders if name.lower() not in pinned_names
        }
        rescued = add_folders(F.col(RESCUED_DATA), other_folders).alias(RESCUED_DATA)
        rules = self._format.rules
        extra_columns = [
            *([rescued] if rules.rescues else []),
            *([path.alias(SOURCE_FILE)] if origin else []),
            *[
                (F.col(name) if rules.rescues else fitting_mark(data.names)).alias(name)
                for name in self._mark_names
            ],
        ]
        return _select_columns(rows, pinned, data, extra_columns, values)

    def _check_folders(self, files: Sequence[SourceFile], pinned: PinnedSchema) -> None:
        expected_names = pinned.folders if pinned.declared is None else pinned.struct.fieldNames()
        allowed_names = {name.lower() for name in expected_names}
        for lower, name in folder_names(file.path for file in files).items():
            if lower not in allowed_names:
                example = next(file.path for file in files if name in partition_columns([file.path]))
                merge = (
                    "accept new columns with `schema_mode: merge` below `target`; or "
                    if may_take_columns(self._dataflow)
                    else ""
                )
                expected = (
                    f"a folder named by one of the columns {', '.join(sorted(expected_names))}"
                    if expected_names
                    else "no folder that names a column"
                )
                raise SchemaError(
                    f"folder column {name!r} of {example}: expected {expected}, as when the schema was pinned; schema_mode: strict accepts no"
                    f" new column. Move the file; or {merge}name the column in source.schema, and run the reset below, which loads the table again",
                    reason="incompatible_schema",
                    field=name,
                    choices=(f"strandline state reset {self._dataflow.name} --replace --reason TEXT",),
                )


def _path_and_folders(
    scanner: Scanner, key: _ScanKey, files: Sequence[SourceFile]
) -> tuple[Column, dict[str, Column]]:
    """Return the path of each row's file, and the values of its folders by name.

    Those of a single file are known here.
    """
    if len(files) == 1:
        only = files[0].path
        values = {name.lower(): text_column(folder_value(only, name)) for name in key.folders}
        return text_column(only), values
    path = scanner.relative_path(plain=key.is_safe)
    return path, {name.lower(): folder_column(path, name) for name in key.folders}


def _select_columns(
    df: DataFrame,
    pinned: PinnedSchema,
    data: StructType,
    extra_columns: Sequence[Column],
    folders: Mapping[str, Column],
) -> DataFrame:
    """Select the pinned columns in their order, from the folders or the file; then ``extra_columns``.

    ``folders`` is keyed by lower-case name.
    """
    from pyspark.sql import functions as F

    file_fields = {field.name: field for field in data.fields}

    def value(field: StructField) -> Column:
        if field.name.lower() in folders:
            return folders[field.name.lower()].cast(field.dataType)
        if field.name not in file_fields:
            return text_column(None).cast(field.dataType)
        column, file_field = F.col(quoted(field.name)), file_fields[field.name]
        if (own := own_type(file_field)) is not None:
            return convert_value(column, own, field.dataType)
        return as_times(column, file_field.dataType, field.dataType)

    return df.select(*[value(field).alias(field.name) for field in pinned.struct.fields], *extra_columns)
