"""Step 2, write: the rows of a slice, analysed before its intent, go into the table in one tagged commit (docs/protocol.md)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import (
    BadPart,
    NeedsDecision,
    RowsRefused,
    SchemaEvolved,
    StrandlineError,
    TargetError,
)
from partitions.evolution import differences
from partitions.load import Append, Lacking, Load, Replace, ReplaceAll, ReplaceKeys, Scd2, Upsert
from partitions.predicate import NOTHING, columns_of
from partitions.schema_types import all_nullable, shown
from partitions.sources.files import FilesSource
from partitions.supported import FORMATS
from partitions.table_types import VARIANT, not_held
from resources.dialects.predicates import sql
from resources.dialects.spark import SPARK
from resources.kinds.kind import SliceT, StatsReader, TellsLacking, WatchesRows, WriteStats
from resources.loop.appending import replaced_until
from resources.loop.bad_records import set_records_aside
from resources.loop.context import RunContext
from resources.loop.entries import claimed
from resources.loop.giving_up import give_up
from resources.loop.interruptions import outlasting_conflicts, outlasting_interruptions
from resources.loop.rows import repeats_query, slice_rows
from resources.loop.side_tables import write_asides
from resources.loop.verifying import find_commit
from resources.outcome import NotCommitted, Step
from resources.sources.files.pinned import PinnedSchema
from resources.spark.errors import EngineLost, SparkUnavailable
from resources.spark.failures import cause, is_of_values
from resources.spark.process import engine_lost, lacks_iceberg, server_of
from resources.tables.contract.commits import Tag
from resources.tables.contract.table import Table, TellsNextColumns, TellsRefusals
from resources.tables.folder_values import NOT_KEPT
from resources.tables.rows.deduplicate import latest_rows, without_keys_of
from resources.tables.rows.scd2 import first_versions
from resources.watermarks.entry import Entry, Intent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_ACCEPTED = {
    "strict": "schema_mode: strict accepts no change of columns",
    "merge": "schema_mode: merge accepts new columns and wider types",
    "overwrite": "schema_mode: overwrite accepts columns that the rows of the table can be cast to",
    "rescue": "schema_mode: rescue accepts what the source has, and no change of sql, transform or source.schema",
}
"""What a table takes, by its schema mode."""

_OF_COLUMNS = ("DELTA_METADATA_MISMATCH", "UNRESOLVED_COLUMN")
"""Codes of Spark's and Delta's by which columns of rows and table differ."""

_OF_TYPES = ("DELTA_MERGE_INCOMPATIBLE_DATATYPE", "DELTA_FAILED_TO_MERGE_FIELDS", "expected type ")
"""Codes of Delta's, and Strandline's own words, by which types of rows and table differ."""

_CONSTRAINTS = ("DELTA_VIOLATE_CONSTRAINT", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED")
_TWICE = ("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", "MERGE_CARDINALITY_VIOLATION")
"""Codes by which a MERGE says that it has two changes for one row: of a slice whose rows are told apart that is a version which the table has twice."""


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
        bad = _find_bad_part(run, intent, slice_, error)
        if bad is not None:
            raise bad from error
        raise StrandlineError(
            f"dataflow {run.name}: Spark cannot make the rows of slice {intent.number}: {type(error).__name__}:"
            f" {cause(error).rstrip(' .;')}. Nothing was begun. {_to_check(run.dataflow, error)}",
            code="query",
        ) from error
    return rows


def _refuse_types(run: RunContext[SliceT], intent: Intent, columns: Mapping[str, Any]) -> None:
    """Raise for a type that no table of the format holds: a number that is begun with it could be neither finished nor given up."""
    table_format = run.dataflow.target.format
    refused = not_held(table_format, columns)
    if refused is None:
        return
    name, data_type = refused
    others = [other for other in FORMATS if not_held(other, columns) is None]
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
    analysed = iter((rows,))  # which serves one attempt; each later one makes its rows again
    return outlasting_conflicts(
        lambda: outlasting_interruptions(
            lambda: _write_once(run, entry, intent, slice_, next(analysed, None))
        )
    )


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
        planned = run.kind.load(slice_, rows)
        load = (
            ReplaceAll() if intent.replaces == "table" else _with_lacking(run, intent, slice_, planned, rows)
        )
        stats: StatsReader = _no_stats
        if isinstance(run.kind, WatchesRows):
            rows, stats = run.kind.observe(rows, slice_)
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
            blamed = _find_bad_part(run, intent, slice_, error)
        except SchemaEvolved as evolved:
            return _given_up(run, entry, intent, evolved)
        blamed = blamed or _failed_step(run, intent, error)
        if blamed is None and not _is_refused(error):
            raise _failure(run, intent, error) from error
        blamed = blamed or _refusal(run, intent, load, rows, error)
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
    return run.table.taking_columns("merge") if had_untyped else run.table


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
            return first_versions(latest, planned) if isinstance(load, ReplaceAll) else latest
    return rows


def _with_lacking(
    run: RunContext[SliceT], intent: Intent, slice_: SliceT, load: Load, rows: DataFrame
) -> Load:
    """A load that keeps versions, with the columns of which rows say nothing: those that their source has lost, and those of the table that a step leaves out."""
    if not isinstance(load, Scd2) or not run.table.exists():
        return load
    told: Sequence[Lacking] = ()
    if isinstance(run.kind, TellsLacking):
        told = run.kind.lacking(run.spark, slice_, run.log.get_schema(intent.pinned))
    brought = {name.casefold() for name in rows.columns}
    left_out = [Lacking(name) for name in run.table.columns() if name.casefold() not in brought]
    return replace(load, lacking=(*told, *left_out))


def _coming(run: RunContext[SliceT], rows: DataFrame, load: Load) -> DataFrame:
    """The rows without those of keys of which the table holds later ones."""
    if not isinstance(load, ReplaceKeys) or load.later == NOTHING or not run.table.exists():
        return rows
    known = {name.casefold() for name in run.table.columns()}
    if not {name.casefold() for name in columns_of(load.later)} <= known:
        return rows  # which bring the columns: no row of the table has a value there
    held = run.table.read(run.spark, run.table.newest_version(), load.later).where(sql(load.later, SPARK))
    if load.own != NOTHING:
        held = held.where(f"NOT coalesce({sql(load.own, SPARK)}, false)")
    return without_keys_of(rows, held, load.keys, load.order)


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


def _find_bad_part(
    run: RunContext[SliceT], intent: Intent, slice_: SliceT, error: Exception
) -> BadPart | None:
    """Find the part of the source, or the input, that made Spark fail; None if it is the fault of neither.

    Raises:
        EngineLost: the engine is gone, so nothing can be told of the source.
        SparkUnavailable: the engine lacks what the dataflow's tables need.
    """
    if lost := engine_lost(error):
        raise EngineLost.of(run.name, f"slice {intent.number} was written", lost) from error
    if without := lacks_iceberg(error, server_of(run.spark)):
        raise SparkUnavailable(
            f"dataflow {run.name}: slice {intent.number} cannot be written: {without}. Nothing is lost: the next run with such an engine goes on",
            choices=("strandline doctor",),
        ) from error
    bad = run.kind.find_bad_part(run.spark, slice_, run.log.get_schema(intent.pinned), error)
    return bad or run.inputs.find_unreadable(run.spark, intent.inputs or {}, error)


def _failed_step(run: RunContext[SliceT], intent: Intent, error: Exception) -> StrandlineError | None:
    """What an error says of the user's query, function or options, with which a read fails over some row every time; None if it does not come from them."""
    steps = [name for name in ("transform", "sql") if getattr(run.dataflow, name)]
    if isinstance(run.dataflow.source, FilesSource) and run.dataflow.source.options:
        steps.append("source.options")
    if not steps or _has(error, (*_TWICE, *_CONSTRAINTS)) or not is_of_values(error):
        return None
    return StrandlineError(
        f"dataflow {run.name}: {' or '.join(steps)} fails over the rows of slice {intent.number}: {cause(error).rstrip(' .;')}. Nothing of the slice was"
        f" loaded, and its number was given up: correct {' or '.join(steps)}, or the rows at the source, and run again",
        code="query",
    )


