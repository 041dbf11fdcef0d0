"""Step 2, write: the rows of a slice, analysed before its intent, in one tagged commit.

See docs/explanation/protocol.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import (
    BadPart,
    LogRestarted,
    RejectedRowsChanged,
    RowsRefused,
    RulesBroken,
    RuleUnfit,
    SchemaEvolved,
    StrandlineError,
    TargetError,
)
from partitions.loads import Append, ByKeys, LackingColumn, Load, ReplaceAll, ReplaceKeys, Scd2, Upsert
from partitions.predicate import NOTHING, columns_of
from partitions.supported import FORMATS
from partitions.table_types import VARIANT, first_unsupported_column
from partitions.target import ABSENT_COLUMN, DELETES_COLUMN
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.kinds.contract.reading import ReportsMissingColumns
from resources.kinds.contract.slices import SliceT
from resources.kinds.contract.writing import RepairsKeys, StatsReader
from resources.loop.appending import replaced_until
from resources.loop.context import RunContext
from resources.loop.entries import required_commit
from resources.loop.giving_up import give_up
from resources.loop.interruption_retries import retry_interruptions
from resources.loop.rows.bad_records import set_records_aside
from resources.loop.rows.delete_when import marked_deletes
from resources.loop.rows.known_events import without_known_events
from resources.loop.rows.missing_keys import (
    check_missing_keys,
    is_superseded,
    load_of_whole,
    with_missing_keys,
)
from resources.loop.rows.optional_columns import optional_columns
from resources.loop.rows.restarted_log import check_log_goes_on
from resources.loop.rows.retention import check_rules
from resources.loop.rows.slice_rows import failed_delete, kept_rows, no_stats, repeats_query, slice_rows
from resources.loop.rows.tombstones import bury_deleted, remembers_deletes
from resources.loop.rules.fitting import check_row_rules
from resources.loop.rules.row_rules import checked_rows, count_warned
from resources.loop.side_tables import write_side_tables
from resources.loop.verifying import find_commit
from resources.loop.write_failures import failed_step, find_bad_part, is_refused, write_failure, write_refusal
from resources.outcome import NotCommitted, Step
from resources.sources.files.pinned import PinnedSchema
from resources.spark.failures import root_cause
from resources.spark.frames import read_once, without_rows
from resources.tables.contract.commits import Tag
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.contract.table import Table
from resources.tables.rows.deduplicate import drop_shared_keys
from resources.tables.rows.keyed_rows import initial_rows, latest_by_key
from resources.watermarks.entry import Entry, Intent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def analysed_rows(run: RunContext[SliceT], entry: Entry | None, intent: Intent, slice_: SliceT) -> DataFrame:
    """Return the rows of a slice after Spark has analysed the query; nothing is read.

    A query that differs from the last slice's only in its files was analysed then; the write analyses it
    again.

    Raises:
        BadPart: some of it cannot be read.
        TargetError: the table format cannot hold a column of it.
        NeedsDecision: code ``delete_unfit``: a delete in force does not fit the rows.
        StrandlineError: code ``query``: the query or function does not fit the rows.
    """
    try:
        rows = slice_rows(run, entry, intent, slice_)
        if not repeats_query(run, entry, intent):
            # On Spark Connect nothing is looked at before it is asked for.
            refuse_types(run.dataflow, intent.number, rows.schema.jsonValue())
        check_rules(run, rows, entry, optional_columns(run, intent, slice_, rows))
        check_row_rules(run, rows)
        if run.dataflow.target.removes_missing and not is_superseded(run, entry, slice_):
            rows = check_missing_keys(run, intent, rows, run.kind.writing.load(slice_, rows))
    except StrandlineError:
        raise
    except Exception as error:
        bad = find_bad_part(run, intent, slice_, error)
        if bad is not None:
            raise bad from error
        raise StrandlineError(
            f"dataflow {run.name}: Spark cannot compute the rows of slice {intent.number}: "
            f"{type(error).__name__}: {root_cause(error).rstrip(' .;')}. The run stopped before it "
            f"changed anything. {to_check(run.dataflow, error)}",
            code="query",
        ) from error
    return rows


def refuse_types(dataflow: Dataflow, number: int, columns: Mapping[str, Any]) -> None:
    """Raise for a type that the table format cannot hold: such a number could never be finished.

    Args:
        dataflow: the definition.
        number: the slice's number.
        columns: the rows' columns in the JSON form of Spark.

    Raises:
        TargetError: names the first such column.
    """
    table_format = dataflow.target.format
    refused = first_unsupported_column(table_format, columns)
    if refused is None:
        return
    name, data_type = refused
    other_formats = [name for name in FORMATS if first_unsupported_column(name, columns) is None]
    raise TargetError(
        f"dataflow {dataflow.name}: table {dataflow.table}: expected types that {table_format} tables can "
        f"hold, found column {name} of type {data_type} in slice {number}. The run stopped before "
        "it changed anything. Convert it to another type in sql or transform"
        + (", such as text with to_json" if data_type == VARIANT else "")
        + (f"; or use target.format: {other_formats[0]}" if other_formats else "")
    )


def to_check(dataflow: Dataflow, error: Exception) -> str:
    """Return the advice which part of the definition may cause an error of Spark's analysis."""
    steps = [name for name in ("transform", "sql") if getattr(dataflow, name)]
    unknown = "TABLE_OR_VIEW_NOT_FOUND" in str(error)
    names = (
        f"; a query can read input{''.join(f', {name}' for name in dataflow.inputs)}. Add other tables of "
        "the lake to `inputs`"
    )
    return f"Check {' and '.join(steps) or 'source.options'}{names if unknown else ''}"


