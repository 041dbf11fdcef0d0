"""Columns that a row has no value for, which an update leaves as they are (docs/reference/loads.md).

A column of the rows names them until the slice is written; the load names that column.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from partitions.loads import LackingColumn, Upsert
from partitions.target import ORIGIN_COLUMNS
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SOURCE_FILE = ORIGIN_COLUMNS[0]


def marked_absent(rows: DataFrame, load: Upsert) -> DataFrame:
    """Return rows that all say which columns they lack, in the column that the load names.

    Names that the rows bring stay; those of the load's lacking columns are added.
    """
    from pyspark.sql import functions as F

    if load.absent is None:
        return rows
    names = {name.lower(): name for name in rows.columns}
    own = F.col(load.absent) if load.absent in names else F.lit(None).cast("array<string>")
    lacking = [*_lacking_names(names, load.lacking, {name.lower() for name in load.keys})]
    added = F.array_compact(F.array(*lacking)) if lacking else F.array().cast("array<string>")
    return rows.withColumn(
        load.absent, F.array_union(F.coalesce(own, F.array().cast("array<string>")), added)
    )


def is_absent(absent: Column, name: str) -> Column:
    """Return whether a row has no value for a column; ``absent`` holds the names of such columns."""
    from pyspark.sql import functions as F

    return F.coalesce(F.array_contains(absent, name.lower()), F.lit(False))


def _lacking_names(
    names: dict[str, str], lacking: Iterable[LackingColumn], keys: set[str]
) -> Iterable[Column]:
    """Yield the name of each lacking column where a row lacks it; else NULL."""
    from pyspark.sql import functions as F

    for column, files in lacking:
        lower = column.lower()
        if lower in keys or (files is not None and _SOURCE_FILE not in names):
            continue
        of_row = F.lit(True) if files is None else F.col(quoted(_SOURCE_FILE)).isin(*files)
        if lower in names:
            of_row &= F.col(quoted(names[lower])).isNull()
        yield F.when(of_row, F.lit(lower))
