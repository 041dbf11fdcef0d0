"""Parquet: files with their own types, and footers that tell them without Spark."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from partitions.dataflow import Dataflow
from partitions.path.source import SourceFile
from partitions.sources.formats import Option
from resources.places import Place
from resources.sources.files.footers import FieldPath, FooterCache, paths_of, unknown_columns
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.merging import merged, nullable
from resources.sources.files.nanoseconds import as_inferred, as_numbers, as_times, shown
from resources.sources.files.pinned import PinnedSchema
from resources.sources.files.rescuing import rescued_columns
from resources.sources.files.scan import Scanner
from resources.sql import quoted
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_Nanoseconds = frozenset[tuple[FieldPath, bool]]


class ParquetFiles(FormatReader):
    """Columns with types of their own. A file reads, or it does not: it has no bad records."""

    READER: ClassVar[str] = "parquet"

    def __init__(self, place: Place, dataflow: Dataflow, staging: Staging) -> None:
        """Read no footer yet."""
        super().__init__(place, dataflow, staging)
        self._footers = FooterCache(place)
        self._types: dict[str, StructType] = {}
        self._remarks: dict[str, None] = {}

    @property
    def remarks(self) -> Sequence[str]:
        """Which times were cut off."""
        return tuple(self._remarks)

    def options(self, path: str, *, infer: bool) -> Mapping[str, Option]:
        """The columns of all files count."""
        return {"mergeSchema": True} if infer else {}

    def schemas(self, files: Sequence[SourceFile], data: StructType) -> Mapping[str, StructType]:
        """Columns with nanoseconds are read as whole numbers."""
        footers = self._footers.read(files)
        known: dict[_Nanoseconds, StructType] = {}
        schemas: dict[str, StructType] = {}
        for path, footer in footers.items():
            if not footer.nanoseconds:
                continue
            key = frozenset(footer.nanoseconds.items())
            if key not in known:
                known[key] = as_numbers(data, footer.nanoseconds)
                self._remark(data, footer.nanoseconds)
            if known[key] != data:
                schemas[path] = known[key]
        return schemas

    def _remark(self, data: StructType, nanoseconds: Mapping[FieldPath, bool]) -> None:
        changed = [path for path, instant in nanoseconds.items() if as_numbers(data, {path: instant}) != data]
        if changed:
            names = ", ".join(sorted(map(shown, changed)))
            remark = (
                f"times with nanoseconds are loaded as microseconds, and what lies beyond is cut off: {names}"
            )
            self._remarks[remark] = None

    def infer(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType:
        """Spark's own way; of files with nanoseconds apart, since Spark tells these times as whole numbers, if at all."""
        footers = self._footers.read(files)
        groups: dict[_Nanoseconds, list[SourceFile]] = {}
        for file in files:
            nanoseconds = footers[file.path].nanoseconds if file.path in footers else {}
            groups.setdefault(frozenset(nanoseconds.items()), []).append(file)
        if any(groups):
            spark.conf.set("spark.sql.legacy.parquet.nanosAsLong", "true")
        return merged(
            {
                group[0].path: as_inferred(self._merged_by_spark(spark, group), dict(nanoseconds))
                for nanoseconds, group in groups.items()
            }
        )

    def _merged_by_spark(self, spark: SparkSession, files: Sequence[SourceFile]) -> StructType:
        """The columns of all files by Spark, which names neither file nor column if one has two types: then each file is asked.

        Raises:
            BadFile: if a column has two types.
        """
        try:
            return nullable(self.scan(spark, files, None).schema)
        except Exception as error:
            if "CANNOT_MERGE_SCHEMAS" not in str(error):
                raise
            firsts = self._first_of_each(files).values()
            merged({file.path: nullable(self.scan(spark, [file], None).schema) for file in firsts})
            raise

    def unknown_fields(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        pinned: PinnedSchema,
    ) -> Mapping[str, list[str]]:
        """Read the footers, without Spark."""
        known = paths_of(pinned.struct)
        unknown_of = {
            path: unknown_columns(footer.fields, known) for path, footer in self._footers.read(files).items()
        }
        return {path: [shown(each) for each in names] for path, names in unknown_of.items() if names}

    def names_of(
        self, spark: SparkSession, files: Sequence[SourceFile], names: Sequence[str]
    ) -> Mapping[str, frozenset[str]]:
        """Read the footers, without Spark."""
        return {
            path: frozenset(field[0].casefold() for field in footer.fields)
            for path, footer in self._footers.read(files).items()
        }

    def other_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Mapping[str, StructType]:
        """Read the footers, without Spark; of files with the same columns Spark tells the types of one."""
        groups = self._first_of_each(files)
        types = self._types_of(spark, groups)
        return {file.path: types[text] for text, file in groups.items()}

    def own_schemas(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        data: StructType,
    ) -> Mapping[str, StructType]:
        """The columns of each file; its nanoseconds as whole numbers."""
        footers = self._footers.read(files)
        types = self._types_of(spark, self._first_of_each(files))
        return {
            file.path: as_numbers(types[footers[file.path].columns], footers[file.path].nanoseconds)
            for file in files
            if file.path in footers
        }

    def rescue(
        self,
        spark: SparkSession,
        files: Sequence[SourceFile],
        own: StructType | None,
        data: StructType,
        scanner: Scanner,
        bad: Collection[str] | None,
    ) -> DataFrame:
        """The same, with times of nanoseconds as times."""
        from pyspark.sql import functions as F

        footer = self._footers.read(files).get(files[0].path)
        if own is None or footer is None or not footer.nanoseconds:
            return super().rescue(spark, files, own, data, scanner, bad)
        real = as_inferred(own, footer.nanoseconds)
        self._remark(real, footer.nanoseconds)
        times = [
            as_times(F.col(quoted(read.name)), read.dataType, time.dataType).alias(read.name)
            for read, time in zip(own.fields, real.fields, strict=True)
        ]
        rows = self.scan(spark, files, own, scanner).select(*times)
        return rescued_columns(rows, real, data, self.parsed)

    def _first_of_each(self, files: Sequence[SourceFile]) -> dict[str, SourceFile]:
        """The first of the files with the same columns, by these as text."""
        footers = self._footers.read(files)
        groups: dict[str, SourceFile] = {}
        for file in files:
            if file.path in footers:
                groups.setdefault(footers[file.path].columns, file)
        return groups

    def _types_of(self, spark: SparkSession, groups: Mapping[str, SourceFile]) -> Mapping[str, StructType]:
        """The columns of some files in Spark's types; those of the files before are forgotten."""
        known = self._types
        self._types = {text: known.get(text) or self.infer(spark, [file]) for text, file in groups.items()}
        return self._types
