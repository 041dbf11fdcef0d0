"""Spark columns that judge the rows of an epoch: late, leaving or waiting (docs/reference/streams.md).

Event times are compared as whole numbers (:mod:`partitions.stream.ticks`). The highest event
times of earlier chunks stay in Spark: one value per chunk and split would be too many to collect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from partitions.errors import ConfigurationError
from partitions.stream.definition import StreamWatermark
from partitions.stream.emission_rules import is_below
from partitions.stream.event_time import EventTime
from partitions.stream.splits import ONLY_SPLIT
from partitions.stream.ticks import FIRST_TIME, LAST_TIME, LOWEST, ticks
from resources.sql import quoted
from resources.tables.contract.commit_log import VERSION

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TIME, SPLIT, REASON, JUDGED_BY = (
    "_strandline_time",
    "_strandline_split",
    "_strandline_reason",
    "_strandline_watermark",
)
"""Columns of an epoch's rows: event time, split, why a row is quarantined, and its watermark.

Times are in ticks.
"""

_PRIOR = "_strandline_prior"
"""Helper column: the watermark after the earlier chunks of a split."""

_WHOLE = ("byte", "short", "integer", "long")
"""Spark's names of the whole-number types."""

_ZERO = "CAST('1970-01-01 00:00:00' AS TIMESTAMP_NTZ)"


def time_type(rows: DataFrame, definition: StreamWatermark, dataflow: str) -> str:
    """Return Spark's name of the event time's type.

    Raises:
        ConfigurationError: the source lacks a column of the definition, the event time is neither a
            timestamp nor a whole number, or the timeout is not of the same sort.
    """
    types = {field.name: field.dataType.typeName() for field in rows.schema.fields}
    used_columns = (definition.event_time, *definition.split_columns, *definition.order_by)
    missing = [name for name in used_columns if name not in types]
    if missing:
        source_columns = ", ".join(name for name in types if name != VERSION)
        raise ConfigurationError(
            f"dataflow {dataflow}: watermark: expected columns of the source, which has {source_columns}; found {', '.join(missing)}"
        )
    type_name = types[definition.event_time]
    if type_name not in (*_WHOLE, "timestamp", "timestamp_ntz"):
        raise ConfigurationError(
            f"dataflow {dataflow}: watermark.event_time: expected a column with timestamps or whole numbers, found {definition.event_time}, which is"
            f" {type_name}"
        )
    if isinstance(definition.timeout, int) != (type_name in _WHOLE):
        timeout_kind = "a whole number" if type_name in _WHOLE else "a duration such as PT5M"
        raise ConfigurationError(
            f"dataflow {dataflow}: watermark.timeout: expected {timeout_kind}, since {definition.event_time} is {type_name}; found {definition.timeout}"
        )
    return type_name


def is_timed(type_name: str) -> bool:
    """Return whether event times of a type are timestamps, not whole numbers."""
    return type_name not in _WHOLE


def ticks_of(column: str, type_name: str) -> Column:
    """Return a column's values in ticks."""
    from pyspark.sql import functions as F

    name = quoted(column)
    match type_name:
        case "timestamp":
            return F.expr(f"unix_micros({name})")
        case "timestamp_ntz":
            return F.expr(f"timestampdiff(MICROSECOND, {_ZERO}, {name})")
    return F.col(name).cast("long")


def from_ticks(column: str, type_name: str) -> Column:
    """Convert a column of ticks to values of a type."""
    from pyspark.sql import functions as F

    match type_name:
        case "timestamp":
            return F.expr(f"timestamp_micros({column})")
        case "timestamp_ntz":
            # An interval takes at most 32 bits of days, and seconds: split the ticks into both.
            rest = f"pmod({column}, 86400000000L)"
            days = f"CAST(({column} - {rest}) div 86400000000L AS INT)"
            return F.expr(
                f"{_ZERO} + make_dt_interval({days}, 0, 0, CAST({rest} AS DECIMAL(18, 6)) / 1000000)"
            )
    return F.col(column).cast(type_name)


def as_value(at: EventTime, type_name: str) -> EventTime:
    """Return an event time as a column of a type holds it: ``timestamp_ntz`` without its zone."""
    return at.replace(tzinfo=None) if isinstance(at, datetime) and type_name == "timestamp_ntz" else at


def marked(rows: DataFrame, definition: StreamWatermark, type_name: str, latest: int | None) -> DataFrame:
    """Add event time in ticks, split, and the reason why a row is quarantined (NULL: it is not).

    Args:
        rows: the rows of an epoch's input.
        definition: names the columns of event time and split.
        type_name: Spark's name of the event time's type.
        latest: the latest accepted event time, in ticks; None: any is accepted.
    """
    from pyspark.sql import functions as F

    columns = [F.col(quoted(name)).cast("string") for name in definition.split_columns]
    split: Column
    if not columns:
        split = F.lit(ONLY_SPLIT)
    elif len(columns) == 1:
        split = columns[0]
    else:
        any_null = F.expr(" OR ".join(f"{quoted(name)} IS NULL" for name in definition.split_columns))
        split = F.when(~any_null, F.to_json(F.array(*columns)))
    reason = F.when(F.col(TIME).isNull(), "null_event_time").when(F.col(SPLIT).isNull(), "null_split")
    if is_timed(type_name):
        in_range = F.col(TIME).between(FIRST_TIME, LAST_TIME)
        reason = reason.when(~in_range, "event_time_out_of_range")
    if latest is not None:
        reason = reason.when(F.col(TIME) > F.lit(latest).cast("long"), "future_event_time")
    timed_rows = rows.withColumn(TIME, ticks_of(definition.event_time, type_name)).withColumn(SPLIT, split)
    return timed_rows.withColumn(REASON, reason)


