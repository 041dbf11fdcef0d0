"""Sources of windows x units: folders of files, one per work unit, or a source that is queried.

This module knows how each source reads a work unit. Planning and failed work units are handled beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import BadFile, PlanError, SourceError, StrandlineError
from partitions.instants import as_datetime
from partitions.loads import LackingColumn
from partitions.log_position import LogPosition
from partitions.path.listing_positions import FromBeginning
from partitions.path.source import SourceFile
from partitions.placeholders import Placeholder, Template, shared_name
from partitions.plan import Skip
from partitions.sources.rows import RowsSource
from partitions.window.slices import WindowSlice
from partitions.window.units import unit_of
from partitions.window.window_names import belongs_to_later_window, place_name
from partitions.window.work_unit import WorkUnit, extents
from resources.kinds.window.columns import WindowColumns
from resources.kinds.window.failures import bad_units
from resources.sources.files.source import FileSource
from resources.sources.schema import check_columns, pinned_struct
from resources.sources.source import (
    CanNumber,
    FetchesRows,
    HasRemarks,
    HasVersions,
    RowSource,
    TellsFailures,
    TellsLacking,
    at_version,
)
from resources.sources.table import TableRows
from resources.tables.contract.commit_log import ReadPosition
from resources.tables.contract.commits import Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


_SAMPLED = 20
"""The most work units that a schema is inferred from, one by one."""


class QueriedWindows:
    """Windows x units of a source that is queried: a database, an API, a Python function or a lake table."""

    def __init__(self, dataflow: Dataflow, source: RowSource) -> None:
        """Bind to a source of rows."""
        self._name, self._source, self._definition = dataflow.name, source, dataflow.source
        self.reads_any_stretch = dataflow.source.window_support.by_range or dataflow.window.time_entry is None

    @property
    def warnings(self) -> Sequence[str]:
        """The source's warnings about what was read."""
        return self._source.remarks if isinstance(self._source, HasRemarks) else ()

    def at_one_version(self, slices: Sequence[WindowSlice]) -> list[WindowSlice]:
        """Return the slices, set to one version of a lake table unless the plan has set it."""
        if all(slice_.version is not None for slice_ in slices):
            return list(slices)
        version = self._source.version() if isinstance(self._source, HasVersions) else None
        return [replace(slice_, version=version) for slice_ in slices]

    def version_of(self, position: LogPosition) -> Version:
        """Return the version of a lake table at a position in its log."""
        assert isinstance(self._source, TableRows)
        return self._source.commits.version_of(ReadPosition.of(position))

    def pin(self, spark: SparkSession, pending: Sequence[WindowSlice]) -> str | None:
        """Return the source's columns, or infer them from the rows of the first work units.

        Each of these is queried alone, since a source may refuse a longer time. If none has a row, all are
        queried.
        """
        if not isinstance(self._source, FetchesRows):
            return self._source.pin(spark)
        works = [work for slice_ in pending for work in slice_.works]
        single = [extent for work in works[:_SAMPLED] for extent in extents([work])]
        pinned = self._source.pin_sample(spark, single)
        if pinned is not None or len(works) <= _SAMPLED:
            return pinned
        return self._source.pin_sample(spark, extents(works))

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare the source's columns with the pinned ones, and the definition's with both.

        Raises:
            ConfigurationError: a column that tells windows or units is missing, or cannot be compared.
        """
        self._source.check_schema(spark, pinned, self._name)
        if isinstance(self._definition, RowsSource):
            check_columns(self._definition, pinned_struct(pinned))

    def read(
        self, spark: SparkSession, slice_: WindowSlice | None, works: Sequence[WorkUnit], pinned: str
    ) -> DataFrame:
        """Read the work units in one query, as few extents as possible."""
        source = at_version(self._source, slice_.version if slice_ else None)
        return source.read(spark, extents(works), pinned)

    def missing_columns(self, spark: SparkSession, pinned: str) -> Sequence[LackingColumn]:
        """Return the pinned columns that the source of the last read rows lacked."""
        return self._source.lacking(spark, pinned) if isinstance(self._source, TellsLacking) else ()

    def failure(self, error: Exception) -> StrandlineError | None:
        """Return the source's own error if a read failed while its rows were written; None if it has none."""
        return self._source.failure(error) if isinstance(self._source, TellsFailures) else None