def write(
    run: RunContext[SliceT], entry: Entry | None, intent: Intent, slice_: SliceT, rows: DataFrame | None
) -> StatsReader | NotCommitted:
    """Write a slice; return a reader of the write's statistics, or why the number was abandoned.

    Args:
        run: the run.
        entry: the newest entry.
        intent: the stored intent.
        slice_: its slice.
        rows: the slice's rows, if they were analysed before the intent; None for another run's intent.

    Raises:
        SourceInterrupted: the source broke off in every attempt; the intent stays, and the next run
            finishes it.
        TargetError: the write failed for another reason than its rows, or conflicted with other writers in
            every attempt; the intent stays.
        NeedsDecision: it failed, and state and table no longer match; or code ``versions_twice``: the table
            has a version of a key twice.
    """
    run.list_deletes(entry)  # while the run holds the number: no delete can come between
    analysed = [] if rows is None else [rows]  # which serve one attempt; each later one makes its rows again

    def attempt() -> StatsReader | NotCommitted:
        return _write_once(run, entry, intent, slice_, analysed.pop() if analysed else None)

    return retry_conflicts(lambda: retry_interruptions(attempt))


def _write_once(
    run: RunContext[SliceT], entry: Entry | None, intent: Intent, slice_: SliceT, rows: DataFrame | None
) -> StatsReader | NotCommitted:
    rewound = replaced_until(run, entry, intent) is not None
    tag = Tag(
        intent.app_id,
        intent.number,
        intent.id,
        after=required_commit(entry),
        rewound=rewound,
        writer=run.writer,
    )
    load: Load = Append()
    is_analysed = rows is not None
    try:
        rows = slice_rows(run, entry, intent, slice_) if rows is None else rows
        set_records_aside(run, intent, slice_)
        write_side_tables(run, intent, slice_)
        superseded = is_superseded(run, entry, slice_)
        rows = without_rows(rows) if superseded else rows
        planned = load_of_whole(run, run.kind.writing.load(slice_, rows))
        planned = _with_missing_columns(run, intent, slice_, planned, rows)
        load = ReplaceAll() if intent.replaces == "table" else planned
        rows, stats = kept_rows(run, rows, entry, intent, slice_)
        rescues = run.dataflow.target.schema_mode == "rescue"
        rows, count_rescued = run.rescued.observe(rows) if rescues else (rows, lambda: None)
        rows = rows if superseded else checked_rows(run, intent, slice_, rows, load)
        # Behind the observation, which counts what was read.
        whole = None if superseded else slice_
        rows = _rows_to_write(run, intent, whole, rows, planned, load, is_checked=is_analysed)
        _target(run, entry, intent, load).write(rows, load, tag, intent.watermark, base=intent.table_version)
        count_rescued()
        run.withheld.count(intent.number)
        count_warned(run, intent)
    except (BadPart, SchemaEvolved, RulesBroken, RuleUnfit, RejectedRowsChanged, LogRestarted) as why:
        # Of a slice that another run has begun, and that no run can read any more; one of this run was looked at before its intent.
        return _give_up(run, entry, intent, why)
    except Exception as error:
        if isinstance(error, StrandlineError) and not isinstance(error, RowsRefused):
            raise
        # The commit may have landed although its answer did not, or another run that finishes this intent was first. Of a table that is
        # another one now neither its rows nor the source are to blame.
        if find_commit(run, entry, intent) is not None:
            return no_stats
        return _give_up(run, entry, intent, _failure(run, entry, intent, slice_, load, rows, error))
    run.notify(Step.WRITTEN, f"slice {intent.number} written")
    return stats