def _is_refused(error: Exception) -> bool:
    """Whether Spark or the table refused a write, as it would every time, before anything was committed."""
    from pyspark.errors import AnalysisException

    return isinstance(error, (AnalysisException, RowsRefused)) or _has(error, _CONSTRAINTS)


def _has(error: Exception, codes: Sequence[str]) -> bool:
    return any(code in str(error) for code in codes)


def _failure(run: RunContext[SliceT], intent: Intent, error: Exception) -> StrandlineError:
    """The error of a write that was not refused for good: its slice stays open."""
    if _has(error, _TWICE):
        return NeedsDecision(
            f"dataflow {run.name}: table {run.dataflow.table}: expected each version of a key once, found one that slice {intent.number} ends or corrects"
            " several times: another writer has added rows that were there. Nothing is lost. Delete the rows that are too many, or RESTORE the table to the"
            " version before them: the next run finishes the slice then; or empty the table and load its history again",
            code="versions_twice",
            choices=(
                f"strandline run {run.name}",
                f"strandline state reset {run.name} --replace --reason TEXT",
            ),
        )
    return TargetError(
        f"dataflow {run.name}: the write of slice {intent.number} into table {run.dataflow.table} failed:"
        f" {cause(error).rstrip(' .;')}. Nothing is lost: the next run finishes it"
    )


