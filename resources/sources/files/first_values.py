"""Find the first non-NULL value of columns in each file: one fault a file is enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def first_values(rows: DataFrame, path: Column, columns: Sequence[Column]) -> Iterator[tuple[str, int, str]]:
    """Yield the path of a file, the index of a column, from 0, and the column's first text in the file.

    Columns without a text in the file are skipped.

    Args:
        rows: the rows of files.
        path: the column with the path of a row's file.
        columns: text columns; NULL where a row has no fault.
    """
    from pyspark.sql import functions as F

    firsts = [F.first(column, ignorenulls=True).alias(f"c{place}") for place, column in enumerate(columns)]
    for row in rows.groupBy(path.alias("path")).agg(*firsts).collect():
        for place in range(len(columns)):
            if (text := row[f"c{place}"]) is not None:
                yield row["path"], place, text
