"""The rows of exactly the work units of a slice, with what tells their window and unit (docs/reference/windows.md)."""

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
from resources.kinds.window.sources import AskedWindows, FolderWindows, NumberedWindows, WindowSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


@dataclass(frozen=True)
class WindowReading(
    Reading[WindowSlice], KnowsColumns, ReportsMissingColumns[WindowSlice], ReadsVersions[WindowSlice]
):
    """Reads windows x units.

    Attributes:
        dataflow: what the user declared.
        source: as windows x units read it.
        window_columns: which columns tell a row's window and unit.
    """

    dataflow: Dataflow
    source: WindowSource
    window_columns: WindowColumns

    @property
    def warnings(self) -> Sequence[str]:
        """What the source has to say."""
        return self.source.warnings

    @property
    def same_query_for_all_slices(self) -> bool:
        """Of folders files are what slices differ in; else a condition names the windows."""
        return self.window_columns.tagged and isinstance(self.source, FolderWindows)

    def pin(self, spark: SparkSession, pending: Sequence[WindowSlice]) -> str | None:
        """As the source says."""
        return self.source.pin(spark, pending)

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare the source's columns with what was pinned."""
        self.source.check_schema(spark, pinned)

    def columns(self, pinned: str) -> StructType | None:
        """Return the columns of the files, and those that tell a row's window and unit."""
        file_columns = self.source.columns(pinned) if isinstance(self.source, FolderWindows) else None
        return None if file_columns is None else self.window_columns.tagging(file_columns)

    def at_one_version(self, slices: Sequence[WindowSlice]) -> list[WindowSlice]:
        """The slices of a plan read one version of a table."""
        return self.source.at_one_version(slices) if isinstance(self.source, AskedWindows) else list(slices)

    @override
    def fix(self, slice_: WindowSlice, base: SliceBase) -> WindowSlice:
        """List the folders that were not listed yet; what is asked for by a query is fixed with the plan."""
        return self.source.fix(slice_) if isinstance(self.source, FolderWindows) else slice_

    def check_unchanged(self, slice_: WindowSlice) -> None:
        """Compare each file with what was listed. A version does not change; whether a database has is unknown."""
        if isinstance(self.source, FolderWindows):
            self.source.check_unchanged(slice_)

    def read(self, spark: SparkSession, slice_: WindowSlice | None, pinned: str) -> DataFrame:
        """The rows of the slice's work units.

        Raises:
            BadUnits: the source refuses some of them before they are read, or would read them otherwise than they are meant.
        """
        source = self.source
        if slice_ and isinstance(source, FolderWindows) and (bad := source.misleading(spark, slice_, pinned)):
            raise bad_units(bad, self.dataflow.window.zone)
        return self.read_works(spark, slice_, slice_.works if slice_ else (), pinned)

    def read_works(
        self, spark: SparkSession, slice_: WindowSlice | None, works: Sequence[WorkUnit], pinned: str
    ) -> DataFrame:
        """Return the rows of some work units of a slice; without any no rows, of the same columns.

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
        """The rows of some work units; with what tells their window and unit, if no column of the source does."""
        if not self.window_columns.tagged:
            return self.source.read(spark, slice_, works, pinned)
        if not works or slice_ is None:
            return self.window_columns.tag(self.source.read(spark, slice_, (), pinned), None)
        if isinstance(self.source, NumberedWindows):
            return self.source.read_tagged(spark, works, pinned)
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
        """The work units whose query the source refuses; none if it takes each by itself."""
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
        """As the source says."""
        if isinstance(self.source, FolderWindows):
            return self.source.missing_columns(spark, slice_, pinned)
        return self.source.missing_columns(spark, pinned)
