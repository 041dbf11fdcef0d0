"""Step 2, write: the rows of a slice, analysed before its intent, go into the table in one tagged commit (docs/explanation/protocol.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import (
    BadPart,
    RowsRefused,
    SchemaEvolved,
    StrandlineError,
    TargetError,
)
from partitions.loads import Append, LackingColumn, Load, ReplaceAll, ReplaceKeys, Scd2, Upsert
from partitions.predicate import NOTHING, columns_of
from partitions.supported import FORMATS
from partitions.table_types import VARIANT, first_unsupported_column
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.kinds.contract.reading import TellsLacking
from resources.kinds.contract.slices import SliceT
from resources.kinds.contract.writing import StatsReader, WatchesRows, WriteStats
from resources.loop.appending import replaced_until
from resources.loop.bad_records import set_records_aside
from resources.loop.context import RunContext
from resources.loop.entries import claimed
from resources.loop.giving_up import give_up
from resources.loop.interruption_retries import outlasting_interruptions
from resources.loop.side_tables import write_asides
from resources.loop.slice_rows import repeats_query, slice_rows
from resources.loop.verifying import find_commit
from resources.loop.write_failures import failed_step, find_bad_part, is_refused, write_failure, write_refusal
from resources.outcome import NotCommitted, Step
from resources.sources.files.pinned import PinnedSchema
from resources.spark.failures import root_cause
from resources.tables.contract.commits import Tag
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.contract.table import Table
from resources.tables.rows.deduplicate import drop_shared_keys, latest_rows
from resources.tables.rows.scd2 import scd2_initial_rows
from resources.watermarks.entry import Entry, Intent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def analysed_rows(run: RunContext[SliceT], entry: Entry | None, intent: Intent, slice_: SliceT) -> DataFrame:
    """Return the rows of a slice, after Spark has looked at the whole query; nothing is read.

    A query over files that is the last slice's in all but the files was looked at then: Spark does it again in the write.

    Raises:
        BadPart: some of it cannot be read.
        TargetError: tables of the format do not hold a column of it.
        StrandlineError: code ``query``: the query or function does not fit the rows.
    """
    try:
        rows = slice_rows(run, entry, intent, slice_)
        if not repeats_query(run, entry, intent):
            # On Spark Connect nothing is looked at before it is asked for.
            _refuse_types(run, intent, rows.schema.jsonValue())
    except StrandlineError:
        raise
    except Exception as error:
        bad = find_bad_part(run, intent, slice_, error)
        if bad is not None:
            raise bad from error
        raise StrandlineError(
            f"dataflow {run.name}: Spark cannot make the rows of slice {intent.number}: {type(error).__name__}:"
            f" {root_cause(error).rstrip(' .;')}. Nothing was begun. {_to_check(run.dataflow, error)}",
            code="query",
        ) from error
    return rows


def _refuse_types(run: RunContext[SliceT], intent: Intent, columns: Mapping[str, Any]) -> None:
    """Raise for a type that no table of the format holds: a number that is begun with it could be neither finished nor given up."""
    table_format = run.dataflow.target.format
    refused = first_unsupported_column(table_format, columns)
    if refused is None:
        return
    name, data_type = refused
    others = [other for other in FORMATS if first_unsupported_column(other, columns) is None]
    raise TargetError(
        f"dataflow {run.name}: table {run.dataflow.table}: expected types that tables of format {table_format} hold, found column {name} of type {data_type}"
        f" in slice {intent.number}. Nothing was begun. Make another type of it in sql or transform"
        + (", such as text by to_json" if data_type == VARIANT else "")
        + (f"; or use target.format: {others[0]}" if others else "")
    )


def _to_check(dataflow: Dataflow, error: Exception) -> str:
    """Return which part of a definition an error of Spark's analysis may come from."""
    steps = [name for name in ("transform", "sql") if getattr(dataflow, name)]
    unknown = "TABLE_OR_VIEW_NOT_FOUND" in str(error)
    names = f"; a query knows input{''.join(f', {name}' for name in dataflow.inputs)}, and `inputs` names more tables of the lake"
    return f"Check {' and '.join(steps) or 'source.options'}{names if unknown else ''}"


def write(
    run: RunContext[SliceT], entry: Entry | None, intent: Intent, slice_: SliceT, rows: DataFrame | None
) -> StatsReader | NotCommitted:
    """Write a slice; return what reads the statistics of the write, or why the number was given up.

    Args:
        run: of the dataflow.
        entry: the newest one.
        intent: that was put.
        slice_: what it holds.
        rows: of the slice, if they were analysed before the intent; None for an intent that another run has left.

    Raises:
        SourceInterrupted: the source broke off in every attempt; the intent stays, and the next run finishes it.
        TargetError: the write failed for another reason than its rows, or other writers of the table were faster in every attempt; the intent
            stays, as before.
        NeedsDecision: it failed, and state and table do not belong together any more.
    """
    analysed = [] if rows is None else [rows]  # which serve one attempt; each later one makes its rows again

    def attempt() -> StatsReader | NotCommitted:
        return _write_once(run, entry, intent, slice_, analysed.pop() if analysed else None)

    return retry_conflicts(lambda: outlasting_interruptions(attempt))