def _refusal(
    run: RunContext[SliceT], intent: Intent, load: Load, rows: DataFrame | None, error: Exception
) -> TargetError:
    reload = f"strandline state reset {run.name} --replace --reason TEXT"
    table, mode = run.table, run.dataflow.target.schema_mode
    if isinstance(load, Replace) and isinstance(table, TellsRefusals) and table.refuses_rows_outside(error):
        columns = columns_of(load.where)
        return TargetError(
            f"dataflow {run.name}: rows of slice {intent.number} are not among those that it replaces in table {run.dataflow.table}: sql or"
            f" transform has moved them out of the window, unit or file that they were read from. Mend it, so that the values of"
            f" {', '.join(columns)} stay within it. If earlier runs have loaded such rows, run the reset below then, which loads the table again",
            choices=(reload,),
        )
    if isinstance(error, RowsRefused) and error.code == NOT_KEPT:
        return TargetError(
            f"dataflow {run.name}: table {run.dataflow.table} does not take the rows of slice {intent.number}: {error.message}",
            code=NOT_KEPT,
        )
    refuses = f"dataflow {run.name}: table {run.dataflow.table} refuses the rows of slice {intent.number}: {cause(error).rstrip(' .;')}."
    if _has(error, _CONSTRAINTS):
        return TargetError(
            f"{refuses} The condition is another writer's. Leave such rows out or mend them, by sql or at the source; or take the condition from the table"
            " (ALTER TABLE … DROP CONSTRAINT)"
        )
    if mode != "merge" and _has(error, _OF_TYPES) and (widened := _widened_columns(table, rows)):
        return TargetError(
            f"dataflow {run.name}: table {run.dataflow.table} does not take the rows of slice {intent.number}: {widened}: another writer has widened the table."
            f" Set `schema_mode: merge` below `target`{', in each file of the table,' if run.dataflow.target.shared else ''} which takes rows of narrower types"
        )
    refused = f"{refuses}{_other_columns(table, rows, error)} {_ACCEPTED[mode]}"
    if run.dataflow.target.shared:
        merge = (
            ""
            if mode == "merge"
            else "set schema_mode: merge in each file of the table, which takes new columns; or "
        )
        return TargetError(
            f"{refused}, and a reset leaves the columns of a table that holds rows of other dataflows. To go on, {merge}give the rows the table's"
            " columns, by source.schema or sql; or use another target.table"
        )
    return TargetError(
        f"{refused}: put the old definition back; or empty the table and load it again",
        choices=(reload,),
    )


def _widened_columns(table: Table, rows: DataFrame | None) -> str:
    """Name the columns whose types hold all values of the rows' narrower ones; "" if there are none, or rows and table differ in other ways."""
    if isinstance(table, TellsNextColumns):
        there = table.next_columns()
    else:
        _, there = table.schema() or (None, None)
    if rows is None or there is None:
        return ""
    changes = [
        change
        for change in differences(json.loads(there), all_nullable(rows.schema.jsonValue()))
        if change.found is not None and change.was != change.found
    ]
    if not all(change.narrows for change in changes):
        return ""
    told = (
        f"column {change.field} is {shown(change.was)} there and {shown(change.found)} in the rows"
        for change in changes
    )
    return "; ".join(told)


def _other_columns(table: Table, rows: DataFrame | None, error: Exception) -> str:
    """A sentence that names the columns by which rows and table differ, where Delta says at most the first of them; "" if another thing is wrong."""
    if rows is None or not _has(error, _OF_COLUMNS):
        return ""
    there, coming = table.columns(), dict(rows.dtypes)
    known, brought = {name.casefold() for name in there}, {name.casefold() for name in coming}
    new = [f"{name} {kind}" for name, kind in coming.items() if name.casefold() not in known]
    lacking = [name for name in there if name.casefold() not in brought]
    said = [
        *([f"the rows have {', '.join(new)}, which the table lacks"] if new else []),
        *([f"the table has {', '.join(lacking)}, which the rows lack"] if lacking else []),
    ]
    return f" Of their columns, {'; '.join(said)}." if said else ""
