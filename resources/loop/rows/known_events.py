"""Leave out change events that the table has already.

A connector that starts again sends some of them a second time. See docs/reference/debezium.md, Kept changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.loads import Append, Load, OrderByPath, Replace
from partitions.predicate import Between
from partitions.sources.event_columns import POSITION
from partitions.target import HELPER_PREFIX, ORIGIN_COLUMNS
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.spark.frames import read_once
from resources.sql import quoted
from resources.tables.rows.deduplicate import comparable, drop_shared_keys, has_no_order, latest_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField, StructType

_KNOWN = f"{HELPER_PREFIX}known_"
"""Prefix of helper columns: values that can be compared, in place of those of a column."""


def without_known_events(run: RunContext[SliceT], rows: DataFrame, load: Load) -> DataFrame:
    """Return rows without change events that the table has, each once; other rows unchanged.

    Two events are the same if all their columns are, but for those that name a file or run. A step that
    leaves out the position leaves events that cannot be told apart: all of them stay.

    Args:
        run: the run.
        rows: rows of a slice. Change events are cached, since they are read more than once.
        load: load of the slice.
    """
    from pyspark.sql import functions as F

    if not run.dataflow.source.sends_changes or POSITION not in rows.columns:
        return rows
    facts = [field for field in rows.schema.fields if field.name not in ORIGIN_COLUMNS]
    by_file = (OrderByPath(ORIGIN_COLUMNS[0]),) if ORIGIN_COLUMNS[0] in rows.columns else ()
    keys = [_key(field, number) for number, field in enumerate(facts)]
    helpers = [key for key in keys if key.startswith(HELPER_PREFIX)]
    once = read_once(latest_rows(_with_keys(rows, facts), keys, by_file, is_earliest=True).drop(*helpers))
    if not isinstance(load, Append | Replace) or not run.table.exists():
        return once
    position = F.col(POSITION)
    (bounds,) = once.agg(F.min(position).alias("lower"), F.max(position).alias("upper")).collect()
    if bounds["lower"] is None:
        return once
    stored = _stored_events(
        run, Between(POSITION, bounds["lower"], bounds["upper"], upper_inclusive=True), load
    )
    stored = _with_keys(_with_columns(stored, once.schema), facts)
    return drop_shared_keys(_with_keys(once, facts), stored, keys).drop(*helpers)


def _stored_events(run: RunContext[SliceT], positions: Between, load: Append | Replace) -> DataFrame:
    """Return the events of the table that stay in it, as far as a slice may have them again."""
    contents = run.table.contents
    if POSITION not in contents.columns():
        return run.spark.createDataFrame([], f"{POSITION} string")
    stored = contents.read(run.spark, contents.newest_version(), positions)
    stored = stored.where(predicate_sql(positions, SPARK))
    if isinstance(load, Replace):
        stored = stored.where(f"NOT coalesce({predicate_sql(load.where, SPARK)}, false)")
    return stored


def _with_columns(stored: DataFrame, schema: StructType) -> DataFrame:
    """Return the table's rows with the columns of the slice; NULL where the table lacks one."""
    from pyspark.sql import functions as F

    names = {name.lower(): name for name in stored.columns}
    return stored.select(
        *[
            F.col(quoted(names[field.name.lower()])).alias(field.name)
            if field.name.lower() in names
            else F.lit(None).cast(field.dataType).alias(field.name)
            for field in schema.fields
        ]
    )


def _with_keys(rows: DataFrame, facts: list[StructField]) -> DataFrame:
    """Return rows with helper columns in place of those that Spark cannot compare."""
    helpers = {
        key: comparable(field.name, field.dataType)
        for number, field in enumerate(facts)
        if (key := _key(field, number)) != field.name
    }
    return rows.withColumns(helpers) if helpers else rows


def _key(field: StructField, number: int) -> str:
    return f"{_KNOWN}{number}" if has_no_order(field.dataType.simpleString()) else field.name