def _write_once(
    run: RunContext[SliceT], entry: Entry | None, intent: Intent, slice_: SliceT, rows: DataFrame | None
) -> StatsReader | NotCommitted:
    rewound = replaced_until(run, entry, intent) is not None
    tag = Tag(intent.app_id, intent.number, intent.id, after=claimed(entry), rewound=rewound)
    load: Load = Append()
    try:
        rows = slice_rows(run, entry, intent, slice_) if rows is None else rows
        set_records_aside(run, intent, slice_)
        write_asides(run, intent, slice_)
        planned = run.kind.writing.load(slice_, rows)
        load = (
            ReplaceAll() if intent.replaces == "table" else _with_lacking(run, intent, slice_, planned, rows)
        )
        stats: StatsReader = _no_stats
        if isinstance(run.kind.writing, WatchesRows):
            rows, stats = run.kind.writing.observe(rows, slice_)
        rescues = run.dataflow.target.schema_mode == "rescue"
        rows, count_rescued = run.rescued.watched(rows) if rescues else (rows, lambda: None)
        rows = _coming(
            run, _reduced(rows, planned, load), load
        )  # behind the observation, which counts what was read
        _table(run, entry, intent, load).write(rows, load, tag, intent.watermark, base=intent.table_version)
        count_rescued()
    except (BadPart, SchemaEvolved) as why:
        # Of a slice that another run has begun, and that no run can read any more; one of this run was looked at before its intent.
        return _given_up(run, entry, intent, why)
    except Exception as error:
        if isinstance(error, StrandlineError) and not isinstance(error, RowsRefused):
            raise
        # The commit may have landed although its answer did not, or another run that finishes this intent was first. Of a table that is
        # another one now neither its rows nor the source are to blame.
        if find_commit(run, entry, intent) is not None:
            return _no_stats
        blamed: StrandlineError | None
        try:
            blamed = find_bad_part(run, intent, slice_, error)
        except SchemaEvolved as evolved:
            return _given_up(run, entry, intent, evolved)
        blamed = blamed or failed_step(run, intent, error)
        if blamed is None and not is_refused(error):
            raise write_failure(run, intent, error) from error
        blamed = blamed or write_refusal(run, intent, load, rows, error)
        blamed.__cause__ = error
        return _given_up(run, entry, intent, blamed)
    run.notify(Step.WRITTEN, f"slice {intent.number} written")
    return stats


def _table(run: RunContext[SliceT], entry: Entry | None, intent: Intent, load: Load) -> Table:
    """The table, which takes columns in mode strict, too, if fields of the source that had no type yet have got one."""
    if run.dataflow.target.schema_mode != "strict" or isinstance(load, ReplaceAll) or not run.table.exists():
        return run.table
    if entry is None or entry.pinned is None or entry.pinned == intent.pinned:
        return run.table
    had_untyped = PinnedSchema.of(run.log.get_schema(entry.pinned)).has_untyped
    return run.table.with_schema_mode("merge") if had_untyped else run.table


def _reduced(rows: DataFrame, planned: Load, load: Load) -> DataFrame:
    """The rows that go into the table: of a load that tells rows apart by keys each once, whatever is done with those that are there.

    Args:
        rows: all of the slice's.
        planned: the load of the target.
        load: the one that is carried out, which may empty the table first.
    """
    match planned:
        case Upsert(keys, order):
            return latest_rows(rows, keys, order)
        case Scd2(keys, effective, order):
            latest = latest_rows(rows, (*keys, effective), order)
            return scd2_initial_rows(latest, planned) if isinstance(load, ReplaceAll) else latest
    return rows


def _with_lacking(
    run: RunContext[SliceT], intent: Intent, slice_: SliceT, load: Load, rows: DataFrame
) -> Load:
    """A load that keeps versions, with the columns of which rows say nothing: those that their source has lost, and those of the table that a step leaves out."""
    if not isinstance(load, Scd2) or not run.table.exists():
        return load
    lacking: Sequence[LackingColumn] = ()
    if isinstance(run.kind.reading, TellsLacking):
        lacking = run.kind.reading.lacking(run.spark, slice_, run.log.get_schema(intent.pinned))
    brought = {name.casefold() for name in rows.columns}
    left_out = [
        LackingColumn(name) for name in run.table.contents.columns() if name.casefold() not in brought
    ]
    return replace(load, lacking=(*lacking, *left_out))


def _coming(run: RunContext[SliceT], rows: DataFrame, load: Load) -> DataFrame:
    """The rows without those of keys of which the table holds later ones."""
    if not isinstance(load, ReplaceKeys) or load.later == NOTHING or not run.table.exists():
        return rows
    table_columns = {name.casefold() for name in run.table.contents.columns()}
    if not {name.casefold() for name in columns_of(load.later)} <= table_columns:
        return rows  # which bring the columns: no row of the table has a value there
    later_rows = run.table.contents.read(run.spark, run.table.contents.newest_version(), load.later).where(
        predicate_sql(load.later, SPARK)
    )
    if load.own != NOTHING:
        later_rows = later_rows.where(f"NOT coalesce({predicate_sql(load.own, SPARK)}, false)")
    return drop_shared_keys(rows, later_rows, load.keys, load.order)


def _given_up(
    run: RunContext[SliceT], entry: Entry | None, intent: Intent, why: StrandlineError
) -> StatsReader | NotCommitted:
    """Abandon the number, unless a writer that was believed dead has written the slice: it is finished like any other then."""
    abandoned = give_up(run, entry, intent, reason_of(why))
    return NotCommitted(abandoned, why) if abandoned is not None else _no_stats


def reason_of(error: StrandlineError) -> str:
    """Return why a number is given up, for the log. What follows for the watermark is the policy's to say."""
    return f"{error.part}: {error.why}" if isinstance(error, BadPart) else error.message


def _no_stats() -> WriteStats:
    return {}
