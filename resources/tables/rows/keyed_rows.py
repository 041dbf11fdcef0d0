"""The rows of a slice that a load by keys takes, and what it writes into a table without rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.loads import Load, Order, OrderByColumn, Scd2, Upsert
from resources.sql import quoted
from resources.tables.rows.absent_columns import marked_absent
from resources.tables.rows.deduplicate import latest_rows
from resources.tables.rows.delete_marks import is_delete, without_deletes
from resources.tables.rows.scd2 import scd2_initial_rows

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def latest_by_key(rows: DataFrame, load: Load) -> DataFrame:
    """Return the rows that a load takes: an upsert's latest per key, SCD2's per key and time, else all.

    Of equally late rows a delete is the latest. An upsert that only inserts takes the earliest.
    """
    match load:
        case Upsert():
            return latest_rows(
                marked_absent(rows, load),
                load.keys,
                _with_deletes_last(load),
                is_earliest=load.inserts_only,
                first_values=_first_values(load),
                absent=load.absent,
            )
        case Scd2(begins=str()):
            return latest_rows(rows, load.keys, (OrderByColumn(load.effective), *_with_deletes_last(load)))
        case Scd2():
            return latest_rows(
                _with_delete_times(rows, load), (*load.keys, load.effective), _with_deletes_last(load)
            )
    return rows


def initial_rows(rows: DataFrame, load: Load) -> DataFrame:
    """Return the rows that a load writes into a table without rows; for SCD2 the versions."""
    return scd2_initial_rows(rows, load) if isinstance(load, Scd2) else without_deletes(rows, load)


def _with_deletes_last(load: Upsert | Scd2) -> Order:
    return (*load.order, OrderByColumn(load.deletes)) if load.deletes else load.order


def _first_values(load: Upsert) -> dict[str, Column]:
    """Return, by immutable column, the condition that a row of the slice has a value there."""
    from pyspark.sql import functions as F

    return {name: F.col(quoted(name)).isNotNull() & ~is_delete(load.deletes) for name in load.immutable}


def _with_delete_times(rows: DataFrame, load: Scd2) -> DataFrame:
    """Return rows whose deletes have their own time as effective time."""
    from pyspark.sql import functions as F

    if load.deletes is None or load.delete_time is None:
        return rows
    effective = next(name for name in rows.columns if name.lower() == load.effective.lower())
    time = F.when(is_delete(load.deletes), F.col(quoted(load.delete_time))).otherwise(
        F.col(quoted(effective))
    )
    return rows.withColumn(effective, time)
