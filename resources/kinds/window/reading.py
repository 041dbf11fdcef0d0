"""Reading of a slice's work units, with the columns of their window and unit.

See docs/reference/windows.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import SourceError
from partitions.loads import LackingColumn
from partitions.window.slices import WindowSlice
from partitions.window.work_unit import WorkUnit
from resources.kinds.contract.reading import (
    KnowsColumns,
    Reading,
    ReadsVersions,
    ReportsMissingColumns,
    SliceBase,
)
from resources.kinds.window.columns import WindowColumns
from resources.kinds.window.failures import bad_units
from resources.kinds.window.sources import FolderWindows, NumberedWindows, QueriedWindows, WindowSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class WindowReading(
    Reading[WindowSlice], KnowsColumns, ReportsMissingColumns[WindowSlice], ReadsVersions[WindowSlice]
):
    """Reader of windows x units.

    Attributes:
        dataflow: the definition.
        source: the source, as a reader of windows x units.
        window_columns: the columns that tell a row's window and unit.
    """

    dataflow: Dataflow
    source: WindowSource
    window_columns: WindowColumns

    @property
    def warnings(self) -> Sequence[str]:
        """The source's warnings."""
        return self.source.warnings

    @property
    def same_query_for_all_slices(self) -> bool:
        """Whether slices differ only in files: true for folders; else a condition names the windows."""
        return self.window_columns.tagged and isinstance(self.source, FolderWindows)

    def pin(self, spark: SparkSession, pending: Sequence[WindowSlice]) -> str | None:
        """Return the source's schema."""
        return self.source.pin(spark, pending)

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare the source's columns with the pinned ones."""
        self.source.check_schema(spark, pinned)

    def columns(self, pinned: str) -> StructType | None:
        """Return the columns of the files, and those of a row's window and unit."""
        file_columns = self.source.columns(pinned) if isinstance(self.source, FolderWindows) else None
        return None if file_columns is None else self.window_columns.tagging(file_columns)

    def at_one_version(self, slices: Sequence[WindowSlice]) -> list[WindowSlice]:
        """Return the slices, set to read one version of a table."""
        return self.source.at_one_version(slices) if isinstance(self.source, QueriedWindows) else list(slices)

    @override
    def fix(self, slice_: WindowSlice, base: SliceBase) -> WindowSlice:
        """List the folders that are not listed yet; the plan has fixed what a query reads."""
        return self.source.fix(slice_) if isinstance(self.source, FolderWindows) else slice_

    def check_unchanged(self, slice_: WindowSlice) -> None:
        """Compare each file with its listing. Changes in a database cannot be detected."""
        if isinstance(self.source, FolderWindows):
            self.source.check_unchanged(slice_)

    def read(self, spark: SparkSession, slice_: WindowSlice | None, pinned: str) -> DataFrame:
        """Return the rows of the slice's work units.

        Raises:
            BadUnits: the source refuses some of them before they are read, or would read them wrongly.
        """
        source = self.source
        if slice_ and isinstance(source, FolderWindows) and (bad := source.misleading(spark, slice_, pinned)):
            raise bad_units(bad, self.dataflow.window.zone)
        return self.read_works(spark, slice_, slice_.works if slice_ else (), pinned)

    def read_works(
        self, spark: SparkSession, slice_: WindowSlice | None, works: Sequence[WorkUnit], pinned: str
    ) -> DataFrame:
        """Return the rows of some work units of a slice; without any, no rows with the same columns.

        Raises:
            BadUnits: the source refuses some of them before they are read.
        """
        try:
            rows = self._rows(spark, slice_, works, pinned)
        except SourceError as error:  # a database may look at values before it is asked for rows
            refused = {} if error.transient else self._refused(spark, slice_, works, pinned)
            if not refused:
                raise
            raise bad_units(refused, self.dataflow.window.zone) from error
        return rows if self.window_columns.tagged and not works else self.window_columns.latest(rows)

    def _rows(
        self, spark: SparkSession, slice_: WindowSlice | None, works: Sequence[WorkUnit], pinned: str
    ) -> DataFrame:
        """Return the rows of some work units, tagged if no column of the source tells window and unit."""
        if not self.window_columns.tagged:
            return self.source.read(spark, slice_, works, pinned)
        if not works or slice_ is None:
            return self.window_columns.tag(self.source.read(spark, slice_, (), pinned), None)
        if isinstance(self.source, NumberedWindows):
            return self.source.read_tagged(spark, works, pinned)
        if isinstance(self.source, FolderWindows):  # Spark would plan a union with each empty folder
            works = self.source.with_files(slice_, works) or works[:1]
        frames = [
            self.window_columns.tag(self.source.read(spark, slice_, (work,), pinned), work) for work in works
        ]
        rows = frames[0]
        for frame in frames[1:]:
            rows = rows.unionByName(frame)
        return rows

    def _refused(
        self, spark: SparkSession, slice_: WindowSlice | None, works: Sequence[WorkUnit], pinned: str
    ) -> Mapping[WorkUnit, str]:
        """Return the work units whose query the source refuses; none if it accepts each alone."""
        refused: dict[WorkUnit, str] = {}
        for work in works:
            try:
                self.source.read(spark, slice_, (work,), pinned)
            except SourceError as error:
                if error.transient:
                    raise
                refused[work] = error.message
        return refused

    def missing_columns(
        self, spark: SparkSession, slice_: WindowSlice, pinned: str
    ) -> Sequence[LackingColumn]:
        """Return the pinned columns that the source lacked."""
        if isinstance(self.source, FolderWindows):
            return self.source.missing_columns(spark, slice_, pinned)
        return self.source.missing_columns(spark, pinned)
