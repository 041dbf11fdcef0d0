"""Promote: the rows of a replay aside take the place of the live table's, in one commit under the live flow's next number (docs/reference/replay.md, Isolated).

The steps are those of the protocol (docs/explanation/protocol.md): intent, write, verify, entry. The intent's id is the replay's own for that number, so
its entry tells whether the replay is promoted, whoever died when. A run that finds the intent ends it, as a decision would; the same command
then takes the next number, or only removes what is left aside.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import (
    ConfigurationError,
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
from partitions.target import DATAFLOW_COLUMN
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.loop.appending import append_loaded, follow_up
from resources.loop.context import RunContext
from resources.loop.definition_guard import check_definition, definition_of
from resources.loop.entries import claimed
from resources.loop.giving_up import close, drop, give_up
from resources.loop.holder_wait import abandoned_intent
from resources.loop.intents import first_loads, holding, put_intent
from resources.loop.verifying import check_log, find_commit, guarded_head, verified_commit
from resources.outcome import Observer, Step
from resources.platform.opener import Opener
from resources.replay.isolated.chunks import chunks_of, first_missing
from resources.replay.isolated.definition import check_defined_so
from resources.replay.isolated.refusals import without_chunks
from resources.replay.isolated.removing import remove
from resources.replay.isolated.standing import (
    Aside,
    drop_command,
    find_aside,
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
from resources.watermarks.entry import Entry, Intent, new_id, utc_now
from resources.watermarks.log import WatermarkLog

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_MOST_ENTRIES = 1_000_000
"""All that the log has."""


@dataclass(frozen=True)
class Promoted:
    """What a promote has done.

    Attributes:
        entry: of the live log.
        aside: that was promoted; it is gone.
    """

    entry: Entry
    aside: Aside


def preview_promote(platform: Opener, dataflow: Dataflow, table: str) -> tuple[str, ...]:
    """Return what a promote would do, in sentences. Changes nothing, starts no Spark.

    Raises:
        ConfigurationError, NeedsDecision: as :func:`promote`.
    """
    log = platform.log
    aside = find_aside(log, dataflow.name, table)
    entry = log.newest(dataflow.name)
    if promoted_entry(log, aside, entry) is not None:
        return (f"it is promoted already; table {table} and its log are removed",)
    swap, _ = _checked(platform, dataflow, aside, entry)
    standing = find_table(platform.lake.child(aside.table))
    lines = [
        f"{swap.amount} go from {dataflow.table}, and {'at most ' if swap.stays else ''}{pluralize(standing.contents.count_rows(), 'row')} of {table} come, in one commit",
        "rows outside of the range stay, and so does the watermark",
        *swap.stays,
        f"then table {table} and its log are removed",
    ]
    if dataflow.target.merge_keys:
        keys = ", ".join(dataflow.target.merge_keys)
        lines.insert(
            1, f"a row aside whose key ({keys}) {dataflow.table} holds outside of the range does not come"
        )
    return tuple(lines)


def promote(
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
    """Swap a replay's rows in, or end the promote of a process that died.

    Args:
        platform: the resources.
        dataflow: the live one.
        table: of the replay.
        reason: of the operator; stays in the log.
        now: the clock, aware.
        run_id: Dagster's, if it runs there.
        job_id: Dagster's job.
        observer: hears of every step.
        patience: attributes of :class:`Patience`, with a live run.

    Raises:
        ConfigurationError: there is no such replay, or no reason.
        NeedsDecision: the replay is unfinished, another promote can no longer be told from it, or state and table do not belong together.
        Held: a run works on the dataflow, or on the replay, and the patience is at its end.
        Conflict: a run was faster.
        TargetError: the write failed; nothing is lost, and the same command goes on.
    """
    if not reason.strip():
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a reason, which stays in the log, found none"
        )
    log = platform.log
    aside = find_aside(log, dataflow.name, table)
    loop = platform.loop(dataflow, now, run_id=run_id, job_id=job_id, observer=observer, **patience)
    run = loop.context
    entry, intent = abandoned_intent(run, log.newest(dataflow.name), loop.patience)
    if intent is not None:
        ended = f"a run that died had begun it; ended for a promote: {reason}"
        entry = drop(run, entry, intent) if intent.is_decision else close(run, entry, intent, ended)
    done = promoted_entry(log, aside, entry)
    if done is None:
        check_definition(dataflow, entry, log)
        swap, version = _checked(platform, dataflow, aside, entry)
        # It is finished, but may be at work still: its last chunks, if they were empty, are looked at again.
        standing = platform.loop(aside.of(dataflow), now, **patience)
        abandoned_intent(standing.context, log.newest(aside.log), standing.patience)
        rows = _Rows(find_table(platform.lake.child(aside.table)), version)
        done = _swap(run, aside, rows, entry, swap, reason)
    remove(platform, dataflow, aside, observer)
    return Promoted(done, aside)


def promoted_entry(log: WatermarkLog, aside: Aside, newest: Entry | None) -> Entry | None:
    """Return the entry that promoted a replay; None if none has.

    Raises:
        NeedsDecision: code ``promote_unknown``: one was begun, and the log is too short to tell.
    """
    if newest is None or not is_marked(log, aside, "promoting"):
        return None
    for entry in _since(log, aside):
        if entry.why == "promote" and entry.id == aside.intent_id(entry.number):
            return entry
    if log.floor(aside.dataflow) > aside.number:
        raise NeedsDecision(
            f"dataflow {aside.dataflow}: a promote of {aside.table} was begun, and entries since then were removed from the log, so that nothing tells"
            " whether it was done. Compare the two tables. If the rows are not there, replay into another table",
            code="promote_unknown",
            choices=(drop_command(aside), replay_command(aside)),
        )
    return None


def _since(log: WatermarkLog, aside: Aside) -> list[Entry]:
    """The live entries since a replay began, newest first."""
    found = []
    for entry in log.history(aside.dataflow, _MOST_ENTRIES):
        if entry.number <= aside.number:
            break
        found.append(entry)
    return found


@dataclass(frozen=True)
class _Rows:
    """The rows of a replay, as they were when it was found to be whole: what becomes of its table then puts no other ones in the live table.

    Attributes:
        table: aside.
        version: None: no chunk has had a row, and there may be no table.
    """

    table: Table
    version: Version | None

    def read(self, run: RunContext[Any], where: Predicate = EVERYTHING) -> DataFrame:
        """Rows with the columns of the table aside; without one none, with those of the live table."""
        if self.version is None:
            return run.table.contents.read(run.spark, run.table.contents.newest_version()).limit(0)
        return self.table.contents.read(run.spark, self.version, where)


def _checked(
    platform: Opener, dataflow: Dataflow, aside: Aside, entry: Entry | None
) -> tuple[Swap, Version | None]:
    """Return what a promote swaps, and the version of the table aside that it reads.

    Raises:
        NeedsDecision: the replay cannot be promoted as it is.
    """
    log = platform.log
    _check_stands(log, aside)
    check_defined_so(dataflow, aside)
    if not chunks_of(log, aside):
        raise without_chunks(aside)
    version = check_unchanged(platform, dataflow, aside)
    swap = platform.replay(dataflow, aside.options, aside.began).swap(aside, entry, _since(log, aside))
    # Once more: a drop marks the replay before it removes anything, so what was found here was not half removed.
    _check_stands(log, aside)
    return swap, version


def _check_stands(log: WatermarkLog, aside: Aside) -> None:
    """Raise NeedsDecision if a replay is not finished, or is being dropped."""
    if is_marked(log, aside, "dropping"):
        raise NeedsDecision(
            f"dataflow {aside.dataflow}: a drop of {aside.table} was begun, and its rows may be gone. End it",
            code="replay_dropping",
            choices=(drop_command(aside),),
        )
    if not is_marked(log, aside, "complete"):
        raise NeedsDecision(
            f"dataflow {aside.dataflow}: the replay of {aside.words} into {aside.table} is not finished: chunk {first_missing(log, aside)} is missing. Go on with it,"
            " or drop it",
            code="replay_unfinished",
            choices=(replay_command(aside), drop_command(aside)),
        )


def _swap(
    run: RunContext[Any], aside: Aside, rows: _Rows, entry: Entry | None, swap: Swap, reason: str
) -> Entry:
    """Take the next number of the live log for the swap."""
    log = run.log
    head = guarded_head(run, entry)
    follow_up(run, entry)
    intent = _intent(run, aside, entry, swap, head.version, reason)
    # Before the intent: whoever finds the promote's entry gone knows that there may have been one.
    mark(log, aside, "promoting")
    put_intent(run, intent, f"{aside.words} of {aside.table}")
    with holding(run, intent):
        try:
            retry_conflicts(lambda: _write(run, rows, intent, entry, swap))
        except Exception as error:  # noqa: BLE001 - raised there, unless the write has landed all the same
            _ended(run, intent, entry, error)
        run.notify(Step.WRITTEN, f"slice {intent.number} written")
        tagged = verified_commit(run, entry, intent)
        if tagged.owner != intent.id:
            raise Conflict(
                f"dataflow {run.name}: number {intent.number} was given up by another run while {aside.table} was promoted. Nothing was changed; promote"
                " it again"
            )
        run.notify(Step.VERIFIED, f"slice {intent.number} is version {tagged.version} of the table")
        check_log(run, intent)
        appended, commit = append_loaded(run, entry, intent, tagged)
        run.notify(Step.APPENDED, f"slice {intent.number}: {pluralize(commit.rows, 'row')} of {aside.table}")
    return appended


def _write(run: RunContext[Any], rows: _Rows, intent: Intent, entry: Entry | None, swap: Swap) -> None:
    tag = Tag(intent.app_id, intent.number, intent.id, after=claimed(entry))
    where = swap.where(rows.read(run))
    run.table.write(
        _coming(run, rows, where), Replace(where), tag, intent.watermark, base=intent.table_version
    )


def _ended(run: RunContext[Any], intent: Intent, entry: Entry | None, error: Exception) -> None:
    """Return if a write that failed has landed all the same; else give its number up where trying again would not help, and raise why."""
    from pyspark.errors import AnalysisException

    if find_commit(run, entry, intent) is not None:
        return
    said = f"dataflow {run.name}: the promote into {run.dataflow.table} failed: {root_cause(error).rstrip(' .;')}"
    if isinstance(error, AnalysisException | RowsRefused):
        if give_up(run, entry, intent, said) is None:
            return
        raise TargetError(
            f"{said}. The live table is as it was. Replay again with the definition as it is"
        ) from error
    if isinstance(error, StrandlineError):
        raise error
    raise TargetError(f"{said}. Nothing is lost: promote it again") from error


def _coming(run: RunContext[Any], aside: _Rows, where: Predicate) -> DataFrame:
    """The rows aside that come: of the range, and of no key that the live table holds outside of what goes."""
    from pyspark.sql import functions as F

    spark, target = run.spark, run.dataflow.target
    rows = aside.read(run, where).where(predicate_sql(where, SPARK))
    if target.shared and aside.version is not None:
        rows = rows.withColumn(DATAFLOW_COLUMN, F.lit(run.name))
    if not target.merge_keys or not run.table.exists():
        return rows
    live_rows = run.table.contents.read(spark, run.table.contents.newest_version())
    live_rows = live_rows.where(f"NOT coalesce({predicate_sql(where, SPARK)}, false)")
    if target.shared:
        live_rows = live_rows.where(predicate_sql(Among(DATAFLOW_COLUMN, (run.name,)), SPARK))
    return drop_shared_keys(rows, live_rows, target.merge_keys)


def _intent(
    run: RunContext[Any],
    aside: Aside,
    entry: Entry | None,
    swap: Swap,
    version: Version | None,
    reason: str,
) -> Intent:
    """The intent of the next number. The watermark stays."""
    number = entry.number + 1 if entry else 1
    pinned = (entry and entry.pinned) or _pinned(run, aside)
    before, size = entry.watermark if entry else "{}", swap.slice.size
    return Intent(
        id=aside.intent_id(number),
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
            run.name, f"{number:010d}-{aside.intent_id(number)}", run.kind.stored_slices.to_rows(swap.slice)
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


def _pinned(run: RunContext[Any], aside: Aside) -> str:
    """The name of the schema that the replay was read with, kept beside the live log.

    Raises:
        NeedsDecision: code ``nothing_to_promote``: it has no row, and the live table is not there.
    """
    standing = run.log.newest(aside.log)
    if standing is None or standing.pinned is None:
        raise NeedsDecision(
            f"dataflow {run.name}: expected rows in {aside.table}, or a live table that a promote deletes some of, found neither. Drop it",
            code="nothing_to_promote",
            choices=(drop_command(aside),),
        )
    return run.log.put_schema(run.name, run.log.get_schema(standing.pinned))
