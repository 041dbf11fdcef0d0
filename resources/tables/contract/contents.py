"""The contents of a table in terms that all formats share: columns, counts, values and rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from partitions.predicate import EVERYTHING, Predicate
from resources.tables.contract.commits import MAX_ROWS, Version

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession


class TableContents(Protocol):
    """The contents of one table, which need not exist. Only :meth:`read` starts Spark.

    Every method raises TargetError if the table's log cannot be read, and SourceError if its rows cannot.
    The methods that sources use, :meth:`newest_version` and :meth:`distinct_rows`, raise SourceError for
    both.
    """

    def has_data(self) -> bool:
        """Return whether the table holds rows of any writer, or a tag.

        Of a shared table only the dataflow's rows and commits count.
        """
        ...

    def columns(self) -> list[str]:
        """Return the names of the columns; none if there is no table."""
        ...

    def partition_columns(self) -> tuple[str, ...] | None:
        """Return the columns whose values partition the table; none without a table.

        None if other values than a column's partition the table.
        """
        ...

    def schema(self) -> tuple[Version, str] | None:
        """Return the newest version and its columns as Spark's JSON; None if there is no table."""
        ...

    def count_rows(self, rows: Predicate = EVERYTHING) -> int:
        """Return the number of rows, or of those that meet a condition; 0 if there is no table."""
        ...

    def rows_in_log(self) -> int | None:
        """Return the rows of the newest version as the table's log counts them; 0 if there is no table.

        None if the log does not say, or counts rows of other dataflows. Reads no data file.
        """
        ...

    def count_bytes(self) -> int | None:
        """Return the bytes of the newest version's data files, as the table's log counts them.

        0 if there is no table, None if the log does not say. In a shared table all files count. Reads no
        data file.
        """
        ...

    def highest_values(
        self, columns: Sequence[str], version: Version | None = None, rows: Predicate | None = None
    ) -> dict[str, Any]:
        """Return the highest value of each column; None if no row has a value.

        Types are those of :meth:`distinct_rows`; texts compare by bytes.

        Args:
            columns: columns with single values.
            version: version of the table; None: the newest.
            rows: rows to look at; None: all.
        """
        ...

    def distinct_texts(self, column: str) -> set[str]:
        """Return the distinct texts of a column; none if there is no such column. Reads the column's data."""
        ...

    def text_counts(self, column: str, rows: Predicate = EVERYTHING) -> pa.Table:
        """Return each text of a column with its number of rows, as the columns ``text`` and ``rows``.

        In any order; without rows if there is no such column. In a shared table the dataflow's rows count.
        Reads the column's data.

        Args:
            column: column of texts.
            rows: rows to look at.
        """
        ...

    def distinct_rows(self, columns: Sequence[str], max_rows: int = MAX_ROWS) -> Iterator[dict[str, Any]]:
        """Return the distinct rows of some columns in the newest version, sorted, NULLs first.

        Types are kept: whole numbers are int, text is str, instants are aware and in UTC, times without
        zone are naive, decimals are Decimal.

        Args:
            columns: columns with single values; at least one.
            max_rows: highest accepted number of distinct rows.

        Raises:
            SourceError: there is no table, a column is missing or nested, or there are more than
                ``max_rows`` rows.
        """
        ...

    def first_rows(self, limit: int, rows: Predicate = EVERYTHING) -> pa.Table:
        """Return rows of the newest version in no certain order, with the columns of :meth:`schema`.

        Args:
            limit: the most rows to return.
            rows: rows that count.

        Raises:
            SourceError: only Spark can read the rows, or no one can.
        """
        ...

    def arrow_rows(
        self, version: Version, rows: Predicate = EVERYTHING, columns: Sequence[str] | None = None
    ) -> pa.RecordBatchReader:
        """Return exactly the rows of a version that meet a condition, without Spark.

        Reads as few files as statistics allow. Batches may be read only as the caller asks for them.

        Args:
            version: version of the table.
            rows: rows to return; of a shared table those of all dataflows count.
            columns: columns to return, in this order; None: all columns of the version, in its order.

        Raises:
            SourceError: there is no such version, or only Spark can read the rows, or no one can. An
                error may come with a batch.
        """
        ...

    def holds_any(self, version: Version, rows: Predicate) -> bool:
        """Return whether a version has a row that meets a condition. Reads as few files as statistics allow."""
        ...

    def file_maxima(self, version: Version, column: str) -> list[tuple[Any, int]]:
        """Return a column's highest value and the number of rows for each data file of a version.

        The order is arbitrary. The values come from statistics alone: they may be a little low, or too
        high if rows were deleted. Files without a value are left out.
        """
        ...

    def newest_version(self) -> Version:
        """Return the newest version, so that a read can be repeated.

        Raises:
            SourceError: code ``source_missing``: there is no table.
        """
        ...

    def read(self, spark: SparkSession, version: Version, rows: Predicate = EVERYTHING) -> DataFrame:
        """Return the rows of a version.

        Args:
            spark: session.
            version: version of the table.
            rows: rows that the caller needs. The result holds all of them and may hold others, so the
                caller filters again.
        """
        ...


@runtime_checkable
class TellsNextColumns(Protocol):
    """Contents of a format whose columns can change without a new version of rows."""

    def next_columns(self) -> str | None:
        """Return the columns that the next write meets, as Spark's JSON; None: there is no table."""
        ...
