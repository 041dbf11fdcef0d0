"""The rows of a repair: of its keys what the source has, and marks for keys that it lacks.

Whatever has changed since the comparison, the table gets the rows that the source has when the repair
reads them (docs/explanation/adr/0054).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from partitions.column.state import ColumnState
from partitions.dataflow import Dataflow
from partitions.loads import Load, Order, OrderByColumn, ReplaceKeys, Scd2, load_for_target
from partitions.predicate import NOTHING, all_of
from partitions.reconcile.ranges import reached_rows
from partitions.reconcile.repair import Repaired, RepairedKeys, RepairedRanges
from partitions.target import DELETES_COLUMN, HELPER_PREFIX, Target
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.spark.frames import read_once, type_of_column
from resources.sql import quoted
from resources.tables.rows.deduplicate import drop_shared_keys, latest_rows
from resources.watermarks.entry import Intent

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from resources.tables.contract.table import Table

_BACK, _RETURN = f"{HELPER_PREFIX}goes_back", f"{HELPER_PREFIX}comes_back"
"""Columns with the time of the source's row, as :class:`partitions.loads.Scd2` takes them."""
_KEY = f"{HELPER_PREFIX}repaired_"


def load_of_repair(target: Target, repairs: Repaired, order: Order) -> Load:
    """Return the load of a repair: it replaces ranges, or all rows of its keys, or corrects versions.

    A row of the table that is later than the source's is replaced, too.
    """
    if isinstance(repairs, RepairedRanges):
        return load_for_target(target, repairs.rows, order)
    deletes = DELETES_COLUMN if repairs.lacked else None
    load = load_for_target(target, NOTHING, order)
    if isinstance(load, Scd2):
        return replace(load, deletes=deletes, goes_back=_BACK, comes_back=_RETURN)
    return ReplaceKeys(target.merge_keys, deletes=deletes)


def rows_of_keys(
    dataflow: Dataflow,
    rows: DataFrame,
    repairs: RepairedKeys,
    state: ColumnState,
    load: Load,
    intent: Intent,
    table: Table,
) -> DataFrame:
    """Return the rows of a repair's keys, with a row for each key that the source lacked, and still lacks.

    A key with a row above the watermark takes no part: the next run loads it.

    Args:
        dataflow: the definition.
        rows: rows of the source, perhaps of other keys, too.
        repairs: the keys.
        state: the state that the repair builds on.
        load: the repair's load.
        intent: the repair's intent.
        table: the table.
    """
    from pyspark.sql import functions as F

    assert isinstance(load, ReplaceKeys | Scd2)
    keys, columns = load.keys, dataflow.column.columns
    requested = read_once(_requested(rows, repairs))
    rows = read_once(_of_keys(rows, requested, keys))
    reached = predicate_sql(all_of(reached_rows(state, name) for name in columns), SPARK)
    settled = drop_shared_keys(rows, rows.where(f"NOT ({reached})"), keys)
    if dataflow.target.load != "merge_overwrite":
        order = tuple(OrderByColumn(name) for name in columns)
        settled = latest_rows(settled, keys, order)
    if not repairs.lacked:
        return _with_times(settled, load)
    settled = settled.withColumn(DELETES_COLUMN, F.lit(False))
    gone_keys = drop_shared_keys(_requested(rows, repairs.lacked_keys), rows, keys)
    if isinstance(load, ReplaceKeys):
        return settled.unionByName(_deleting(gone_keys, settled, keys, {}))
    versions = table.contents.read(rows.sparkSession, table.contents.newest_version())
    current = versions.where(F.col(quoted(load.names.is_current)))
    effective = next(name for name in rows.columns if name.lower() == load.effective.lower())
    moment = F.lit(intent.time).cast("timestamp").cast(type_of_column(rows, effective))
    ends = F.greatest(F.col(quoted(load.names.valid_from)), moment)
    retired = _deleting(_of_keys(current, gone_keys, keys), settled, keys, {effective: ends})
    return _with_times(settled.unionByName(retired), load)


def _requested(rows: DataFrame, repairs: RepairedKeys) -> DataFrame:
    """Return the keys as a frame, with the types that they have in the rows."""
    from pyspark.sql import functions as F

    names = [f"{_KEY}{number}" for number in range(len(repairs.columns))]
    texts = [tuple(_text(value) for value in key) for key in repairs.keys]
    schema = ", ".join(f"{name} string" for name in names)
    frame = rows.sparkSession.createDataFrame(texts, schema)
    typed = [
        F.col(name).cast(type_of_column(rows, column)).alias(column)
        for name, column in zip(names, repairs.columns, strict=True)
    ]
    return frame.select(*typed)


def _text(value: Any) -> str | None:
    """Return a value as a text that Spark casts to its type."""
    match value:
        case None:
            return None
        case bool():
            return "true" if value else "false"
        case datetime() | date():
            return value.isoformat()
    return str(value)


def _of_keys(rows: DataFrame, requested: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the rows that have one of the keys; NULL is a value like any other."""
    from pyspark.sql import functions as F

    names = {key: f"{_KEY}{number}" for number, key in enumerate(keys)}
    renamed = requested.select([F.col(quoted(key)).alias(name) for key, name in names.items()])
    same = " AND ".join(f"{quoted(key)} <=> {quoted(name)}" for key, name in names.items())
    return rows.join(renamed, F.expr(same), "left_semi")


def _deleting(
    gone_keys: DataFrame, rows: DataFrame, keys: Sequence[str], values: dict[str, Column]
) -> DataFrame:
    """Return a row with the columns of other rows for each row that is gone, which deletes its key.

    Args:
        gone_keys: rows with the keys that are deleted.
        rows: rows with the columns.
        keys: merge keys.
        values: values of other columns, over ``gone_keys``; all others are NULL.
    """
    from pyspark.sql import functions as F

    names = {key.lower(): key for key in keys}
    own: dict[str, Column] = {}
    for name, data_type in rows.dtypes:
        value = values.get(name)
        if value is None:
            stored = names.get(name.lower())
            value = F.lit(None) if stored is None else F.col(quoted(stored))
        own[name] = value.cast(data_type)
    own[DELETES_COLUMN] = F.lit(True)
    return gone_keys.select(*[value.alias(name) for name, value in own.items()])


def _with_times(rows: DataFrame, load: Load) -> DataFrame:
    """Return rows with the time to which the source has gone back, if the load keeps versions."""
    from pyspark.sql import functions as F

    if not isinstance(load, Scd2):
        return rows
    time = F.struct(F.col(quoted(load.effective)).alias("time"))
    if load.deletes is not None:
        time = F.when(~F.col(load.deletes), time)
    return rows.withColumns({_BACK: time, _RETURN: time})