def tops(rows: DataFrame, timeout: int, *, one_chunk: bool) -> DataFrame:
    """Return one row per split: ``top`` and ``lowest`` event time, number of ``rows``, and ``behind``.

    ``behind`` says whether a row is below the watermark after the earlier chunks of its split in this
    epoch. Quarantined rows count as split NULL.

    Args:
        rows: rows of :func:`marked`, with ``VERSION``.
        timeout: the timeout, in ticks.
        one_chunk: whether all rows belong to one chunk.
    """
    from pyspark.sql import functions as F

    valid_split = F.when(F.col(REASON).isNull(), F.col(SPLIT))
    time = F.when(F.col(REASON).isNull(), F.col(TIME))
    aggregates = [F.max(time).alias("top"), F.min(time).alias("lowest"), F.count("*").alias("rows")]
    by_split = rows.withColumn(SPLIT, valid_split)
    if one_chunk:
        return by_split.groupBy(SPLIT).agg(*aggregates, F.lit(False).alias("behind"))
    chunks = by_split.groupBy(SPLIT, VERSION).agg(*aggregates)
    chunks = chunks.withColumn(_PRIOR, _prior_watermark(timeout))
    behind = F.max(F.coalesce(is_below(F.col("lowest"), F.col(_PRIOR)), F.lit(False)))
    sums = [F.max("top").alias("top"), F.min("lowest").alias("lowest"), F.sum("rows").alias("rows")]
    return chunks.groupBy(SPLIT).agg(*sums, behind.alias("behind"))


def _prior_watermark(timeout: int) -> Column:
    """Return the watermark after the earlier chunks of a split; NULL without earlier chunks."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    earlier_chunks = Window.partitionBy(SPLIT).orderBy(VERSION).rowsBetween(Window.unboundedPreceding, -1)
    highest = F.max("top").over(earlier_chunks)
    # A difference below 64 bits becomes the lowest number.
    watermark = F.coalesce(
        F.try_subtract(highest, F.lit(timeout).cast("long")), F.lit(LOWEST + 1).cast("long")
    )
    return F.when(highest.isNotNull(), watermark)


def none_late(rows: DataFrame) -> DataFrame:
    """Return the rows of :func:`judged` for marked rows none of which is late, without a comparison."""
    from pyspark.sql import functions as F

    return rows.withColumn(JUDGED_BY, F.lit(None).cast("long"))


def judged(
    rows: DataFrame, bounds: Mapping[str, EventTime | None], timeout: int, *, one_chunk: bool
) -> DataFrame:
    """Add the watermark that judges each row, in ticks: its split's watermark before the row's chunk.

    NULL means that nothing makes the row late.

    Args:
        rows: rows of :func:`marked`, with ``VERSION``.
        bounds: watermark before the epoch of each split that has rows.
        timeout: the timeout, in ticks.
        one_chunk: whether all rows belong to one chunk.
    """
    from pyspark.sql import functions as F

    ticks_by_split = [(name, ticks(at)) for name, at in bounds.items() if at is not None]
    spark = rows.sparkSession
    watermarks = spark.createDataFrame(ticks_by_split, f"{SPLIT} string, {JUDGED_BY} long")
    rows_with_bounds = rows.join(F.broadcast(watermarks), SPLIT, "left")
    if one_chunk:
        return rows_with_bounds
    highest = rows.where(F.col(REASON).isNull()).groupBy(SPLIT, VERSION).agg(F.max(TIME).alias("top"))
    prior = highest.select(SPLIT, VERSION, _prior_watermark(timeout).alias(_PRIOR))
    rows_with_both = rows_with_bounds.join(prior, [SPLIT, VERSION], "left")
    return rows_with_both.withColumn(JUDGED_BY, F.greatest(F.col(JUDGED_BY), F.col(_PRIOR))).drop(_PRIOR)


def is_late() -> Column:
    """Return whether a judged row is late."""
    from pyspark.sql import functions as F

    return F.coalesce(F.col(REASON).isNull() & is_below(F.col(TIME), F.col(JUDGED_BY)), F.lit(False))


def is_kept() -> Column:
    """Return whether a judged row is neither late nor quarantined."""
    from pyspark.sql import functions as F

    return F.col(REASON).isNull() & ~is_late()


def leaves(value: EventTime | None) -> Column:
    """Return whether a row is below a bound, and so leaves the buffer; False for no bound."""
    from pyspark.sql import functions as F

    return F.lit(False) if value is None else is_below(F.col(TIME), F.lit(ticks(value)).cast("long"))


def in_order(rows: DataFrame, columns: Sequence[str], *, small: bool) -> DataFrame:
    """Return the rows sorted by columns, NULLs first, in Spark partitions that do not overlap.

    Args:
        rows: the rows.
        columns: the columns to sort by.
        small: whether to sort them in one partition.
    """
    from pyspark.sql import functions as F

    order: list[Any] = [F.col(quoted(name)).asc_nulls_first() for name in columns]
    partitions = rows.repartition(1) if small else rows.repartitionByRange(*order)
    return partitions.sortWithinPartitions(*order)