class NumberedWindows(QueriedWindows):
    """Windows x units of a database whose query numbers them, so that one query reads all."""

    def __init__(self, dataflow: Dataflow, source: RowSource, numbering: CanNumber) -> None:
        """Bind to a source of rows that numbers extents."""
        super().__init__(dataflow, source)
        self._numbering, self._columns = numbering, WindowColumns.of(dataflow)

    def read_tagged(self, spark: SparkSession, works: Sequence[WorkUnit], pinned: str) -> DataFrame:
        """Return the rows of work units in one query, with ``_window_start`` and ``_unit``."""
        requested = [extents((work,))[0] for work in works]
        return self._columns.tag_numbered(self._numbering.numbered(spark, requested, pinned), works)


class FolderWindows:
    """Windows x units as folders of files, such as ``./landing/{start:%Y-%m-%d}/{unit.airport}``.

    A folder holds a window, and no other stretch of time, so a window is always read as a whole.
    """

    def __init__(self, dataflow: Dataflow, source: FileSource) -> None:
        """Bind to the files below the folder above the first placeholder."""
        self._source, self._definition = source, dataflow.files
        self._window, self._zone = dataflow.window, dataflow.window.zone
        self.reads_any_stretch = False

    @property
    def warnings(self) -> Sequence[str]:
        """The source's warnings about the files."""
        return self._source.remarks

    def fix(self, slice_: WindowSlice) -> WindowSlice:
        """List the folders that are not listed yet; compare the other files with their listing.

        Raises:
            BadUnits: folders are missing or hold no file (``missing: fail``).
            BadFile: a file has changed, or is missing.
        """
        files = dict(slice_.files or {})
        new = [work for work in slice_.works if work.key not in files]
        missing: dict[WorkUnit, str] = {}
        listed = {work.key: self._list(work, missing) for work in new}
        if missing:
            raise bad_units(missing, self._zone)
        self._source.check_unchanged([file for work in slice_.works for file in files.get(work.key, ())])
        return replace(slice_, files=files | listed)

    def check_unchanged(self, slice_: WindowSlice) -> None:
        """Compare each file with its listing."""
        self._source.check_unchanged(slice_.source_files)

    def empty_windows(self, works: Sequence[WorkUnit]) -> Sequence[Skip]:
        """Return skips for the first passes of repeated hours, whose folders belong to the second passes."""
        starts = {work.start: work for work in works if self._is_of_later_window(work)}
        why = "empty: its folder holds both passes of a repeated hour; the window of the second pass reads it"
        return [
            Skip(
                f"[{', '.join(as_datetime(at or 0, self._zone).isoformat() for at in (work.start, work.end))})",
                why,
            )
            for work in starts.values()
        ]

    def _is_of_later_window(self, work: WorkUnit) -> bool:
        return belongs_to_later_window(
            self._definition.folder_template, work.start or 0, work.end or 0, self._window
        )

    def _list(self, work: WorkUnit, missing: dict[WorkUnit, str]) -> tuple[SourceFile, ...]:
        if self._is_of_later_window(work):
            return ()  # both passes of a repeated hour lie in it: the window of the second one reads them
        folder = self.folder(work)
        try:
            listing = self._source.list_above(FromBeginning(), folder=folder)
        except SourceError as error:
            if error.code != "source_missing":
                raise
            self._source.holds_files()  # raises if the root itself is missing, which says nothing of a window
            files: tuple[SourceFile, ...] = ()
        else:
            below = f"{folder}/" if folder else ""
            files = tuple(replace(file, path=f"{below}{file.path}") for file in listing.listed.files)
        if not files and self._definition.missing != "empty":
            missing[work] = (
                f"expected files in {self._source.root.child(folder)}, found none. If a missing folder "
                "means an empty window, set missing: empty"
            )
        return files

    def folder(self, work: WorkUnit) -> str:
        """Return the folder of a work unit, relative to the root.

        Raises:
            PlanError: for a unit whose value would lead somewhere else, or whose folder could be another unit's.
        """
        unit = unit_of(work.unit)

        def of_unit(placeholder: Placeholder) -> str:
            name = placeholder.unit or ""
            return _as_name(name, unit.get(name))

        def text_of(placeholder: Placeholder) -> str:
            return place_name(Template((placeholder,)), work.start or 0, work.end or 0, self._zone, of_unit)

        template = self._definition.folder_template
        if (shared := shared_name(template, text_of)) is not None:
            units = ", ".join(f"{name}={value}" for name, value in shared.values.items())
            raise PlanError(
                f"source.path: expected a folder of its own for the unit {work.unit}, found the folder name {shared.name}, which the unit {units} would"
                " share. Give each value a folder, such as {unit.a}/{unit.b}, or separate the values by a text that no value contains"
            )
        return place_name(template, work.start or 0, work.end or 0, self._zone, of_unit).strip("/")

    def pin(self, spark: SparkSession, pending: Sequence[WindowSlice]) -> str | None:
        """Return the declared schema, or infer it from a bounded sample of the first folders with files."""
        missing: dict[WorkUnit, str] = {}
        for slice_ in pending:
            listed = slice_.files or {}
            files = [
                file
                for work in slice_.works
                for file in (listed[work.key] if work.key in listed else self._list(work, missing))
            ]
            pinned = self._source.pin(spark, files) if files else None
            if pinned is not None:
                return pinned
        if missing:
            raise bad_units(missing, self._zone)
        return None

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare ``source.schema`` with the pinned schema."""
        self._source.check_schema(spark, pinned)

    def columns(self, pinned: str) -> StructType | None:
        """Return the columns of files that were read with this schema; None if only Spark knows them."""
        return self._source.columns(pinned)

    def with_files(self, slice_: WindowSlice, works: Sequence[WorkUnit]) -> Sequence[WorkUnit]:
        """Return the work units whose folder has files, in their order."""
        listed = slice_.files or {}
        return [work for work in works if listed[work.key]]

    def misleading(self, spark: SparkSession, slice_: WindowSlice, pinned: str) -> Mapping[WorkUnit, str]:
        """Return the work units that Spark would load wrongly, with the reason.

        Their files have an open quote, or fields that the pinned schema lacks (``unknown_fields: check``).
        """
        owners, reasons = _owners(slice_), dict[WorkUnit, str]()
        for bad in self._source.bad_files(spark, slice_.source_files, pinned):
            reasons.setdefault(owners[bad.path], f"file {bad.path}, {bad.why}")
        return reasons

    def read(
        self, spark: SparkSession, slice_: WindowSlice | None, works: Sequence[WorkUnit], pinned: str
    ) -> DataFrame:
        """Return the rows of the folders' files."""
        listed = slice_.files if slice_ and slice_.files else {}
        return self._source.read(spark, [file for work in works for file in listed[work.key]], pinned)

    def missing_columns(
        self, spark: SparkSession, slice_: WindowSlice, pinned: str
    ) -> Sequence[LackingColumn]:
        """Return the columns that some of the folders' files lack."""
        return self._source.lacking(spark, slice_.source_files, pinned)

    def named_by(
        self, spark: SparkSession, slice_: WindowSlice, pinned: str, error: Exception
    ) -> Mapping[WorkUnit, str]:
        """Return the work unit of the file that Spark names, with the reason."""
        files = {file.path: file for file in slice_.source_files}
        bad: BadFile | None = self._source.find_bad_file(spark, files, pinned, error)
        return {_owners(slice_)[bad.path]: f"file {bad.path}: {bad.why}"} if bad else {}


WindowSource = QueriedWindows | FolderWindows
"""A source as windows x units read it."""


def _owners(slice_: WindowSlice) -> dict[str, WorkUnit]:
    """Return the work unit of each file, by path."""
    listed = slice_.files or {}
    return {file.path: work for work in slice_.works for file in listed[work.key]}


def _as_name(name: str, value: Any) -> str:
    text = "" if value is None else str(value)
    if not text or text in (".", "..") or "/" in text or "\\" in text:
        raise PlanError(
            f"source.path: expected a value of unit {name} that can name a folder, found {value!r}"
        )
    return text
