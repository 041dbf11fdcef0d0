"""The contents of a Delta table: columns, counts, values and rows of a version.

Only :meth:`DeltaContents.read` starts Spark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.errors import SourceError, TargetError
from partitions.predicate import EVERYTHING, Predicate, all_of
from partitions.target import DATAFLOW_COLUMN
from resources.tables.contract.commits import MAX_ROWS, Version
from resources.tables.contract.contents import TableContents
from resources.tables.contract.spans import FileSpan, TellsSpans
from resources.tables.delta.file_reads import read_files
from resources.tables.delta.inexact_statistics import disable_data_skipping
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.log_state import read_state
from resources.tables.delta.rows import (
    count_rows,
    distinct_rows,
    file_counts,
    file_maxima,
    file_spans,
    first_rows,
    highest_values,
    holds_any,
    missing_table_error,
    rows_by_statistics,
    select_rows,
    text_counts,
)
from resources.tables.delta.share import DeltaShare
from resources.tables.text_counts import no_texts

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_MAX_TEXTS = 100_000_000
"""Limit on the distinct texts of a column: more than any dataflow has loaded files."""


@dataclass(frozen=True)
class DeltaContents(TableContents, TellsSpans):
    """The contents of one Delta table; it need not exist.

    Attributes:
        log: log of the table.
        share: the dataflow's share of the rows.
    """

    log: DeltaLog
    share: DeltaShare

    def has_data(self) -> bool:
        """Return whether the table holds rows or a tag. A file without statistics counts as rows."""
        table = self.log.table()
        if table is None:
            return False
        if (own_rows := self.share.rows) != EVERYTHING:
            has_own_commit = any(
                commit.strandline_metadata.get("dataflow") == self.share.dataflow
                for commit in self.log.commits(None)
            )
            return has_own_commit or holds_any(self.log, table.version(), own_rows)
        if any(count is None or count > 0 for count in file_counts(table)):
            return True
        return any(commit.tags for commit in self.log.commits(None))

    def count_rows(self, rows: Predicate = EVERYTHING) -> int:
        """Return the number of rows, from file statistics if every file has some.

        A shared table is scanned for the dataflow's rows.
        """
        return count_rows(self.log, rows=all_of((self.share.rows, rows)))

    def rows_in_log(self) -> int | None:
        """Return the rows by file statistics; None for a shared table, or if they do not tell."""
        return rows_by_statistics(self.log) if self.share.rows == EVERYTHING else None

    def count_bytes(self) -> int:
        """Return the bytes of the data files, according to the log."""
        table = self.log.table()
        sizes: Any = table.get_add_actions().column("size_bytes").to_pylist() if table else ()
        return sum(sizes)

    def columns(self) -> list[str]:
        """Return the names of the columns."""
        return self.share.columns

    def partition_columns(self) -> tuple[str, ...]:
        """Return the partition columns of the table's metadata."""
        table = self.log.table()
        return tuple(table.metadata().partition_columns) if table else ()

    def schema(self) -> tuple[Version, str] | None:
        """Return the newest version and its columns as Spark's JSON."""
        version = self.log.newest_version()
        return None if version is None else (version, read_state(self.log, version).metadata["schemaString"])

    def highest_values(
        self, columns: Sequence[str], version: Version | None = None, rows: Predicate | None = None
    ) -> dict[str, Any]:
        """Return the highest value of each column, without Spark."""
        if self.share.is_of_others:
            return dict.fromkeys(columns)
        condition = all_of((self.share.rows, EVERYTHING if rows is None else rows))
        return highest_values(self.log, columns, None if version is None else int(version), condition)

    def distinct_texts(self, column: str) -> set[str]:
        """Return the distinct texts of a column."""
        if column not in self.columns() or self.share.is_of_others:
            return set()
        if self.share.rows == EVERYTHING:
            distinct = self.distinct_rows([column], _MAX_TEXTS)
        else:
            texts_and_dataflows = self.distinct_rows([column, DATAFLOW_COLUMN], _MAX_TEXTS)
            distinct = (row for row in texts_and_dataflows if row[DATAFLOW_COLUMN] == self.share.dataflow)
        return {row[column] for row in distinct if row[column] is not None}

    def text_counts(self, column: str, rows: Predicate = EVERYTHING) -> pa.Table:
        """Return each text of a column with its number of rows."""
        if column not in self.columns() or self.share.is_of_others:
            return no_texts()
        return text_counts(self.log, column, all_of((self.share.rows, rows)))

    def distinct_rows(self, columns: Sequence[str], max_rows: int = MAX_ROWS) -> Iterator[dict[str, Any]]:
        """Return the distinct rows of columns."""
        return distinct_rows(self.log, columns, max_rows)

    def first_rows(self, limit: int, rows: Predicate = EVERYTHING) -> pa.Table:
        """Return some rows of the newest version."""
        return first_rows(self.log, limit, rows)

    def arrow_rows(
        self, version: Version, rows: Predicate = EVERYTHING, columns: Sequence[str] | None = None
    ) -> pa.RecordBatchReader:
        """Return exactly the rows of a version that meet a condition."""
        return select_rows(self.log, int(version), rows, columns)

    def holds_any(self, version: Version, rows: Predicate) -> bool:
        """Return whether a version has a row that meets a condition."""
        return holds_any(self.log, int(version), rows)

    def file_maxima(self, version: Version, column: str) -> list[tuple[Any, int]]:
        """Return each file's highest value from the log's statistics."""
        return file_maxima(self.log, int(version), column)

    def file_spans(self, version: Version, group: str, column: str) -> list[FileSpan] | None:
        """Return each file's span from the log's statistics."""
        return file_spans(self.log, int(version), group, column)

    def newest_version(self) -> Version:
        """Return the newest version. Starts no Spark."""
        try:
            version = self.log.newest_version()
        except TargetError as error:
            raise SourceError(error.message) from error
        if version is None:
            raise missing_table_error(self.log.place)
        return version

    def read(self, spark: SparkSession, version: Version, rows: Predicate = EVERYTHING) -> DataFrame:
        """Return the rows of a version; read few matching files directly, otherwise through Delta."""
        if rows != EVERYTHING:
            direct_rows = read_files(self.log, spark, int(version), rows)
            if direct_rows is not None:
                return direct_rows
        with suppress(TargetError):  # if the version is gone, Spark's read reports it
            disable_data_skipping(spark, self.log.table(int(version)))
        return spark.read.format("delta").option("versionAsOf", str(version)).load(self.log.place.spark_url)
