"""Reading of a slice's files with their pinned schema (docs/reference/files.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.errors import BadFile, SchemaError
from partitions.loads import LackingColumn
from partitions.path.hive import partition_columns
from partitions.path.slices import PathSlice
from partitions.path.source import SourceFile
from resources.kinds.contract.reading import KnowsColumns, Reading, ReportsMissingColumns, SliceBase
from resources.kinds.path.copies import CopyFinder
from resources.sources.files.source import FileSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class PathReading(Reading[PathSlice], KnowsColumns, ReportsMissingColumns[PathSlice]):
    """Reader of files.

    Attributes:
        source: the dataflow's files.
        copies: finds files with the content of loaded ones.
    """

    same_query_for_all_slices: ClassVar[bool] = True
    """Slices differ in their files only."""

    source: FileSource
    copies: CopyFinder

    @property
    def warnings(self) -> Sequence[str]:
        """The source's warnings about the files, and those about copies."""
        return (*self.source.remarks, *self.copies.remarks)

    def pin(self, spark: SparkSession, pending: Sequence[PathSlice]) -> str | None:
        """Return the declared schema, or infer it from a bounded sample of all waiting files."""
        files = [file for slice_ in pending for file in slice_.files]
        skipped_files = [aside.file for slice_ in pending for aside in slice_.quarantined]
        return self.source.pin(spark, files, skipped_files)

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare ``source.schema`` with the pinned schema."""
        self.source.check_schema(spark, pinned)

    def columns(self, pinned: str) -> StructType | None:
        """Return the pinned columns and the columns that tell a row's file."""
        return self.source.columns(pinned)

    @override
    def fix(self, slice_: PathSlice, base: SliceBase) -> PathSlice:
        """Return the slice, whose files the plan has fixed, with its copies marked.

        Check that the files have not changed.
        """
        self.check_unchanged(slice_)
        return self.copies.mark_copies(slice_, base.entry)

    def check_unchanged(self, slice_: PathSlice) -> None:
        """Compare size and version of every file with its listing."""
        self.source.check_unchanged(slice_.files)

    def read(self, spark: SparkSession, slice_: PathSlice | None, pinned: str) -> DataFrame:
        """Read the slice's files.

        Raises:
            SchemaError: the folders of a file name a column that the pinned schema lacks.
            BadFile: the same for a file beside the watermark, which must not block the files above it; or
                the first file with an open quote, or with fields that the pinned schema lacks
                (``unknown_fields: check``).
        """
        files = slice_.files if slice_ else ()
        try:
            return self.source.read(spark, files, pinned)
        except SchemaError as error:
            if slice_ is not None and slice_.why != "run" and (bad_file := _with_folder(error, files)):
                raise bad_file from error
            raise

    def missing_columns(self, spark: SparkSession, slice_: PathSlice, pinned: str) -> Sequence[LackingColumn]:
        """Return the columns that some of the slice's files lack."""
        return self.source.lacking(spark, slice_.files, pinned)


def _with_folder(error: SchemaError, files: Sequence[SourceFile]) -> BadFile | None:
    """Return the first file below a folder of the column that an error names, as a bad file."""
    path = next((file.path for file in files if error.field in partition_columns([file.path])), None)
    if path is None:
        return None
    return BadFile(f"file {path}: {error.message}", path=path, why=error.message, choices=error.choices)
