"""Why a write failed: the source, the user's query, the table's rules, or another writer.

See docs/explanation/protocol.md.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.errors import (
    BadPart,
    NeedsDecision,
    RowsRefused,
    StrandlineError,
    TargetError,
)
from partitions.evolution import schema_changes
from partitions.loads import Load, Replace
from partitions.predicate import columns_of
from partitions.schema_types import all_nullable, type_text
from partitions.sources.files import FilesSource
from partitions.target import HELPER_PREFIX
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.spark.errors import EngineLost, SparkUnavailable
from resources.spark.failures import fails_on_values, root_cause
from resources.spark.process import describe_engine_loss, missing_iceberg, server_of
from resources.tables.contract.contents import TellsNextColumns
from resources.tables.contract.table import Table, TellsRefusals
from resources.tables.folder_values import PARTITION_VALUE
from resources.watermarks.entry import Intent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


_ACCEPTED_BY_MODE = {
    "strict": "schema_mode: strict accepts no change of columns",
    "merge": "schema_mode: merge accepts new columns and wider types",
    "overwrite": "schema_mode: overwrite accepts columns that the table's rows can be cast to",
    "rescue": "schema_mode: rescue accepts changes at the source, but none of sql, transform or source.schema",
}
"""What a table takes, by its schema mode."""


_COLUMN_CODES = ("DELTA_METADATA_MISMATCH", "UNRESOLVED_COLUMN")
"""Codes of Spark's and Delta's by which columns of rows and table differ."""


_TYPE_CODES = ("DELTA_MERGE_INCOMPATIBLE_DATATYPE", "DELTA_FAILED_TO_MERGE_FIELDS", "expected type ")
"""Codes of Delta's, and Strandline's own words, by which types of rows and table differ."""


_CONSTRAINT_CODES = ("DELTA_VIOLATE_CONSTRAINT", "DELTA_NOT_NULL_CONSTRAINT_VIOLATED")


_DUPLICATE_CODES = ("DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE", "MERGE_CARDINALITY_VIOLATION")
"""Codes of a MERGE with two changes for one row. A slice has each version once, so the table has the version twice."""


def find_bad_part(
    run: RunContext[SliceT], intent: Intent, slice_: SliceT, error: Exception
) -> BadPart | None:
    """Return the part of the source or of an input that made Spark fail; None if neither did.

    Raises:
        SchemaEvolved: a number needs a wider type, which the schema mode accepts.
        EngineLost: the engine is gone, so the source cannot be checked.
        SparkUnavailable: the engine lacks what the dataflow's tables need.
    """
    if problem := describe_engine_loss(error):
        raise EngineLost.of(run.name, f"slice {intent.number} was being written", problem) from error
    if lack := missing_iceberg(error, server_of(run.spark)):
        raise SparkUnavailable(
            f"dataflow {run.name}: slice {intent.number} cannot be written: {lack}. No data is lost: the "
            "next run on such an engine finishes the slice",
            choices=("strandline doctor",),
        ) from error
    bad = run.kind.bad_parts.find(run.spark, slice_, run.log.get_schema(intent.pinned), error)
    return bad or run.inputs.find_unreadable(run.spark, intent.inputs or {}, error)


def failed_step(run: RunContext[SliceT], intent: Intent, error: Exception) -> StrandlineError | None:
    """Return the error if the user's query, function or options fail on some row; else None.

    Such a write fails each time it is tried.
    """
    steps = [name for name in ("transform", "sql", "operators") if getattr(run.dataflow, name)]
    if isinstance(run.dataflow.source, FilesSource) and run.dataflow.source.options:
        steps.append("source.options")
    if run.dataflow.target.delete_when:
        steps.append("target.delete_when")
    if not steps or _mentions(error, (*_DUPLICATE_CODES, *_CONSTRAINT_CODES)) or not fails_on_values(error):
        return None
    step_names = " or ".join(steps)
    remedy = f"correct {step_names}, or the rows at the source, and run again"
    if run.dataflow.operators:
        remedy = (
            "correct the rows at the source and run again, if they came with this slice. Otherwise "
            f"correct them, or {step_names}, and read the source again from its start: `strandline state "
            f"reset {run.name} --replace --reason TEXT`"
        )
    verb = "fail" if steps == ["operators"] else "fails"
    return StrandlineError(
        f"dataflow {run.name}: {step_names} {verb} on rows of slice {intent.number}: "
        f"{root_cause(error).rstrip(' .;')}. The slice was not loaded, and its number was abandoned. To "
        f"go on, {remedy}",
        code="query",
    )


def is_refused(error: Exception) -> bool:
    """Return whether Spark or the table refused a write before any commit, as it would each time."""
    from pyspark.errors import AnalysisException

    return isinstance(error, (AnalysisException, RowsRefused)) or _mentions(error, _CONSTRAINT_CODES)


def _mentions(error: Exception, codes: Sequence[str]) -> bool:
    return any(code in str(error) for code in codes)


def write_failure(run: RunContext[SliceT], intent: Intent, error: Exception) -> StrandlineError:
    """Return the error of a write that may succeed later: its intent stays open."""
    if _mentions(error, _DUPLICATE_CODES):
        return NeedsDecision(
            f"dataflow {run.name}: table {run.dataflow.table}: expected each version of a key once, found "
            f"one that slice {intent.number} ends or corrects several times: another writer has added "
            "duplicate rows. No data is lost. Delete the duplicates, or RESTORE the table to the version "
            "before them: the next run then finishes the slice. Or empty the table and load its history "
            "again",
            code="versions_twice",
            choices=(
                f"strandline run {run.name}",
                f"strandline state reset {run.name} --replace --reason TEXT",
            ),
        )
    return TargetError(
        f"dataflow {run.name}: the write of slice {intent.number} into table {run.dataflow.table} failed: "
        f"{root_cause(error).rstrip(' .;')}. No data is lost: the next run finishes the slice"
    )


def _describe_parts(run: RunContext[SliceT]) -> str:
    """Return what to do if the rows are sums of a part of a window; "" if no part is read alone."""
    remedy = run.dataflow.watermark.whole_windows
    return (
        f"If they are sums of a window that was read in parts, set {remedy}, and run again. Else: "
        if remedy
        else ""
    )


def write_refusal(
    run: RunContext[SliceT], intent: Intent, load: Load, rows: DataFrame | None, error: Exception
) -> TargetError:
    """Return the error for rows that the table will never accept, with what to change."""
    table, mode = run.table, run.dataflow.target.schema_mode
    if isinstance(load, Replace) and isinstance(table, TellsRefusals) and table.refuses_rows_outside(error):
        return _refusal_of_moved_rows(run, intent, load)
    of_slice = f"dataflow {run.name}: table {run.dataflow.table} refuses the rows of slice {intent.number}:"
    if isinstance(error, RowsRefused) and error.code == PARTITION_VALUE:
        return TargetError(f"{of_slice} {error.message}", code=PARTITION_VALUE)
    refuses = f"{of_slice} {root_cause(error).rstrip(' .;')}."
    if _mentions(error, _CONSTRAINT_CODES):
        return TargetError(
            f"{refuses} Another writer set this constraint. Leave out or correct such rows, in sql or at "
            "the source; or drop the constraint (ALTER TABLE … DROP CONSTRAINT)"
        )
    if mode != "merge" and _mentions(error, _TYPE_CODES) and (widened := _widened_columns(table, rows)):
        in_each = ", in each file of the table," if run.dataflow.target.shared else ""
        return TargetError(
            f"{of_slice} {widened}. Another writer has widened the table. Set `schema_mode: merge` below "
            f"`target`{in_each} to load rows of narrower types"
        )
    added = _added_columns(table, rows)
    if mode in ("strict", "rescue") and added and not run.dataflow.target.shared:
        return _refusal_of_new_columns(run, intent, added)
    return _refusal_of_columns(
        run, f"{refuses}{_other_columns(table, rows, error)} {_ACCEPTED_BY_MODE[mode]}"
    )


def _reset(run: RunContext[SliceT]) -> str:
    return f"strandline state reset {run.name} --replace --reason TEXT"


def _refusal_of_moved_rows(run: RunContext[SliceT], intent: Intent, load: Replace) -> TargetError:
    return TargetError(
        f"dataflow {run.name}: table {run.dataflow.table} refuses rows of slice {intent.number}: sql "
        "or transform moved them out of the window, unit or file that they were read from. "
        f"{_describe_parts(run)}Correct "
        f"it, so that the values of {', '.join(columns_of(load.where))} stay within that part. If earlier runs have "
        "loaded such rows, then run the reset below, which reloads the table",
        choices=(_reset(run),),
    )


def _refusal_of_new_columns(run: RunContext[SliceT], intent: Intent, added: Sequence[str]) -> TargetError:
    columns, them = ("a new column", "it") if len(added) == 1 else ("new columns", "them")
    return TargetError(
        f"dataflow {run.name}: table {run.dataflow.table}: expected rows with its columns, found "
        f"{columns} in the rows of slice {intent.number}: {', '.join(added)}. To add "
        f"{them}, set `schema_mode: merge` below `target`; or restore the old definition; or empty the "
        "table and load it again",
        code="incompatible_schema",
        choices=(_reset(run),),
    )


def _refusal_of_columns(run: RunContext[SliceT], refused: str) -> TargetError:
    if not run.dataflow.target.shared:
        return TargetError(
            f"{refused}. Restore the old definition; or empty the table and load it again",
            choices=(_reset(run),),
        )
    merge = "set schema_mode: merge in each file of the table, which accepts new columns; or "
    return TargetError(
        f"{refused}. A reset does not change the columns of a table that also holds rows of other "
        f"dataflows. To go on, {'' if run.dataflow.target.schema_mode == 'merge' else merge}give the rows the "
        "table's columns, with source.schema or sql; or use another target.table"
    )


def _widened_columns(table: Table, rows: DataFrame | None) -> str:
    """Name the columns that the table stores in wider types; "" if rows and table differ otherwise, too."""
    contents = table.contents
    if isinstance(contents, TellsNextColumns):
        table_schema = contents.next_columns()
    else:
        _, table_schema = contents.schema() or (None, None)
    if rows is None or table_schema is None:
        return ""
    changes = [
        change
        for change in schema_changes(json.loads(table_schema), all_nullable(rows.schema.jsonValue()))
        if change.new_type is not None and change.old_type != change.new_type
    ]
    if not all(change.narrows for change in changes):
        return ""
    descriptions = (
        f"column {change.field} is {type_text(change.old_type)} in the table and "
        f"{type_text(change.new_type)} in the rows"
        for change in changes
    )
    return "; ".join(descriptions)


def _added_columns(table: Table, rows: DataFrame | None) -> list[str]:
    """Return the columns, with their types, that only the rows have; none without rows or table."""
    if rows is None or not table.exists():
        return []
    table_names = {name.casefold() for name in table.contents.columns()}
    return [
        f"{name} {data_type}"
        for name, data_type in rows.dtypes
        if name.casefold() not in table_names and not name.startswith(HELPER_PREFIX)
    ]


def _other_columns(table: Table, rows: DataFrame | None, error: Exception) -> str:
    """Name the columns that only the rows or only the table have; "" if the error is another one.

    Delta itself names at most the first of them.
    """
    if rows is None or not _mentions(error, _COLUMN_CODES):
        return ""
    new = _added_columns(table, rows)
    row_names = {name.casefold() for name in rows.columns}
    lacking = [name for name in table.contents.columns() if name.casefold() not in row_names]
    sentences = [
        *([f"the rows have {', '.join(new)}, which the table lacks"] if new else []),
        *([f"the table has {', '.join(lacking)}, which the rows lack"] if lacking else []),
    ]
    return f" Columns: {'; '.join(sentences)}." if sentences else ""
