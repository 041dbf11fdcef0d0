"""The steps by which the rows of a table above follow each other, for a table that keeps versions.

See docs/reference/offsets.md, Loads by keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.offset.changes import CHANGE_COLUMNS
from partitions.target import DELETES_COLUMN, HELPER_PREFIX
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_, COMMIT_VERSION, COMMIT_TIMESTAMP = CHANGE_COLUMNS

DELETED_AT = f"{HELPER_PREFIX}deleted_at"
"""Column with the time of a row that deletes its key, of the type of the effective column."""
GOES_BACK, COMES_BACK = f"{HELPER_PREFIX}goes_back", f"{HELPER_PREFIX}comes_back"
"""Columns with the time of a row to which the table above has gone back (:class:`partitions.loads.Scd2`)."""

_CAME, _WENT, _BEFORE, _BACK, _LIMIT = (
    f"{HELPER_PREFIX}{name}" for name in ("came", "went", "before", "back", "limit")
)


def scd2_steps(rows: DataFrame, keys: tuple[str, ...], effective: str, data_type: str) -> DataFrame:
    """Return the rows that make or end a version, with the times to which the table above has gone back.

    The row that the table above has for a key is its current version. So the table above goes back to a
    row if a commit replaces a later row by it, or if it comes after its key was deleted. What earlier
    commits have done to the key after that time is withdrawn: versions, and deletes. A delete that is a part
    of an update makes no version end.

    Args:
        rows: rows with ``DELETES_COLUMN``, and the columns of changes.
        keys: columns that identify a row of the table above.
        effective: column with the time from which a row holds.
        data_type: type of that column.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    of_key = Window.partitionBy(*[F.col(quoted(key)) for key in keys])
    by_commit = of_key.orderBy(COMMIT_VERSION)
    of_commit = by_commit.rangeBetween(Window.currentRow, Window.currentRow)
    earlier = by_commit.rangeBetween(Window.unboundedPreceding, -1)
    later = by_commit.rangeBetween(1, Window.unboundedFollowing)
    deletes, begins = F.col(DELETES_COLUMN), F.struct(F.col(quoted(effective)).alias("time"))
    # A version that begins later, or whose delete has no time, ends where it begins: it is gone all the same.
    ends = F.greatest(F.col(COMMIT_TIMESTAMP).cast(data_type), F.col(quoted(effective)))
    rows = rows.withColumns(
        {
            _CAME: F.max(F.when(~deletes, begins)).over(of_commit),
            _WENT: F.max(F.when(deletes, begins)).over(of_commit),
            DELETED_AT: F.when(deletes, ends).otherwise(F.col(quoted(effective))),
        }
    )
    last_commit = F.struct(F.col(COMMIT_VERSION).alias("commit"), F.col(_CAME).isNull().alias("is_gone"))
    rows = rows.withColumn(_BEFORE, F.max(last_commit).over(earlier))
    is_new = F.col(_WENT).isNull()
    goes_back = (F.col(_CAME) < F.col(_WENT)) | (is_new & F.col(_BEFORE).getField("is_gone"))
    rows = rows.withColumn(_BACK, F.when(goes_back, F.col(_CAME)))
    comes_back = F.when(is_new & F.col(_BEFORE).isNull(), F.col(_CAME))
    rows = rows.withColumns(
        {
            _LIMIT: F.min(_BACK).over(later),
            GOES_BACK: F.min(_BACK).over(of_key),
            COMES_BACK: F.min(comes_back).over(of_key),
        }
    )
    is_part_of_update = deletes & F.col(_CAME).isNotNull()
    steps = rows.where(~is_part_of_update & ~_is_after(F.col(DELETED_AT), F.col(_LIMIT)))
    return steps.drop(_CAME, _WENT, _BEFORE, _BACK, _LIMIT)


def _is_after(time: Column, limit: Column) -> Column:
    """Return whether a time lies after a limit; without a limit none does, and NULL comes before all."""
    from pyspark.sql import functions as F

    start = limit.getField("time")
    is_later = F.when(start.isNull(), time.isNotNull()).otherwise(time > start)
    return limit.isNotNull() & F.coalesce(is_later, F.lit(False))
