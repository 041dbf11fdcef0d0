"""What a table holds, as every format tells it: columns, counts, values and rows, of the newest version or of an older one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from partitions.predicate import EVERYTHING, Predicate
from resources.tables.contract.commits import MOST_ROWS, Version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class TableContents(Protocol):
    """The contents of one table, which need not exist. Only :meth:`read` starts Spark.

    Every method raises TargetError if the table's log cannot be read, and SourceError if its rows cannot; what a source reads with,
    :meth:`newest_version` and :meth:`distinct_rows`, raises SourceError for both.
    """

    def has_data(self) -> bool:
        """Return whether the table holds rows, whoever wrote them, or remembers a tag."""
        ...

    def columns(self) -> list[str]:
        """Return the names of the columns; none if there is no table."""
        ...

    def schema(self) -> tuple[Version, str] | None:
        """Return the newest version, and its columns as Spark's JSON; None if there is no table."""
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


@runtime_checkable
class TellsNextColumns(Protocol):
    """The contents of a format whose columns may change apart from rows, so that the newest version has others than the next."""

    def next_columns(self) -> str | None:
        """Return the columns that the next write finds, as Spark's JSON; None: there is no table."""
        ...