def _failure(
    run: RunContext[SliceT],
    entry: Entry | None,
    intent: Intent,
    slice_: SliceT,
    load: Load,
    rows: DataFrame | None,
    error: Exception,
) -> StrandlineError:
    """Return why a failed write is given up: a bad part of the source, a delete, the step, or the table.

    Raises:
        TargetError, NeedsDecision: the write may succeed later, so that its intent stays.
    """
    failure: StrandlineError | None
    try:
        failure = find_bad_part(run, intent, slice_, error)
    except SchemaEvolved as evolved:
        return evolved
    failure = failure or failed_delete(run, entry, intent, slice_, error) or failed_step(run, intent, error)
    if failure is None and not is_refused(error):
        raise write_failure(run, intent, error) from error
    failure = failure or write_refusal(run, intent, load, rows, error)
    failure.__cause__ = error
    return failure


def _target(run: RunContext[SliceT], entry: Entry | None, intent: Intent, load: Load) -> Table:
    """Return the table; in mode strict it takes columns whose types were unknown until now."""
    if run.dataflow.target.schema_mode != "strict" or isinstance(load, ReplaceAll) or not run.table.exists():
        return run.table
    if entry is None or entry.pinned is None or entry.pinned == intent.pinned:
        return run.table
    had_untyped = PinnedSchema.of(run.log.get_schema(entry.pinned)).has_untyped
    return run.table.with_schema_mode("merge") if had_untyped else run.table


def _rows_to_write(
    run: RunContext[SliceT],
    intent: Intent,
    whole: SliceT | None,
    rows: DataFrame,
    planned: Load,
    load: Load,
    *,
    is_checked: bool,
) -> DataFrame:
    """Return the rows that a slice's load takes, with the marks of those that delete their key.

    Args:
        run: the run.
        intent: the slice's intent.
        whole: the slice, whose rows may be the whole source; None if a later state of it is loaded.
        rows: all of the slice's.
        planned: the load of the definition.
        load: the load that is carried out, which may empty the table first.
        is_checked: whether a check before the intent has counted the keys that the rows lack.
    """
    if not isinstance(planned, ByKeys):
        # A slice that records failures alone adds no rows by keys. Elsewhere nothing is dropped: Spark would be asked for the columns again.
        rows = rows.drop(DELETES_COLUMN, ABSENT_COLUMN) if run.dataflow.target.merges else rows
        return without_known_events(run, rows, load)
    if intent.why == "reconcile" and whole is not None and isinstance(run.kind.writing, RepairsKeys):
        return run.kind.writing.repaired_rows(rows, whole, intent, run.table)
    latest = latest_by_key(marked_deletes(run.dataflow, rows), planned)
    if whole is not None:
        latest = with_missing_keys(run, intent, whole, latest, planned, is_checked=is_checked)
    if remembers_deletes(run, planned) or run.dataflow.source.sends_changes:
        latest = read_once(latest)
    check_log_goes_on(run, intent, latest, load)
    loaded_rows = _without_older_rows(run, bury_deleted(run, intent, latest, planned), load)
    return initial_rows(loaded_rows, planned) if isinstance(load, ReplaceAll) else loaded_rows


def _with_missing_columns(
    run: RunContext[SliceT], intent: Intent, slice_: SliceT, load: Load, rows: DataFrame
) -> Load:
    """Return a load that names the columns which the rows lack, if these keep their values.

    The source has lost these columns, or the user's step leaves them out. An upsert that is asked to keep
    them, and SCD2, do.
    """
    has_table = run.table.exists() and intent.replaces != "table"
    keeps = has_table if isinstance(load, Scd2) else isinstance(load, Upsert) and load.absent is not None
    if not isinstance(load, Scd2 | Upsert) or not keeps:
        return load
    lacking: Sequence[LackingColumn] = ()
    records_tell = isinstance(load, Upsert) and run.dataflow.source.record_support.name_fields
    if isinstance(run.kind.reading, ReportsMissingColumns) and not records_tell:
        lacking = run.kind.reading.missing_columns(run.spark, slice_, run.log.get_schema(intent.pinned))
    row_columns = {name.casefold() for name in rows.columns}
    table_columns = run.table.contents.columns() if has_table else ()
    left_out = [LackingColumn(name) for name in table_columns if name.casefold() not in row_columns]
    return replace(load, lacking=(*lacking, *left_out))


def _without_older_rows(run: RunContext[SliceT], rows: DataFrame, load: Load) -> DataFrame:
    """Return the rows without those whose key has a later row in the table."""
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


def _give_up(
    run: RunContext[SliceT], entry: Entry | None, intent: Intent, why: StrandlineError
) -> StatsReader | NotCommitted:
    """Abandon the number, unless a slow writer has committed the slice: then it counts as written."""
    abandoned = give_up(run, entry, intent, reason_of(why))
    return NotCommitted(abandoned, why) if abandoned is not None else no_stats


def reason_of(error: StrandlineError) -> str:
    """Return the reason of an abandoned number, for the log. Consequences are the policy's to describe."""
    return f"{error.part}: {error.why}" if isinstance(error, BadPart) else error.message
