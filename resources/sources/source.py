"""The contracts of sources that watermarks rely on. Each source is one module or package.

A source opens the world; it knows neither the watermark log nor the target table. There are two shapes:
files (:class:`resources.sources.files.source.FileSource`, for any format and store), and sources that are
queried for rows (here). ``tests/contract/test_source.py`` runs on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

from partitions.column.open_transactions import TransactionsUnknown, WritingTransactions
from partitions.column.predicates import ColumnRange
from partitions.column.source import SourceObservation
from partitions.errors import BadPart, StrandlineError
from partitions.loads import LackingColumn
from partitions.predicate import Predicate
from partitions.unit_values import ValueType
from partitions.window.extent import Extent
from resources.tables.contract.commits import Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from resources.sources.jdbc.client import SqlSnapshot

T = TypeVar("T")

NUMBER = "_strandline_number"
"""The column with the number of the extent that a row belongs to."""


PARTS = 4
"""The most parts that are read in parallel, each over its own connection."""


class PinsRows(Protocol):
    """A source that is queried for rows, all of one schema."""

    def pin(self, spark: SparkSession) -> str | None:
        """Return the schema of the source as text; None while it is unknown.

        :class:`resources.sources.schema.PinsColumns` implements it for sources that know their columns.

        Raises:
            ConfigurationError: a column that the definition names is missing, or cannot be compared.
            SourceError: the source refuses, or does not answer.
        """
        ...

    def check_schema(self, spark: SparkSession, pinned: str, dataflow: str) -> None:
        """Raise SchemaError, naming ``dataflow``, if the source differs from the pinned schema."""
        ...


class RowSource(PinsRows, Protocol):
    """A source that is queried for the rows of time ranges and units."""

    def read(self, spark: SparkSession, extents: Sequence[Extent], pinned: str) -> DataFrame:
        """Return exactly the rows of these extents, with the pinned columns in order.

        No extent means no row. Rows may be fetched only when they are written; :meth:`failure` explains
        errors at that time.

        Args:
            spark: a session.
            extents: may overlap; a row in several is read once.
            pinned: the result of :meth:`pin`.

        Raises:
            SourceError: the source refuses, or does not answer. Unless it is transient, each work unit is
            then read alone, and refused ones are skipped.
        """
        ...


@runtime_checkable
class ReadsAbove(Protocol):
    """A source whose rows can be read above a column watermark.

    Only :meth:`read_rows` starts Spark, unless the source also :class:`TellsChanges`.
    """

    def observe(self, columns: Sequence[str], now: datetime) -> SourceObservation:
        """Return the source's clock and what it knows of some columns without a scan, as of one moment.

        Args:
            columns: the watermark's columns.
            now: the run's clock, for a source without its own.

        Raises:
            SourceError: the source refuses, lacks a column, or does not answer.
        """
        ...

    def holds_any(self, rows: Predicate) -> bool:
        """Return whether at least one of these rows exists."""
        ...

    def highest(self, column: str, rows: Predicate) -> Any:
        """Return the highest value of a column in some rows; None: it has no value.

        This may scan the rows: called only if nothing cheaper tells the value.
        """
        ...

    def read_rows(self, spark: SparkSession, parts: Sequence[Predicate], pinned: str) -> DataFrame:
        """Return exactly the rows of disjoint parts, with the pinned columns in order.

        Parts may be read in parallel.
        """
        ...


@runtime_checkable
class TellsFailures(Protocol):
    """A source that can explain an error of Spark."""

    def failure(self, error: Exception) -> StrandlineError | None:
        """Return what an error of a write reveals about the source; None if nothing.

        A transient one ends the run; any other one skips the work unit.
        """
        ...


@runtime_checkable
class TellsCuts(Protocol):
    """A source that may know without a scan where to cut a range into parts."""

    def cuts(self, range_: ColumnRange, rows: int, max_cuts: int) -> Sequence[Any]:
        """Return ascending values that cut a range into parts of about ``rows`` rows.

        Each is the last value of its part; empty if only a scan could find them.

        Args:
            range_: the range of one column.
            rows: the number of rows of a part.
            max_cuts: the most cuts.
        """
        ...


@runtime_checkable
class LooksOnce(Protocol):
    """A source that answers several questions over one connection."""

    def in_one_look(self, ask: Callable[[ReadsAbove], T], seconds: float | None = None) -> T:
        """Return the result of ``ask``, whose source answers as of one moment; then close the connection.

        Args:
            ask: asks the questions.
            seconds: the time limit of a question; None: the source's own.

        Raises:
            SourceUnreachable: a question took longer.
        """
        ...


@runtime_checkable
class TellsWriters(Protocol):
    """A source that knows its open transactions."""

    def writers(self, columns: Sequence[str]) -> WritingTransactions | TransactionsUnknown:
        """Return the transactions that are open now and may write rows; or why they are unknown.

        Args:
            columns: the watermark's columns; a sequence may number them.

        Raises:
            SourceError: the source refuses, or does not answer.
        """
        ...


@runtime_checkable
class HasRemarks(Protocol):
    """A source with warnings about the rows that it read."""

    @property
    def remarks(self) -> Sequence[str]:
        """Warnings about the rows read so far, each once."""
        ...


@runtime_checkable
class TellsChanges(Protocol):
    """A source that only Spark can read, but that detects changes without Spark."""

    def has_changed(self, now: datetime) -> bool:
        """Return whether a run may find new rows since the last run, without starting Spark.

        Raises:
            SourceError: the source refuses, or does not answer.
        """
        ...

    def contents(self) -> str:
        """Return a text that changes whenever the source's contents change, without starting Spark.

        Raises:
            SourceError: as for :meth:`has_changed`.
        """
        ...


@runtime_checkable
class FetchesRows(Protocol):
    """A source that fetches all rows before they are written, and knows their contents only then."""

    def look_at(self, columns: Sequence[str]) -> Mapping[str, ValueType | None]:
        """Return the data types of columns, by some rows.

        All are None if there is no row; columns that no row has are missing.
        """
        ...

    def fetched_up_to(self, rows: Predicate, columns: Sequence[str]) -> Mapping[str, Any]:
        """Fetch rows for :meth:`ReadsAbove.read_rows`, and return the highest value of each column.

        None: the column has no value.

        Raises:
            SourceError: the source refuses, or does not answer.
        """
        ...

    def pin_sample(self, spark: SparkSession, extents: Sequence[Extent]) -> str | None:
        """Return the schema as text, declared or inferred from some of these extents; None without rows."""
        ...


@runtime_checkable
class ListsRows(Protocol):
    """A source whose rows can be listed in this process without Spark, for the units of windows."""

    def listed(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Yield rows that have these columns; a missing column means NULL, and others may be present.

        Slow steps happen between rows, so that the caller can stop there.

        Args:
            columns: the columns to return, at least one.

        Raises:
            SourceError: the source refuses, or does not answer.
        """
        ...


