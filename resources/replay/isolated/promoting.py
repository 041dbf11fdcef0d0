"""Promote: swap an isolated replay's rows into the live table, in one commit.

The commit takes the live dataflow's next number. The steps are those of the protocol
(docs/explanation/protocol.md): intent, write, verify, entry. The intent's id is derived from the replay's,
so its entry shows whether the replay is promoted, whoever died when. A run that finds the intent ends it,
as a decision would; the same command then takes the next number, or only removes the isolated table.

See docs/reference/replay.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import (
    Conflict,
    NeedsDecision,
    RowsRefused,
    StrandlineError,
    TargetError,
)
from partitions.fingerprint import fingerprint
from partitions.loads import Replace
from partitions.plan import pluralize
from partitions.predicate import EVERYTHING, Among, Predicate
from partitions.sentinels import serialise
from partitions.table_names import TOMBSTONES
from partitions.target import DATAFLOW_COLUMN, Target
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.loop.appending import append_loaded, follow_up
from resources.loop.context import RunContext
from resources.loop.ending import end_abandoned
from resources.loop.entries import required_commit
from resources.loop.giving_up import give_up
from resources.loop.guards.definition import check_definition, definition_of
from resources.loop.holder_wait import abandoned_intent
from resources.loop.intents import first_loads, holding, put_intent
from resources.loop.rows.optional_columns import optional_columns
from resources.loop.rows.retention import check_rules, hold_back_rows
from resources.loop.rows.tombstones import without_buried
from resources.loop.rules.rejected_rows import promote_rejected
from resources.loop.verifying import check_log, find_commit, guarded_head, verified_commit
from resources.outcome import Observer, Step
from resources.platform.opener import Opener
from resources.replay.isolated.chunks import StoredChunks, chunks_of, first_missing, stored_chunks
from resources.replay.isolated.definition import check_same_definition
from resources.replay.isolated.promoted_entries import entries_since, promoted_entry
from resources.replay.isolated.refusals import without_chunks
from resources.replay.isolated.removing import remove_replay
from resources.replay.isolated.standing import (
    REJECTED_SUFFIX,
    IsolatedReplay,
    drop_command,
    find_replay,
    is_marked,
    mark,
    replay_command,
)
from resources.replay.isolated.unchanged import check_unchanged
from resources.replay.kind import Swap
from resources.spark.failures import root_cause
from resources.tables.contract.commits import Tag, Version
from resources.tables.contract.conflict_retries import retry_conflicts
from resources.tables.contract.table import Table
from resources.tables.registry import find_table
from resources.tables.rows.deduplicate import drop_shared_keys
from resources.watermarks import holder as holders
from resources.watermarks.entry import Entry, Intent, check_reason, new_id, utc_now
from resources.watermarks.log import WatermarkLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Promoted:
    """The result of a promote.

    Attributes:
        entry: the entry in the live log.
        isolated: the promoted replay, which is removed.
    """

    entry: Entry
    isolated: IsolatedReplay


def preview_promote(platform: Opener, dataflow: Dataflow, table: str) -> tuple[str, ...]:
    """Describe a promote in sentences. Changes nothing, starts no Spark.

    Raises:
        ConfigurationError, NeedsDecision: as :func:`promote_replay`.
    """
    log = platform.log
    isolated = find_replay(log, dataflow.name, table)
    entry = log.newest(dataflow.name)
    if promoted_entry(log, isolated, entry) is not None:
        return (f"the replay is already promoted; table {table} and its log are removed",)
    swap, _ = _checked_swap(platform, dataflow, isolated, entry)
    replay_table = find_table(platform.lake.child(isolated.table))
    replay = platform.replay(dataflow, isolated.options, isolated.began)
    lines = [
        f"{swap.amount} go from {dataflow.table}, and {'at most ' if swap.stays else ''}{pluralize(replay_table.contents.count_rows(), 'row')} of {table} come, in one commit",
        "rows outside of the range stay, and so does the watermark",
        *swap.stays,
        *(stored_chunks(log, isolated) or StoredChunks()).warnings,
        *replay.describe_lost_rows(platform.with_intent_ended(dataflow, isolated.began)),
        f"then table {table} and its log are removed",
    ]
    if _replaces_keys(dataflow.target):
        keys = ", ".join(dataflow.target.merge_keys)
        lines.insert(
            1,
            f"a row of {table} is not inserted if {dataflow.table} holds its key ({keys}) outside of the range",
        )
    return tuple(lines)


def promote_replay(
    platform: Opener,
    dataflow: Dataflow,
    table: str,
    reason: str,
    now: datetime,
    *,
    run_id: str | None = None,
    job_id: str | None = None,
    observer: Observer = lambda step, line: None,
    **patience: Any,
) -> Promoted:
    """Swap a replay's rows in, or finish the promote of a process that died.

    Args:
        platform: the resources.
        dataflow: the live dataflow.
        table: the replay's table.
        reason: the operator's reason; stays in the log.
        now: the clock, aware.
        run_id: Dagster's run id, if the run is Dagster's.
        job_id: Dagster's job.
        observer: is called at each step.
        patience: attributes of :class:`resources.loop.holder_wait.HolderPolicy`, for a live run.

    Raises:
        ConfigurationError: there is no such replay, or no reason.
        NeedsDecision: the replay is unfinished, it is unknown whether it was promoted before, or state and
            table do not match.
        DataflowHeld: a run still works on the dataflow or on the replay.
        Conflict: a run was faster.
        TargetError: the write failed; nothing is lost, and the same command continues.
    """
    check_reason(dataflow.name, reason)
    log = platform.log
    isolated = find_replay(log, dataflow.name, table)
    loop = platform.loop(dataflow, now, run_id=run_id, job_id=job_id, observer=observer, **patience)
    run = loop.context
    entry = end_abandoned(run, loop.holder_policy, "a promote", reason)
    promoted = promoted_entry(log, isolated, entry)
    if promoted is None:
        check_definition(dataflow, entry, log)
        swap, version = _checked_swap(platform, dataflow, isolated, entry)
        # It is finished, but may be at work still: its last chunks, if they were empty, are looked at again.
        replay_loop = platform.loop(isolated.loading_dataflow(dataflow), now, **patience)
        abandoned_intent(replay_loop.context, log.newest(isolated.log), replay_loop.holder_policy)
        rejected = find_table(platform.lake.child(f"{isolated.table}{REJECTED_SUFFIX}"))
        rows = _ReplayRows(find_table(platform.lake.child(isolated.table)), version, rejected)
        promoted = _swap(run, isolated, rows, entry, swap, reason)
    remove_replay(platform, dataflow, isolated, observer)
    return Promoted(promoted, isolated)


@dataclass(frozen=True)
class _ReplayRows:
    """The rows of a complete replay, at the version that was checked.

    Later changes of its table put no other rows into the live table.

    Attributes:
        table: the isolated table.
        version: its version; None if no chunk had rows, in which case there may be no table.
        rejected: the table of its rejected rows, which need not exist.
    """

    table: Table
    version: Version | None
    rejected: Table

    def read(self, run: RunContext[Any], where: Predicate = EVERYTHING) -> DataFrame:
        """Return the rows; without a version, no rows with the live table's columns."""
        if self.version is None:
            return run.table.contents.read(run.spark, run.table.contents.newest_version()).limit(0)
        return self.table.contents.read(run.spark, self.version, where)


