"""Parquet: files with their own types, and footers that tell them without Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from partitions.dataflow import Dataflow
from partitions.path.source import SourceFile
from partitions.sources.formats import Option
from resources.places import Place
from resources.sources.files.footers import FieldPath, FooterCache, paths_of, unknown_columns
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.merging import merged, nullable
from resources.sources.files.nanoseconds import as_inferred, as_numbers, shown
from resources.sources.files.pinned import PinnedSchema
from resources.staging import Staging

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
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
                group[0].path: as_inferred(nullable(self.scan(spark, group, None).schema), dict(nanoseconds))
                for nanoseconds, group in groups.items()
            }
        )

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

    def other_columns(
        self, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
    ) -> Mapping[str, StructType]:
        """Read the footers, without Spark; of files with the same columns Spark tells the types of one."""
        footers = self._footers.read(files)
        groups: dict[str, SourceFile] = {}
        for file in files:
            if file.path in footers:
                groups.setdefault(footers[file.path].columns, file)
        self._types = {text: kinds for text, kinds in self._types.items() if text in groups}
        for text, file in groups.items():
            if text not in self._types:
                self._types[text] = self.infer(spark, [file])
        return {file.path: self._types[text] for text, file in groups.items()}