@runtime_checkable
class TellsColumns(Protocol):
    """A source that may have unreadable columns, and finds them without Spark."""

    def check_readable(self) -> None:
        """Raise unless runs can read all columns.

        Raises:
            SourceError: code ``unreadable_column``: names each column; or the source refuses, or does not
            answer.
        """
        ...


@runtime_checkable
class HasVersions(Protocol):
    """A source whose rows are read at one version, which may no longer exist when they are read."""

    def version(self) -> Version:
        """Return the version to read, for :meth:`at`, without starting Spark.

        Each plan asks once, and stores it with each slice.

        Raises:
            SourceError: code ``source_missing``: there is nothing to read; or the source does not answer.
        """
        ...

    def at(self, version: Version) -> Self:
        """Return the source at a version."""
        ...

    def find_unreadable(self, spark: SparkSession, error: Exception) -> BadPart | None:
        """Return the version as a bad part if it cannot be read; None if it can, or nobody answers.

        Args:
            spark: a session.
            error: the error of the write of its rows.
        """
        ...


def at_version(source: T, version: Version | None) -> T:
    """Return a source at a version; unchanged if it has no versions or none is given."""
    return source.at(version) if isinstance(source, HasVersions) and version is not None else source


@runtime_checkable
class TellsLacking(Protocol):
    """A source that may lose columns; its rows then have NULL in them."""

    def lacking(self, spark: SparkSession, pinned: str) -> Sequence[LackingColumn]:
        """Return the pinned columns that the source lacks, for the rows of the last read."""
        ...


@runtime_checkable
class CanNumber(Protocol):
    """A source whose query can read many extents, and number each row's extent."""

    def numbered(self, spark: SparkSession, extents: Sequence[Extent], pinned: str) -> DataFrame:
        """Return exactly the rows of these extents of one unit each, with their number in ``NUMBER``."""
        ...


@runtime_checkable
class AnswersSql(Protocol):
    """A source that answers queries in its own SQL, without sending its rows."""

    def sql_snapshot(self) -> AbstractContextManager[SqlSnapshot]:
        """Return a connection whose queries all see one moment, to be closed by the caller.

        Raises:
            SourceError: the source refuses, or does not answer; also while a query runs.
        """
        ...