def _checked_swap(
    platform: Opener, dataflow: Dataflow, isolated: IsolatedReplay, entry: Entry | None
) -> tuple[Swap, Version | None]:
    """Return what a promote swaps, and the version of the isolated table that it reads.

    Raises:
        NeedsDecision: the replay cannot be promoted as it is.
    """
    log = platform.log
    _check_complete(log, isolated)
    check_same_definition(dataflow, isolated)
    if not chunks_of(log, isolated):
        raise without_chunks(isolated)
    version = check_unchanged(platform, dataflow, isolated)
    swap = platform.replay(dataflow, isolated.options, isolated.began).swap(
        isolated, entry, entries_since(log, isolated)
    )
    # Once more: a drop marks the replay before it removes anything, so what was found here was not half removed.
    _check_complete(log, isolated)
    return swap, version


def _check_complete(log: WatermarkLog, isolated: IsolatedReplay) -> None:
    """Raise NeedsDecision if a replay is not complete, or is being dropped."""
    if is_marked(log, isolated, "dropping"):
        raise NeedsDecision(
            f"dataflow {isolated.dataflow}: a drop of {isolated.table} is unfinished, so rows may be missing. Finish the drop",
            code="replay_dropping",
            choices=(drop_command(isolated),),
        )
    if not is_marked(log, isolated, "complete"):
        raise NeedsDecision(
            f"dataflow {isolated.dataflow}: the replay of {isolated.words} into {isolated.table} is unfinished: chunk {first_missing(log, isolated)} is missing. Continue it, or"
            " drop it",
            code="replay_unfinished",
            choices=(replay_command(isolated), drop_command(isolated)),
        )


