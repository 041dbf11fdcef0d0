"""The rows of exactly the listed files, with their folders' values and their origin as columns (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from partitions.dataflow import Dataflow
from partitions.errors import SchemaError
from partitions.path.hive import folder_value, partition_columns
from partitions.path.source import SourceFile
from partitions.schema_merging import RESCUED_DATA
from partitions.schema_policy import may_take_columns
from resources.sources.files.converting import converted, own_type
from resources.sources.files.formats.alike import only
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.nanoseconds import as_times
from resources.sources.files.paths import (
    SOURCE_FILE,
    folder_column,
    is_hive,
    is_plain,
    spellings,
    text_column,
)
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.rescuing import FolderValue, with_folders
from resources.sources.files.scan import Scanner
from resources.sources.schema import has_fixed_texts, plain
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import StructField, StructType


class _Alike(NamedTuple):
    """What the files of one scan have in common: what their paths tell of their rows, and how.

    Attributes:
        alone: the path of an odd file, which no other is scanned with; else "".
        place: the root that they are scanned below.
        apart: what the format asks the files of one scan to have in common.
        plain: whether Spark reports their paths letter by letter.
        hive: whether Spark reads their folders, as we do.
        folders: the columns that their folders name, as these are spelt there.
        in_records: the columns that are read from their records.
        schema: that they are read with, if it is not the pinned one.
    """

    alone: str
    place: str
    apart: str
    plain: bool
    hive: bool
    folders: tuple[str, ...]
    in_records: tuple[str, ...]
    schema: StructType | None = None


class FilesReader:
    """Reads files under a root."""

    def __init__(self, form: FormatReader, dataflow: Dataflow) -> None:
        """Use what reads one file, and the definition."""
        self._format, self._dataflow = form, dataflow

    def read(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        *,
        origin: bool,
        without: Mapping[str, Collection[str]] | None = None,
    ) -> DataFrame:
        """Exactly these files, with the pinned columns in their order, and ``_source_file`` if asked for. Fields that are not pinned are left out.

        Args:
            spark: a session.
            files: to read.
            pinned: their schema.
            origin: whether rows have the path of their file.
            without: texts of records that are left out, by the path of their file.

        Raises:
            SchemaError: reason ``incompatible_schema``: a folder names a column that the pinned schema does not have.
            BadFile: the rows of a file cannot be had.
        """
        if self._format.rules.is_strict:
            self._check_folders(files, pinned)
        filled = [file for file in files if self._format.has_rows(file)]
        scanners = self._format.located(filled, pinned, without or {})
        frames = [
            self._load(spark, scanners[group[0].path], alike, group, pinned, origin)
            for alike, group in self._alike(spark, scanners, filled, pinned).items()
        ]
        if not frames:
            empty = spark.createDataFrame([], pinned.struct)
            return empty.select("*", *[text_column(None).alias(name) for name in self._added(origin)])
        result = frames[0]
        for frame in frames[1:]:
            result = result.unionByName(frame)
        return result

    def columns(self, pinned: PinnedSchema, *, origin: bool) -> StructType | None:
        """Return the columns of the rows that :meth:`read` returns; None if Spark makes other types of them."""
        from pyspark.sql.types import StringType, StructField, StructType

        if has_fixed_texts(pinned.struct):
            return None
        added = [StructField(name, StringType()) for name in self._added(origin)]
        return StructType([*plain(pinned.struct).fields, *added])

    def _added(self, origin: bool) -> list[str]:
        """The texts that reading adds behind the pinned columns."""
        return ([RESCUED_DATA] if self._format.rules.rescues else []) + ([SOURCE_FILE] if origin else [])

    def _alike(
        self,
        spark: SparkSession,
        scanners: Mapping[str, Scanner],
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
    ) -> dict[_Alike, list[SourceFile]]:
        """The files of each scan."""
        rescues = self._format.rules.rescues
        schemas = (
            self._format.own_schemas(spark, files, pinned.struct)
            if rescues
            else self._format.schemas(files, pinned.struct) or {}
        )
        groups: dict[_Alike, list[SourceFile]] = {}
        for file in files:
            scanner = scanners[file.path]
            alone = file.path if scanner.is_odd(file) else ""
            folders = tuple(spellings([file.path]).values())
            plain = is_plain(file.path)
            hive = plain and is_hive(file.path) and self._format.tells_folders(file.path)
            in_records = tuple(self._format.beside_folders(file, pinned).data.names)
            apart = self._format.apart(file.path)
            place = scanner.place.url
            alike = _Alike(alone, place, apart, plain, hive, folders, in_records, schemas.get(file.path))
            groups.setdefault(alike, []).append(file)
        return groups

    def _load(
        self,
        spark: SparkSession,
        scanner: Scanner,
        alike: _Alike,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        origin: bool,
    ) -> DataFrame:
        """Files that are alike, in one scan.

        What a file's path tells is known here if there is one file. Of many Spark tells the folders' values if it reads them as Strandline does,
        which costs nothing a row; else they are computed from the path that it reports.
        """
        from pyspark.sql import functions as F
        from pyspark.sql.types import StringType, StructField, StructType

        if self._format.rules.rescues:
            return self._rescued(spark, scanner, alike, files, pinned, origin)
        data = only(pinned.struct if alike.schema is None else alike.schema, alike.in_records)
        if len(files) == 1:
            known = files[0].path
            values = {name.lower(): text_column(folder_value(known, name)) for name in alike.folders}
            scan = self._format.scan_rows(spark, files, data, scanner)
            return _select(
                scan, pinned, data, [text_column(known).alias(SOURCE_FILE)] if origin else [], values
            )
        root = scanner.place.spark_url
        path = scanner.relative_path(plain=alike.plain)
        in_folders = {name.lower() for name in alike.folders}
        if alike.hive and is_plain(root) and in_folders.isdisjoint(map(str.lower, data.names)):
            columns = [StructField(name, StringType()) for name in alike.folders]
            schema = StructType([*data.fields, *columns])
            scan = self._format.scan_rows(
                spark, files, schema, scanner, basePath=root, recursiveFileLookup="false"
            )
            values = {name.lower(): F.col(quoted(name)) for name in alike.folders}
        else:
            scan = self._format.scan_rows(spark, files, data, scanner)
            values = {name.lower(): folder_column(path, name) for name in alike.folders}
        return _select(scan, pinned, data, [path.alias(SOURCE_FILE)] if origin else [], values)

    def _rescued(
        self,
        spark: SparkSession,
        scanner: Scanner,
        alike: _Alike,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
        origin: bool,
    ) -> DataFrame:
        """Files that are alike, with ``_rescued_data``, which has the values of folders that are no columns, too."""
        from pyspark.sql import functions as F

        data = only(pinned.struct, alike.in_records)
        if len(files) == 1:
            path = text_column(files[0].path)
            values = {name.lower(): text_column(folder_value(files[0].path, name)) for name in alike.folders}
        else:
            path = scanner.relative_path(plain=alike.plain)
            values = {name.lower(): folder_column(path, name) for name in alike.folders}
        folders = [
            FolderValue(field, values[field.name.lower()])
            for field in pinned.struct.fields
            if field.name.lower() in values
        ]
        rows = self._format.rescue(spark, files, alike.schema, data, folders, scanner)
        pinned_names = {name.lower() for name in pinned.struct.names}
        others = {name: values[name.lower()] for name in alike.folders if name.lower() not in pinned_names}
        rescued = with_folders(F.col(RESCUED_DATA), others).alias(RESCUED_DATA)
        more = [rescued, *([path.alias(SOURCE_FILE)] if origin else [])]
        return _select(rows, pinned, data, more, values)

    def _check_folders(self, files: Sequence[SourceFile], pinned: PinnedSchema) -> None:
        named = pinned.folders if pinned.declared is None else pinned.struct.fieldNames()
        known = {name.lower() for name in named}
        for lower, name in spellings(file.path for file in files).items():
            if lower not in known:
                example = next(file.path for file in files if name in partition_columns([file.path]))
                merge = (
                    "take new columns with `schema_mode: merge` below `target`; or "
                    if may_take_columns(self._dataflow)
                    else ""
                )
                expected = (
                    f"a folder of {', '.join(sorted(named))}" if named else "no folder that names a column"
                )
                raise SchemaError(
                    f"folder column {name!r} of {example}: expected {expected}, as when the schema was pinned; schema_mode: strict accepts no"
                    f" new column. Move the file; or {merge}name the column in source.schema, and run the reset below, which loads the table again",
                    reason="incompatible_schema",
                    field=name,
                    choices=(f"strandline state reset {self._dataflow.name} --replace --reason TEXT",),
                )


def _select(
    df: DataFrame,
    pinned: PinnedSchema,
    data: StructType,
    more: Sequence[Column],
    folders: Mapping[str, Column],
) -> DataFrame:
    """The pinned columns in their order: from its folders, by their names in lower case, or from the file; then others."""
    from pyspark.sql import functions as F

    read = {field.name: field for field in data.fields}

    def value(field: StructField) -> Column:
        if field.name.lower() in folders:
            return folders[field.name.lower()].cast(field.dataType)
        if field.name not in read:
            return text_column(None).cast(field.dataType)
        column, of_file = F.col(quoted(field.name)), read[field.name]
        if (own := own_type(of_file)) is not None:
            return converted(column, own, field.dataType)
        return as_times(column, of_file.dataType, field.dataType)

    return df.select(*[value(field).alias(field.name) for field in pinned.struct.fields], *more)
