"""The first value of columns in each file: of a fault that a column tells, one is enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def first_values(rows: DataFrame, path: Column, columns: Sequence[Column]) -> Iterator[tuple[str, int, str]]:
    """Yield the path of a file, the place of a column, from 0, and its first text in the file; nothing where it has none.

    Args:
        rows: of files.
        path: of a row's file.
        columns: of texts; NULL where there is nothing to tell.
    """
    from pyspark.sql import functions as F

    firsts = [F.first(column, ignorenulls=True).alias(f"c{place}") for place, column in enumerate(columns)]
    for row in rows.groupBy(path.alias("path")).agg(*firsts).collect():
        for place in range(len(columns)):
            if (text := row[f"c{place}"]) is not None:
                yield row["path"], place, text