def _swap(
    run: RunContext[Any],
    isolated: IsolatedReplay,
    rows: _ReplayRows,
    entry: Entry | None,
    swap: Swap,
    reason: str,
) -> Entry:
    """Commit the swap under the next number of the live log; return its entry."""
    log = run.log
    head = guarded_head(run, entry)
    follow_up(run, entry)
    intent = _intent(run, isolated, entry, swap, head.version, reason)
    all_rows = rows.read(run)
    check_rules(run, all_rows, entry, optional_columns(run, intent, None, all_rows))
    # Before the intent: whoever finds the promote's entry gone knows that there may have been one.
    mark(log, isolated, "promoting")
    put_intent(run, intent, f"{isolated.words} of {isolated.table}")
    with holding(run, intent):
        try:
            retry_conflicts(lambda: _write(run, rows, intent, entry, swap))
        except Exception as error:  # noqa: BLE001 - raised there, unless the write has landed all the same
            _check_failed_write(run, intent, entry, error)
        run.notify(Step.WRITTEN, f"slice {intent.number} written")
        tagged = verified_commit(run, entry, intent)
        if tagged.owner != intent.id:
            raise Conflict(
                f"dataflow {run.name}: another run abandoned number {intent.number} while {isolated.table} was promoted. The table is unchanged. Promote"
                " again"
            )
        run.notify(Step.VERIFIED, f"slice {intent.number} is version {tagged.version} of the table")
        check_log(run, intent)
        appended, commit, _ = append_loaded(run, entry, intent, tagged)
        run.notify(
            Step.APPENDED, f"slice {intent.number}: {pluralize(commit.rows, 'row')} of {isolated.table}"
        )
    return appended


def _write(run: RunContext[Any], rows: _ReplayRows, intent: Intent, entry: Entry | None, swap: Swap) -> None:
    tag = Tag(intent.app_id, intent.number, intent.id, after=required_commit(entry), writer=run.writer)
    where = swap.where(rows.read(run))
    # The deletes of now: some may be younger than the replay.
    new_rows = _rows_to_insert(run, rows, where)
    if TOMBSTONES in run.sides:
        new_rows = without_buried(run, intent, new_rows, run.kind.writing.load(swap.slice, new_rows))
    new_rows = hold_back_rows(
        run, new_rows, entry, optional_columns(run, intent, None, new_rows), intent.number
    )
    promote_rejected(run, intent, rows.rejected, where)
    run.table.write(new_rows, Replace(where), tag, intent.watermark, base=intent.table_version)
    run.withheld.count(intent.number)


