"""The commit of a delete: one number of the protocol whose write only deletes rows.

Its intent holds the condition and the deletes in force after it, so that whoever finds it open finishes it:
the next run, or the next decision (docs/explanation/protocol.md, Deletes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, Conflict, RowsRefused, StrandlineError, TargetError
from partitions.fingerprint import fingerprint
from partitions.loads import Replace
from partitions.plan import pluralize
from partitions.predicate import Between, Predicate, SqlCondition, all_of
from partitions.sentinels import deserialise, serialise
from partitions.sql_condition import bounds_of, named_columns
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.loop.appending import append, append_abandoned, follow_up
from resources.loop.context import RunContext
from resources.loop.entries import deleted_entry, required_commit
from resources.loop.giving_up import give_up
from resources.loop.guards.definition import definition_of
from resources.loop.intents import holding, put_intent
from resources.loop.rows.deletes_of_table import put_deletes_of_table
from resources.loop.verifying import check_log, find_commit, guarded_head, verified_commit
from resources.outcome import Step
from resources.spark.failures import fails_on_values, root_cause
from resources.tables.contract.commits import Tag, TaggedCommit, Version
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.watermarks import holder as holders
from resources.watermarks.deleted_rows import DeleteInForce, deletes_in_force, put_deletes, stored_deletes
from resources.watermarks.entry import Entry, Intent, new_id, utc_now


def commit_delete(
    run: RunContext[Any], entry: Entry, predicate: str, columns: Mapping[str, str], reason: str
) -> Entry:
    """Delete rows under the number after an entry, and keep the condition in force; return the new entry.

    Args:
        run: the run of the dataflow.
        entry: the newest entry.
        predicate: condition in Spark's SQL, which fits the table.
        columns: types of the columns that it names, by name.
        reason: the operator's reason.

    Raises:
        NeedsDecision: state and table do not match.
        Conflict, DataflowHeld: another run was faster, or works on the number.
        TargetError: the write failed. Unless the message says otherwise, the next run finishes the delete.
        ConfigurationError: code ``predicate``: the condition fails on a row; the number is given up.
    """
    number, intent_id, time = entry.number + 1, new_id(), utc_now()
    in_force = deletes_in_force(run.log, entry)
    deletes = [*in_force, DeleteInForce(number, predicate, columns, reason, time)]
    key = put_deletes(run.log, run.name, f"{number:010d}-{intent_id}", deletes)
    run.notify(Step.LIST_KEPT, f"{pluralize(len(deletes), 'delete')} in force")
    how: dict[str, Any] = {"id": intent_id, "time": time, "reason": reason, "predicate": predicate}
    intent = _begin(run, entry, why="delete", deletes=key, **how)
    return finish_delete(run, entry, intent)


def commit_expiry(run: RunContext[Any], entry: Entry, rows: Between, reason: str) -> Entry:
    """Delete rows that are too old for the retention, under the next number; return the new entry.

    The deletes in force stay as they are.

    Args:
        run: the run of the dataflow.
        entry: the newest entry.
        rows: rows below a bound.
        reason: the retention, for people.

    Raises:
        NeedsDecision, Conflict, DataflowHeld, TargetError: as :func:`commit_delete`.
    """
    how: dict[str, Any] = {"id": new_id(), "time": utc_now(), "reason": reason}
    bound, predicate = serialise({rows.column: rows.upper}), predicate_sql(rows, SPARK)
    intent = _begin(run, entry, why="expire", deletes=entry.deletes, upper=bound, predicate=predicate, **how)
    return finish_delete(run, entry, intent)


def _begin(run: RunContext[Any], entry: Entry, **fields: Any) -> Intent:
    """Put the intent of the number after an entry, under which rows are deleted; return it.

    Args:
        run: the run of the dataflow.
        entry: the newest entry.
        fields: fields of :class:`Intent` that say what is deleted, and why.
    """
    head = guarded_head(run, entry)
    follow_up(run, entry)
    intent = Intent(
        number=entry.number + 1,
        dataflow=run.name,
        kind=run.dataflow.kind,
        app_id=entry.app_id,
        before=entry.watermark,
        watermark=entry.watermark,
        definition=definition_of(run.dataflow),
        fingerprint=fingerprint(run.dataflow),
        pinned=entry.pinned or "",
        file_list="",
        holder=holders.current_holder(run.run_id),
        run_id=run.run_id,
        table_version=head.version,
        **fields,
    )
    put_intent(run, intent, f"delete of rows where {intent.predicate}")
    return intent


def finish_delete(run: RunContext[Any], entry: Entry | None, intent: Intent) -> Entry:
    """Finish the delete of an intent: look up its commit, write it if it is missing, append its entry.

    Raises:
        NeedsDecision, Conflict, TargetError, ConfigurationError: as :func:`commit_delete`.
    """
    with holding(run, intent):
        if find_commit(run, entry, intent) is None:
            _write(run, entry, intent)
            run.notify(Step.WRITTEN, f"delete {intent.number} written")
        commit = verified_commit(run, entry, intent)
        if commit.owner != intent.id:  # the table holds the number for a fence, which must still be recorded
            append_abandoned(run, entry, intent, commit, "abandoned by another run")
            raise Conflict(
                f"dataflow {run.name}: another run abandoned the delete under number {intent.number}. No "
                "row was deleted. Run the delete again"
            )
        run.notify(Step.VERIFIED, f"delete {intent.number} is version {commit.version} of the table")
        check_log(run, intent)
        if intent.deletes is not None:
            put_deletes_of_table(run.table, intent.app_id, stored_deletes(run.log, intent.deletes))
        appended = append(run, foreseen_delete(run, entry, intent, commit))
        run.notify(Step.APPENDED, f"delete {intent.number}: {pluralize(appended.deleted, 'row')} deleted")
        return appended


def foreseen_delete(
    run: RunContext[Any], entry: Entry | None, intent: Intent, commit: TaggedCommit | None
) -> Entry:
    """Return the entry that :func:`finish_delete` appends; without a commit it counts no deleted row."""
    counted = commit and run.table.complete_counts(commit, entry.total_rows if entry else 0)
    return deleted_entry(run.dataflow, entry, intent, counted, run.job_id)


def _write(run: RunContext[Any], entry: Entry | None, intent: Intent) -> None:
    """Delete the rows of an intent in one tagged commit.

    Raises:
        TargetError: the write failed. If trying again cannot help, the number is given up.
        ConfigurationError: code ``predicate``: the condition fails on a row; the number is given up.
    """
    from pyspark.errors import AnalysisException

    try:
        retry_conflicts(lambda: _delete_once(run, entry, intent))
    except Exception as error:
        if find_commit(run, entry, intent) is not None:  # the commit has landed although its answer did not
            return
        failure = (
            f"dataflow {run.name}: deleting rows of {run.dataflow.table} failed: "
            f"{root_cause(error).rstrip(' .;')}"
        )
        has_bad_row = intent.why == "delete" and fails_on_values(error)
        if has_bad_row or isinstance(error, AnalysisException | RowsRefused):
            if give_up(run, entry, intent, failure) is None:
                return
            if has_bad_row:
                raise fails_on_a_row(run.dataflow, error) from error
            remedy = (
                "No row was deleted. Correct target.retention"
                if intent.why == "expire"
                else "No row was deleted, and the delete is not in force. Correct --where, and run the delete again"
            )
            raise TargetError(f"{failure}. {remedy}") from error
        if isinstance(error, StrandlineError):
            raise
        raise TargetError(
            f"{failure}. The delete stays open: the next run or decision finishes it"
        ) from error


def _delete_once(run: RunContext[Any], entry: Entry | None, intent: Intent) -> None:
    assert intent.predicate is not None
    table = run.table
    tag = Tag(
        intent.app_id, intent.number, intent.id, after=required_commit(entry), writer=run.writer, deletes=True
    )
    newest: Version = table.contents.newest_version()
    no_rows = table.contents.read(run.spark, newest).limit(0)
    where = _rows_to_delete(intent, dict(no_rows.dtypes))
    table.write(no_rows, Replace(where), tag, intent.watermark, base=intent.table_version)


def _rows_to_delete(intent: Intent, types: Mapping[str, str]) -> Predicate:
    """Return the predicate of the rows that an intent deletes, with bounds by which files are skipped.

    Statistics alone find the rows of an expiry.

    Args:
        intent: the intent of a delete.
        types: types of the table's columns by name, in Spark's words.
    """
    assert intent.predicate is not None
    if intent.why == "expire" and intent.upper is not None:
        ((column, bound),) = deserialise(intent.upper).items()
        return Between(column, None, bound)
    condition = SqlCondition(intent.predicate, named_columns(intent.predicate, [*types]))
    return all_of((bounds_of(intent.predicate, types), condition))


def fails_on_a_row(dataflow: Dataflow, error: Exception) -> ConfigurationError:
    """Return the error for a condition that fails on a row of the table."""
    return refused_condition(
        dataflow,
        f"a condition that has a value for each row of {dataflow.table}",
        root_cause(error),
        "Correct --where, such as with try_cast(… AS …) for CAST, or try_divide(…, …) for /",
    )


def refused_condition(
    dataflow: Dataflow, expected: str, actual: str, remedy: str = "Correct --where"
) -> ConfigurationError:
    """Return the error for a condition by which nothing was deleted."""
    return ConfigurationError(
        f"dataflow {dataflow.name}: --where: expected {expected}, found {actual.rstrip(' .;')}. Nothing was deleted. {remedy}",
        code="predicate",
    )


def forgotten(deletes: Sequence[DeleteInForce], predicate: str) -> tuple[DeleteInForce, ...]:
    """Return the deletes that stay in force once all deletes of one condition have ended."""
    return tuple(delete for delete in deletes if delete.predicate != predicate)
