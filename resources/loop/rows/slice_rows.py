"""The rows of a slice: read, transformed, with their origin columns, and observed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from partitions.errors import NeedsDecision
from partitions.plan import Size
from resources.kinds.contract.reading import BuildsOnState, KnowsColumns
from resources.kinds.contract.slices import SliceT
from resources.kinds.contract.writing import (
    ROWS,
    SavesHighest,
    StatsReader,
    SteersRows,
    WatchesRows,
    WriteStats,
)
from resources.loop.context import RunContext
from resources.loop.entries import is_last_query
from resources.loop.rows.delete_marks import failed_condition
from resources.loop.rows.optional_columns import optional_columns
from resources.loop.rows.retention import hold_back_rows
from resources.loop.rows.transform import Batch, transformed
from resources.sources.files.pinned import PinnedSchema
from resources.spark.connect import has_shared_code
from resources.spark.failures import fails_on_values
from resources.spark.frames import with_cached_columns
from resources.spark.settings import BYTES_PER_ROW, tune
from resources.watermarks.entry import Entry, Intent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_BYTES_PER_STORED_ROW = 50
"""Estimated bytes of a row that a table holds as Parquet. A merge of 1,000 rows into an Iceberg table of 100,000 takes 1.5 s of a warm engine as it is, 2.2 s if its
queries are compiled first, and 1.3 s if they are compiled already."""


def slice_rows(
    run: RunContext[SliceT],
    entry: Entry | None,
    intent: Intent,
    slice_: SliceT | None,
) -> DataFrame:
    """Return the rows of a slice, including rows that a delete or the retention holds back later.

    Without a slice, no rows with the same columns.

    Args:
        run: the run.
        entry: the newest entry.
        intent: the slice's intent.
        slice_: the slice.

    Raises:
        BadPart: a part of it cannot be read.
    """
    spark = run.spark
    compiled = tune(spark, _expected_bytes(run, entry, slice_))
    # Columns alone are the newest version's: the one that the intent names may be gone, and with it every way to give the number up.
    versions = intent.inputs if slice_ is not None else run.inputs.newest_versions()
    batch = Batch(
        run.name,
        intent.number,
        intent.lower,
        intent.upper,
        intent.run_id,
        intent.time,
        run.inputs.read(spark, versions or {}),
    )
    pinned = run.log.get_schema(intent.pinned)
    source_rows = run.kind.reading.read(spark, slice_, pinned)
    if repeats_query(run, entry, intent) and isinstance(run.kind.reading, KnowsColumns):
        columns = run.kind.reading.columns(pinned)
        source_rows = source_rows if columns is None else with_cached_columns(source_rows, columns)
    names = PinnedSchema.of(pinned).struct.names if compiled else None
    rows = transformed(spark, run.dataflow, source_rows, batch, run.folder, compiled=names)
    if isinstance(run.kind.writing, WatchesRows):
        run.kind.writing.check_rows(rows)
    writing = run.kind.writing
    return writing.steered(rows, slice_) if isinstance(writing, SteersRows) else rows


def observe_again(run: RunContext[SliceT], entry: Entry | None, intent: Intent, slice_: SliceT) -> WriteStats:
    """Observe the rows of a slice that a dead process has written, and count those that it held back.

    The slice is read once more if a delete is in force or the table has a retention: the table does not
    show the rows that were held back, and the watermark passes them. If parts of the slice are gone,
    nothing is known.

    Returns:
        the statistics of the write.
    """
    has_rules = run.deletes(entry) or run.dataflow.target.retention
    if run.withheld.of_slice(intent.number) is not None or not has_rules:
        return {}
    stats: WriteStats = {}
    with suppress(Exception):
        rows, read_stats = kept_rows(run, slice_rows(run, entry, intent, slice_), entry, intent, slice_)
        rows.write.format("noop").mode("overwrite").save()
        run.withheld.count(intent.number)
        stats = {key: values for key, values in read_stats().items() if key != ROWS}
    return stats


def kept_rows(
    run: RunContext[SliceT], rows: DataFrame, entry: Entry | None, intent: Intent, slice_: SliceT
) -> tuple[DataFrame, StatsReader]:
    """Return the rows of a slice that are not held back, and a reader of the kind's statistics of them.

    A watermark of the highest value passes rows that are held back, so it observes them, too. Otherwise each
    run would read them again; and if all are held back, no row would tell how far the source was read.
    """
    writing, optional = run.kind.writing, optional_columns(run, intent, slice_, rows)
    if not isinstance(writing, WatchesRows):
        return hold_back_rows(run, rows, entry, optional, intent.number), no_stats
    if isinstance(writing, SavesHighest):
        observed, stats = writing.observe(rows, slice_)
        return hold_back_rows(run, observed, entry, optional, intent.number), stats
    return writing.observe(hold_back_rows(run, rows, entry, optional, intent.number), slice_)


def no_stats() -> WriteStats:
    """Return no statistics, for a write that nobody observed."""
    return {}


def failed_delete(
    run: RunContext[SliceT], entry: Entry | None, intent: Intent, slice_: SliceT, error: Exception
) -> NeedsDecision | None:
    """Return the error if a write failed because a delete's condition fails on a row; else None."""
    deletes = run.deletes(entry)
    if not deletes or not fails_on_values(error):
        return None
    rows = slice_rows(run, entry, intent, slice_)
    return failed_condition(run.rules_of, rows, deletes, optional_columns(run, intent, slice_, rows))


def repeats_query(run: RunContext[SliceT], entry: Entry | None, intent: Intent) -> bool:
    """Return whether Spark has analysed the slice's query before: it differs only in its files."""
    return run.kind.reading.same_query_for_all_slices and is_last_query(entry, intent)


def _expected_bytes(run: RunContext[SliceT], entry: Entry | None, slice_: SliceT | None) -> int | None:
    """Return how many bytes the write reads from the source, and from the table if it merges by keys.

    None if the source's size is unknown, or if compiling a merge pays off because Spark keeps its code.
    """
    target = run.dataflow.target
    if target.merges and has_shared_code(run.spark):
        return None
    source = _source_bytes(run, entry, slice_)
    if source is None or entry is None or not target.merges:
        return source
    return source + entry.total_rows * _BYTES_PER_STORED_ROW


def _source_bytes(run: RunContext[SliceT], entry: Entry | None, slice_: SliceT | None) -> int | None:
    """Return the source's size in bytes; for work units an estimate from the last loaded ones; or None."""
    if slice_ is not None and isinstance(run.kind.reading, BuildsOnState):
        return run.kind.reading.count_rows(slice_) * BYTES_PER_ROW
    size = slice_.size if slice_ else Size(bytes=0)
    if size.bytes is not None or entry is None or not entry.work_units:
        return size.bytes
    return entry.rows * BYTES_PER_ROW // entry.work_units * size.work_units
