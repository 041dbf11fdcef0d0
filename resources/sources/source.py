"""The contracts of sources: what kinds of watermark ask of them. One module or package a source.

A source opens the world; it knows no watermark log and no table that it is loaded into. Two shapes exist: files
(:class:`resources.sources.files.source.FileSource`, whatever their format and store), and what is asked for rows (here).
``tests/contract/test_source.py`` runs on all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, runtime_checkable

from partitions.column.predicates import ColumnRange
from partitions.column.source import SourceObservation
from partitions.column.writers import TransactionsUnknown, WritingTransactions
from partitions.errors import BadPart, StrandlineError
from partitions.loads import LackingColumn
from partitions.predicate import Predicate
from partitions.unit_values import ValueType
from partitions.window.extent import Extent
from resources.tables.contract.commits import Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")

NUMBER = "_strandline_number"
"""The column that says which of several extents a row is of."""


PARTS = 4
"""Parts of many rows that are read at the same time, each over a connection of its own."""


class PinsRows(Protocol):
    """A source that is asked for rows, all of one schema."""

    def pin(self, spark: SparkSession) -> str | None:
        """Return the schema of the source, as text; None while nothing tells it; :class:`resources.sources.schema.PinsColumns` does it for a source that knows its columns.

        Raises:
            ConfigurationError: a column that the definition names is not there, or cannot be compared.
            SourceError: the source refuses, or does not answer.
        """
        ...

    def check_schema(self, spark: SparkSession, pinned: str, dataflow: str) -> None:
        """Raise SchemaError if the source has another schema than the pinned one; ``dataflow`` is named in it."""
        ...


class RowSource(PinsRows, Protocol):
    """A source that is asked for the rows of stretches of time and units."""

    def read(self, spark: SparkSession, extents: Sequence[Extent], pinned: str) -> DataFrame:
        """Return exactly the rows of these extents, with the pinned columns in their order; no extent is no row.

        The rows may be fetched as late as they are written; what goes wrong then, :meth:`failure` tells.

        Args:
            spark: a session.
            extents: which may overlap: a row of several is read once.
            pinned: what :meth:`pin` gave.

        Raises:
            SourceError: the source refuses, or does not answer. Unless it is transient, each work unit is read alone, and those that are
                refused are passed over.
        """
        ...


@runtime_checkable
class ReadsAbove(Protocol):
    """A source whose rows can be read above a column watermark. Only :meth:`read_rows` starts Spark, unless the source also :class:`TellsChanges`."""

    def observe(self, columns: Sequence[str], now: datetime) -> SourceObservation:
        """Return the source's clock, and what it knows of some columns without a scan; all of one moment.

        Args:
            columns: of the watermark.
            now: the run's clock, for a source without one of its own.

        Raises:
            SourceError: the source refuses, has no such column, or does not answer.
        """
        ...

    def holds_any(self, rows: Predicate) -> bool:
        """Return whether there is at least one of these rows."""
        ...

    def highest(self, column: str, rows: Predicate) -> Any:
        """Return the highest value of a column in some rows; None: none has a value. It may scan them: asked only if nothing else tells it."""
        ...

    def read_rows(self, spark: SparkSession, parts: Sequence[Predicate], pinned: str) -> DataFrame:
        """Return exactly the rows of parts that share none, with the pinned columns in their order; each part may be read at the same time."""
        ...


@runtime_checkable
class TellsFailures(Protocol):
    """A source that can tell what an error of Spark's says of it."""

    def failure(self, error: Exception) -> StrandlineError | None:
        """Return what an error says of the source, if a read of it failed while its rows were written; None if it says nothing.

        A transient one ends the run; for any other the work unit is passed over.
        """
        ...


@runtime_checkable
class TellsCuts(Protocol):
    """A source that may tell without a scan where a range falls into parts."""

    def cuts(self, range_: ColumnRange, rows: int, most: int) -> Sequence[Any]:
        """Return values that cut a range into parts of about so many rows, ascending, each the last of its part; none if only a scan would tell.

        Args:
            range_: of one column.
            rows: of a part.
            most: cuts at most.
        """
        ...


@runtime_checkable
class LooksOnce(Protocol):
    """A source that is asked several questions over one connection."""

    def in_one_look(self, ask: Callable[[ReadsAbove], T], seconds: float | None = None) -> T:
        """Return what ``ask`` returns; the source that it is given answers as of one moment. The connection is closed in any case.

        Args:
            ask: asks the questions.
            seconds: after which the source ends a question; None: as the source itself says.

        Raises:
            SourceUnreachable: a question took longer.
        """
        ...