def _check_failed_write(run: RunContext[Any], intent: Intent, entry: Entry | None, error: Exception) -> None:
    """Return if a failed write was committed all the same; else raise its error.

    The number is given up if trying again cannot help.
    """
    from pyspark.errors import AnalysisException

    if find_commit(run, entry, intent) is not None:
        return
    failure = f"dataflow {run.name}: the promote into {run.dataflow.table} failed: {root_cause(error).rstrip(' .;')}"
    if isinstance(error, AnalysisException | RowsRefused):
        if give_up(run, entry, intent, failure) is None:
            return
        raise TargetError(
            f"{failure}. The live table is unchanged. Drop the replay, and replay again with the current definition"
        ) from error
    if isinstance(error, StrandlineError):
        raise error
    raise TargetError(f"{failure}. Nothing is lost: promote it again") from error


def _replaces_keys(target: Target) -> bool:
    """Return whether the table has one row of a key; kept changes of a key are many."""
    return bool(target.merge_keys) and not target.only_adds


def _rows_to_insert(run: RunContext[Any], isolated: _ReplayRows, where: Predicate) -> DataFrame:
    """Return the replay's rows in the range, without keys that the live table holds outside of it."""
    from pyspark.sql import functions as F

    spark, target = run.spark, run.dataflow.target
    rows = isolated.read(run, where).where(predicate_sql(where, SPARK))
    if target.shared and isolated.version is not None:
        rows = rows.withColumn(DATAFLOW_COLUMN, F.lit(run.name))
    if not _replaces_keys(target) or not run.table.exists():
        return rows
    live_rows = run.table.contents.read(spark, run.table.contents.newest_version())
    live_rows = live_rows.where(f"NOT coalesce({predicate_sql(where, SPARK)}, false)")
    if target.shared:
        live_rows = live_rows.where(predicate_sql(Among(DATAFLOW_COLUMN, (run.name,)), SPARK))
    return drop_shared_keys(rows, live_rows, target.merge_keys)


def _intent(
    run: RunContext[Any],
    isolated: IsolatedReplay,
    entry: Entry | None,
    swap: Swap,
    version: Version | None,
    reason: str,
) -> Intent:
    """Return the intent of the next number. The watermark stays."""
    number = entry.number + 1 if entry else 1
    pinned = (entry and entry.pinned) or _pinned(run, isolated)
    before, size = entry.watermark if entry else "{}", swap.slice.size
    return Intent(
        id=isolated.intent_id(number),
        number=number,
        dataflow=run.name,
        kind=run.dataflow.kind,
        app_id=entry.app_id if entry else new_id(),
        why="promote",
        reason=reason,
        before=before,
        watermark=before,
        lower=serialise(swap.lower) if swap.lower else None,
        upper=serialise(swap.upper),
        definition=definition_of(run.dataflow),
        fingerprint=fingerprint(run.dataflow),
        pinned=pinned,
        file_list=run.log.put_list(
            run.name,
            f"{number:010d}-{isolated.intent_id(number)}",
            run.kind.stored_slices.to_rows(swap.slice),
        ),
        files=size.files,
        work_units=size.work_units,
        quarantine=entry.quarantine if entry else None,
        replaces="own",
        first_loads=first_loads(run, entry, swap.slice),
        holder=holders.current_holder(run.run_id),
        run_id=run.run_id,
        time=utc_now(),
        table_version=version,
    )


def _pinned(run: RunContext[Any], isolated: IsolatedReplay) -> str:
    """Return the name of the schema that the replay was read with, stored beside the live log.

    Raises:
        NeedsDecision: code ``nothing_to_promote``: no chunk had rows, and the live log pins no schema.
    """
    newest = run.log.newest(isolated.log)
    if newest is None or newest.pinned is None:
        raise NeedsDecision(
            f"dataflow {run.name}: expected rows in {isolated.table}, or a live table with rows to delete, found neither. Drop the replay",
            code="nothing_to_promote",
            choices=(drop_command(isolated),),
        )
    return run.log.put_schema(run.name, run.log.get_schema(newest.pinned))
