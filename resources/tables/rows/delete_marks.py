"""Rows of a slice that delete their key (docs/reference/loads.md, Deletes).

A boolean column marks them until the slice is written; the load names it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.loads import ByKeys, Load, helper_columns
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def is_delete(column: str | None) -> Column:
    """Return whether a row deletes its key; never NULL.

    Args:
        column: boolean column of the rows; None: no row does.
    """
    from pyspark.sql import functions as F

    return F.lit(False) if column is None else F.coalesce(F.col(quoted(column)), F.lit(False))


def without_deletes(rows: DataFrame, load: Load) -> DataFrame:
    """Return the rows that a load may write, without the columns that only steer it."""
    if not isinstance(load, ByKeys):
        return rows
    remaining = rows if load.deletes is None else rows.where(~is_delete(load.deletes))
    return remaining.drop(*helper_columns(load))
