"""Rows of a load that replaces by a condition, with counts taken while Spark writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.errors import RowsRefused, TargetError
from partitions.loads import Replace
from resources.connections.places import Place
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.tables.data_files.reading import read_files
from resources.tables.data_files.written import DataFile, WrittenFile
from resources.tables.rows.row_counts import RowCounter, count_while_written

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OUTSIDE = "rows_outside"
"""Error code for rows outside the rows that their load replaces."""


def is_outside(load: Replace) -> Column:
    """Return the condition that a row lies outside the rows that a load replaces."""
    from pyspark.sql import functions as F

    return ~F.coalesce(F.expr(predicate_sql(load.where, SPARK)), F.lit(False))


class Replacement:
    """The slice's rows together with the rows that stay in partly replaced files, written in one go.

    Attributes:
        rows: rows to write.
    """

    def __init__(
        self, rows: DataFrame, load: Replace, partly_replaced: DataFrame | None, expected_rows: int = 0
    ) -> None:
        """Prepare the rows so that writing them counts them.

        Args:
            rows: rows of the slice.
            load: load by a condition.
            partly_replaced: rows of files that the load replaces in part; None if there are none.
            expected_rows: number of rows in these files, according to the table.
        """
        from pyspark.sql import functions as F

        self._is_outside, self._part, self._expected = is_outside(load), partly_replaced, expected_rows
        self.rows, self._outside = count_while_written(rows, self._is_outside)
        self._read: RowCounter = lambda: 0
        self._copied: RowCounter = lambda: 0
        if partly_replaced is not None:
            read_rows, self._read = count_while_written(partly_replaced, F.lit(True))
            staying_rows, self._copied = count_while_written(read_rows.where(self._is_outside), F.lit(True))
            self.rows = self.rows.unionByName(staying_rows)

    def count_copied(self, folder: Place, files: Sequence[DataFile | WrittenFile]) -> int:
        """Return how many staying rows were written with the slice's rows.

        Counts that Spark did not report are taken from the replaced and the written files, which no one
        changes.

        Args:
            folder: folder that was written.
            files: files in the folder.

        Raises:
            RowsRefused: rows of the slice lie outside the rows that the load replaces.
            TargetError: Spark did not read all rows of the partly replaced files.
        """
        read, copied_rows = self._read(), self._copied()
        if read is None:
            read = self._part.count() if self._part is not None else 0
        if read != self._expected:
            raise TargetError(
                f"folder {folder}: expected {self._expected:,} rows in the partly replaced files, found "
                f"{read:,}: a file is damaged or was replaced. Nothing was committed. Restore the file or "
                "the table"
            )
        if copied_rows is None:
            copied_rows = self._part.where(self._is_outside).count() if self._part is not None else 0
        outside_rows = self._outside()
        if outside_rows is None:
            paths = [file.path.partition("/")[2] for file in files]
            written = read_files(self.rows, folder, paths).where(self._is_outside).count() if paths else 0
            outside_rows = written - copied_rows
        if outside_rows:
            raise RowsRefused(
                f"{outside_rows:,} rows lie outside the part of the table that the slice replaces",
                code=OUTSIDE,
            )
        return copied_rows
