"""Rows that a load by a condition is about, counted while Spark writes them: those that it does not replace, and those that it copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.errors import RowsRefused, TargetError
from partitions.loads import Replace
from resources.connections.places import Place
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.tables.data_files.reading import read_files
from resources.tables.data_files.written import DataFile, Written
from resources.tables.rows.counted import Count, counting

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

OUTSIDE = "rows_outside"
"""Code of the error for rows that are not among those that their load replaces."""


def is_outside(load: Replace) -> Column:
    """Return whether a row is not among those that a load replaces."""
    from pyspark.sql import functions as F

    return ~F.coalesce(F.expr(sql(load.where, SPARK)), F.lit(False))


class Replacement:
    """Rows of a load by a condition, with those that stay of the files that it removes in part: what is written in one go.

    Attributes:
        rows: to be written.
    """

    def __init__(self, rows: DataFrame, load: Replace, part: DataFrame | None, expected: int = 0) -> None:
        """Count them while they are written.

        Args:
            rows: of the slice.
            load: by a condition.
            part: rows of files that go in part; none if no file does.
            expected: how many these are, as the table has it.
        """
        from pyspark.sql import functions as F

        self._is_outside, self._part, self._expected = is_outside(load), part, expected
        self.rows, self._outside = counting(rows, self._is_outside)
        self._read: Count = lambda: 0
        self._copied: Count = lambda: 0
        if part is not None:
            read, self._read = counting(part, F.lit(True))
            kept, self._copied = counting(read.where(self._is_outside), F.lit(True))
            self.rows = self.rows.unionByName(kept)

    def copied(self, folder: Place, files: Sequence[DataFile | Written]) -> int:
        """Return how many rows that stay were written with those of the slice.

        What Spark has not told is counted: in the files that go, and in those that are written, which nobody changes.

        Args:
            folder: that was written.
            files: of it.

        Raises:
            RowsRefused: rows of the slice are not among those that the load replaces.
            TargetError: Spark has not read all rows of the files that go in part.
        """
        read, copied = self._read(), self._copied()
        if read is None:
            read = self._part.count() if self._part is not None else 0
        if read != self._expected:
            raise TargetError(
                f"folder {folder}: expected {self._expected:,} rows in the files of which some are replaced, found {read:,}: a file is damaged, or is not what"
                " the table says of it. Nothing was committed; restore the file, or the table"
            )
        if copied is None:
            copied = self._part.where(self._is_outside).count() if self._part is not None else 0
        outside = self._outside()
        if outside is None:
            paths = [file.path.partition("/")[2] for file in files]
            written = read_files(self.rows, folder, paths).where(self._is_outside).count() if paths else 0
            outside = written - copied
        if outside:
            raise RowsRefused(f"{outside:,} rows are not among those that the slice replaces", code=OUTSIDE)
        return copied
