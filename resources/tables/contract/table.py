"""The contract of a table that dataflows load into: one class a format. Abilities that only some formats have stand beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from partitions.evolution import SchemaMode
from partitions.loads import Load
from partitions.predicate import EVERYTHING, Predicate
from resources.connections.places import Place
from resources.tables.contract.commits import MOST_ROWS, TableCommit, TableHead, Tag, TaggedCommit, Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Table(Protocol):
    """One table. Only what takes a session or a DataFrame starts Spark.

    Every method raises TargetError if the table's log cannot be read, and SourceError if its rows cannot; what a source reads with,
    :meth:`newest_version` and :meth:`distinct_rows`, raises SourceError for both.
    """

    @property
    def place(self) -> Place:
        """Return where it lies."""
        ...

    def head(self, recorded: TableCommit | None, app_id: str | None) -> TableHead:
        """Compare the table's log with what was recorded of it.

        Args:
            recorded: the commit that the table must have; None if nothing was recorded yet.
            app_id: the dataflow's, whose tags are looked for.
        """
        ...

    def tip(self, app_id: str | None) -> TableHead:
        """Return what the table is now, whatever was recorded of it: the newest commit, and the highest number under the dataflow's tag."""
        ...

    def taking_columns(self, mode: SchemaMode) -> Table:
        """Return the same table, whose writes change its columns as the mode says (``partitions.evolution``).

        In mode merge rows may lack columns, and have narrower types; in mode rescue the table only gets ``_rescued_data``. A change that the
        mode does not accept is refused (RowsRefused). A change is in the commit of its rows; or in one before, which changes no row, and does
        no harm if it is done twice.
        """
        ...

    def exists(self) -> bool:
        """Return whether there is a table of this format."""
        ...

    def has_data(self) -> bool:
        """Return whether the table holds rows, whoever wrote them, or remembers a tag."""
        ...

    def counted(self, commit: TaggedCommit, before: int) -> TaggedCommit:
        """Return the commit with all of its counts.

        Args:
            commit: one of the table's.
            before: rows of the table before it, as far as the watermark log knows.
        """
        ...

    def write(self, rows: DataFrame, load: Load, tag: Tag, state: str, *, base: Version | None) -> None:
        """Load rows in one commit that carries the tag; of several with one tag only one commits, and the others raise nothing.

        A number at or below the highest under the tag's app id is skipped. Whether it is, and the commit, are one step: two writers that
        both found the number free must not both commit.

        Args:
            rows: all of the slice's, to be evaluated once. Their columns are matched by name; one that the table has and they lack is NULL.
            load: what becomes of the rows that are there.
            tag: of the commit.
            state: sentinel JSON text of the watermark after it.
            base: the version that the slice was planned on, from which a format may validate; None: there was no table, so that it is made
                with the columns of ``rows``. A table that came since is refused: nobody has decided about its rows.

        Raises:
            WriteConflict: another writer was faster, and touched what this write builds on; the same write may succeed now.
            RowsRefused: the table cannot take these rows, now or later; nothing was committed, and the number is given up. Spark's
                AnalysisException means the same. After any other error the next run writes the same slice again.
        """
        ...

    def give_up(
        self, spark: SparkSession, tag: Tag, state: str, first_rows: Callable[[], DataFrame] | None
    ) -> None:
        """Fence a number by a commit that changes no row; like :meth:`write`, it raises nothing if the tag is taken.

        Args:
            spark: a session.
            tag: of the commit.
            state: sentinel JSON text of the watermark, which the commit leaves as it is.
            first_rows: gives no rows, of the columns of a table that has to be made, and refused as by :meth:`write`; None if there is a table.
        """
        ...

    def columns(self) -> list[str]:
        """Return the names of the columns; none if there is no table."""
        ...

    def schema(self) -> tuple[Version, str] | None:
        """Return the newest version, and its columns as Spark's JSON; None if there is no table."""
        ...

    def identity(self) -> str | None:
        """Return what tells the table from another one at its place, whatever its version; None if there is no table."""
        ...

    def count_rows(self) -> int:
        """Return the number of rows; 0 if there is no table."""
        ...

    def count_bytes(self) -> int | None:
        """Return the bytes of the newest version's data files, as the table's log counts them; 0 if there is no table, None if it does not tell.

        Those of a shared table are all of its files'. Reads no data file.
        """
        ...

    def highest_values(
        self, columns: Sequence[str], version: Version | None = None, rows: Predicate | None = None
    ) -> dict[str, Any]:
        """Return the highest value of columns; None: no row has a value. Types are kept as by :meth:`distinct_rows`, texts compared by bytes.

        Args:
            columns: with single values.
            version: of the table; None: the newest.
            rows: that are looked at; None: all.
        """
        ...

    def texts(self, column: str) -> set[str]:
        """Return all texts of a column, each once; none if there is no such column. Reads the column's data."""
        ...

    def distinct_rows(self, columns: Sequence[str], most: int = MOST_ROWS) -> Iterator[dict[str, Any]]:
        """Return the distinct rows of the newest version, sorted by the columns in their order, NULLs first.

        Types are kept: whole numbers are int, text is str, instants are aware and in UTC, times without zone are naive, decimals are
        Decimal.

        Args:
            columns: with single values; at least one.
            most: distinct rows that are taken.

        Raises:
            SourceError: if there is no table, a column is not there or holds nested values, or there are more rows. Never is any of
                these an empty list.
        """
        ...

    def holds_any(self, version: Version, rows: Predicate) -> bool:
        """Return whether a version has at least one of these rows. Reads as few files as their statistics allow."""
        ...

    def file_maxima(self, version: Version, column: str) -> list[tuple[Any, int]]:
        """Return the highest value of a column in each data file of a version, with the file's number of rows, in any order.

        From statistics alone, which may be a little low, or high if rows were deleted. Files without a value are missing.
        """
        ...

    def newest_version(self) -> Version:
        """Return the newest version, for a read that can be repeated.

        Raises:
            SourceError: code ``source_missing``: there is no table.
        """
        ...

    def read(self, spark: SparkSession, version: Version, rows: Predicate = EVERYTHING) -> DataFrame:
        """Return the rows of a version.

        Args:
            spark: a session.
            version: of the table.
            rows: that the caller keeps, and filters by itself: others may be missing.
        """
        ...

    def remove(self, session: Callable[[], SparkSession]) -> None:
        """Remove the table with all of its files; there is none afterwards, nor is it an error if there was none. Who calls it knows that nobody needs it.

        Args:
            session: gives one, if it is needed.

        Raises:
            TargetError: some of it is still there; the next call removes the rest.
        """
        ...


@runtime_checkable
class CanPrepare(Protocol):
    """A format whose first look in a session can be taken in advance."""

    def prepare_next(self, spark: SparkSession) -> None:
        """Have the engine do now what the next write would do first. Changes nothing; the caller waits for it or not."""
        ...


@runtime_checkable
class TellsRefusals(Protocol):
    """A format whose errors tell why it refuses rows."""

    def refuses_rows_outside(self, error: Exception) -> bool:
        """Return whether a write failed because some of its rows are not among those that its load replaces."""
        ...


@runtime_checkable
class TellsNextColumns(Protocol):
    """A format whose columns may change apart from rows, so that the newest version has others than the next."""

    def next_columns(self) -> str | None:
        """Return the columns that the next write finds, as Spark's JSON; None: there is no table."""
        ...


@runtime_checkable
class FollowsUp(Protocol):
    """A format with work left after the entry of a commit was appended: a tag that keeps a snapshot, files that move to their place."""

    def after_append(self, commit: TableCommit, dataflow: str) -> None:
        """Do what is left for a commit of a dataflow; done twice it does no harm.

        A run calls it after each entry, and once at its beginning for the newest one, since the run before may have died in between; so does
        a decision before its own entry.
        """
        ...