@runtime_checkable
class TellsWriters(Protocol):
    """A source that tells its open transactions."""

    def writers(self, columns: Sequence[str]) -> WritingTransactions | TransactionsUnknown:
        """Return the transactions that are open right now and may write rows; or why they are not told.

        Args:
            columns: of the watermark; a sequence may number them.

        Raises:
            SourceError: the source refuses, or does not answer.
        """
        ...


@runtime_checkable
class HasRemarks(Protocol):
    """A source that has something to say of what was read."""

    @property
    def remarks(self) -> Sequence[str]:
        """What a user should hear of what was read so far, each once."""
        ...


@runtime_checkable
class TellsChanges(Protocol):
    """A source that only Spark can read, and that tells without it whether another read may find more."""

    def has_changed(self, now: datetime) -> bool:
        """Return whether a run may find rows that the last run has not found. Starts no Spark.

        Raises:
            SourceError: the source refuses, or does not answer.
        """
        ...

    def contents(self) -> str:
        """Return a text that is another one whenever the source holds something else. Starts no Spark.

        Raises:
            SourceError: as for :meth:`has_changed`.
        """
        ...


@runtime_checkable
class FetchesRows(Protocol):
    """A source whose rows are fetched as a whole before they are written: what they hold is known by then, and by no cheaper way."""

    def look_at(self, columns: Sequence[str]) -> Mapping[str, ValueType | None]:
        """Return what columns hold, by some rows; None for each if there is no row, and without those that no row has."""
        ...

    def fetched_up_to(self, rows: Predicate, columns: Sequence[str]) -> Mapping[str, Any]:
        """Fetch rows, so that :meth:`ReadsAbove.read_rows` reads these, and return the highest value of columns in them; None: none has a value.

        Raises:
            SourceError: the source refuses, or does not answer.
        """
        ...

    def pin_sample(self, spark: SparkSession, extents: Sequence[Extent]) -> str | None:
        """Return the schema as text, declared or as the rows of some of these extents have it; None if there are none."""
        ...


@runtime_checkable
class ListsRows(Protocol):
    """A source whose rows can be listed in this process, without Spark: for the units of windows."""

    def listed(self, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """Yield rows with these columns, as they come; others may stand beside them, and a row that lacks one has NULL.

        What takes long is left between two rows, so that whoever asks can stop there.

        Args:
            columns: at least one.

        Raises:
            SourceError: the source refuses, or does not answer.
        """
        ...


@runtime_checkable
class TellsColumns(Protocol):
    """A source that may have columns that no run can read, and tells them without Spark."""

    def check_readable(self) -> None:
        """Raise unless runs can read all columns.

        Raises:
            SourceError: code ``unreadable_column``, naming each; or the source refuses, or does not answer.
        """
        ...


@runtime_checkable
class HasVersions(Protocol):
    """A source whose rows are read at one version of it, which may be gone when they are read."""

    def version(self) -> Version:
        """Return what can be asked for again later, by :meth:`at`. Starts no Spark.

        It is asked for once a plan, and stored with each slice.

        Raises:
            SourceError: code ``source_missing``: there is nothing to read; or it does not answer.
        """
        ...

    def at(self, version: Version) -> Self:
        """Return the source as it is at a version."""
        ...

    def find_unreadable(self, spark: SparkSession, error: Exception) -> BadPart | None:
        """Return the version that is read as a bad part if it cannot be read; None if it can, or if nobody answers.

        Args:
            spark: a session.
            error: of the write of its rows.
        """
        ...


def at_version(source: T, version: Version | None) -> T:
    """Return a source as it is at a version; as it is now, if it has no versions or none is named."""
    return source.at(version) if isinstance(source, HasVersions) and version is not None else source


@runtime_checkable
class TellsLacking(Protocol):
    """A source that may lose columns, whose rows have NULL in them then."""

    def lacking(self, spark: SparkSession, pinned: str) -> Sequence[LackingColumn]:
        """Return the pinned columns that the source does not have, of the rows that were read last."""
        ...


@runtime_checkable
class CanNumber(Protocol):
    """A source whose query may ask for many extents, and tell of each row which one it is of."""

    def numbered(self, spark: SparkSession, extents: Sequence[Extent], pinned: str) -> DataFrame:
        """Return exactly the rows of these extents of one unit each, with the number of theirs in ``NUMBER``."""
        ...
