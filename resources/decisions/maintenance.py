"""Care of a dataflow's table: under the dataflow's hold, and never where something unfinished may need what it removes (docs/how-to/maintenance.md).

It takes the next number by an intent that writes no rows, as decisions do. So no run can begin a slice meanwhile, and one that died in it is
ended by the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, Conflict
from partitions.instants import time_text
from partitions.maintenance_periods import OPTIMIZE, VACUUM, Task
from partitions.spelling import describe_missing
from resources.decisions.deciding import claim_of
from resources.loop.entries import in_table
from resources.loop.giving_up import drop
from resources.loop.holder_wait import Patience, abandoned_intent
from resources.loop.intents import beaten, holding
from resources.loop.table_guard import check_table
from resources.platform.opener import Opener
from resources.tables.contract.maintenance import CanOptimize, MaintenanceResult
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry, new_id, next_entry, utc_now

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NOTE = "maintained"
_LONG_UNFINISHED = timedelta(hours=1)
"""After this a slice that was begun is taken for one that a run has to finish before files may go. Tables keep theirs for days."""


@dataclass(frozen=True)
class Done:
    """What was done.

    Attributes:
        dataflow: its name.
        cared: by task.
        skipped: why a task was not done, by task.
        entry: that records it; None if nothing was done.
    """

    dataflow: str
    cared: Mapping[Task, MaintenanceResult] = field(default_factory=dict)
    skipped: Mapping[Task, str] = field(default_factory=dict)
    entry: Entry | None = None

    def as_json(self) -> dict[str, Any]:
        """As Dagster shows it."""
        return {
            **{
                f"{task}: {name}": count
                for task, cared in self.cared.items()
                for name, count in cared.counts().items()
            },
            **{f"{task}: skipped": why for task, why in self.skipped.items()},
        }


def due_tasks(platform: Opener, dataflow: Dataflow, now: datetime) -> tuple[Task, ...]:
    """Return the tasks whose period has passed since they were last done; all of them if nothing tells when that was."""
    periods = dataflow.maintenance.periods() if dataflow.maintenance else {}
    note = platform.log.note(dataflow.name, _NOTE) or {}
    return tuple(task for task, period in periods.items() if _is_due(note.get(task), period, now))


def maintain(
    platform: Opener, dataflow: Dataflow, tasks: Sequence[Task], patience: Patience | None = None
) -> Done:
    """Do some tasks, and append an entry that says so.

    Args:
        platform: the resources.
        dataflow: whose table is cared for.
        tasks: that are done; files are joined last.
        patience: with a run that holds the dataflow.

    Raises:
        Held: while a living run, or a decision, works on the next number.
        Conflict: a run has left a slice unfinished, or was faster.
        NeedsDecision: state and table do not belong together.
        TargetError: the table cannot be cared for.
        ConfigurationError: the table lacks a column of ``cluster_by``.
    """
    run = platform.loop(dataflow, datetime.now(UTC)).context
    table, log, name = run.table, platform.log, dataflow.name
    last, open_ = abandoned_intent(run, log.newest(name), patience or Patience())
    if open_ is not None and not open_.is_decision:
        raise Conflict(
            f"dataflow {name}: a run has left slice {open_.number} unfinished, and may need files that would go. Run `strandline run {name}`, which"
            " finishes it, and then again"
        )
    if open_ is not None:
        last = drop(run, last, open_)
    if last is None:
        return Done(name, skipped=dict.fromkeys(tasks, "nothing is loaded yet"))
    needed = _needed_by(platform, dataflow) if VACUUM in tasks else None
    skipped: dict[Task, str] = {VACUUM: needed} if needed else {}
    todo = [task for task in (VACUUM, OPTIMIZE) if task in tasks and task not in skipped]
    if not todo:
        return Done(name, skipped=skipped)
    check_table(dataflow, last, table)
    if OPTIMIZE in todo:
        _check_clustered(dataflow, table)
    entry = next_entry(
        last,
        id=new_id(),
        number=last.number + 1,
        why="maintain",
        reason=" and ".join(todo),
        fingerprint=last.fingerprint,
        kind=last.kind,
        app_id=last.app_id,
    )
    claim = claim_of(dataflow, last, entry)
    with holding(run, claim):
        winner = log.put_intent(claim)
        if winner.id != claim.id:
            raise beaten(run, winner)
        check_table(dataflow, last, table)
        cared = {task: _care(table, task, lambda: run.spark, dataflow.target.cluster_by) for task in todo}
        did = "; ".join(f"{task}: {done}" for task, done in cared.items())
        entry = entry.model_copy(update={"reason": did, **_table_after(dataflow, last, table)})
        appended = log.append(name, entry, expected=entry.previous)
    _note(platform, name, todo)
    return Done(name, cared, skipped, appended)


def _table_after(dataflow: Dataflow, last: Entry, table: Table) -> dict[str, Any]:
    """Return what an entry says of the table as it is now: the guards have passed it, so the next run may build on it.

    Files that the last slice added may be joined. They were joined last, or not at all: then the one that was recorded is there still.
    """
    head = check_table(dataflow, last, table)
    if last.table != dataflow.table or head.newest is None or last.table_version is None:
        return {}
    file = head.newest.file or last.table_file
    return in_table(
        dataflow, replace(head.newest, number=max(head.highest_tag, last.table_number), file=file)
    )


def _check_clustered(dataflow: Dataflow, table: Table) -> None:
    columns = table.contents.columns() if dataflow.target.cluster_by else []
    known = {name.lower() for name in columns}
    missing = [name for name in dataflow.target.cluster_by if name.lower() not in known]
    if missing and columns:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: target.cluster_by: expected columns of the table {dataflow.table}, found"
            f" {describe_missing(missing, columns)}. Nothing was begun; correct target.cluster_by",
            code="query",
        )


def _care(
    table: Table, task: Task, session: Callable[[], SparkSession], cluster_by: Sequence[str]
) -> MaintenanceResult:
    """Do one task; definitions name only those that the table's format has (``partitions.supported``)."""
    maintenance = table.maintenance
    if task == OPTIMIZE and isinstance(maintenance, CanOptimize):
        return maintenance.optimize(session, cluster_by)
    if task == VACUUM:
        return maintenance.vacuum(session)
    return MaintenanceResult()


def _needed_by(platform: Opener, dataflow: Dataflow) -> str | None:
    """Why older versions of the table are needed: a slice that reads one was begun long ago, and is not finished."""
    for reader in platform.lineage.readers_of(dataflow.table):
        intent = platform.log.open_intent(reader, platform.log.newest(reader))
        if intent is None or intent.is_decision:
            continue
        if datetime.now(UTC) - datetime.fromisoformat(intent.time) > _LONG_UNFINISHED:
            return f"dataflow {reader} has a slice unfinished since {time_text(intent.time)}, which may read an older version. Run `strandline run {reader}`"
    return None


def _is_due(done: object, period: timedelta, now: datetime) -> bool:
    try:
        return now - datetime.fromisoformat(str(done)) >= period
    except (ValueError, TypeError):
        return True


def _note(platform: Opener, name: str, tasks: Sequence[Task]) -> None:
    note = platform.log.note(name, _NOTE) or {}
    platform.log.put_note(name, _NOTE, {**note, **dict.fromkeys(tasks, utc_now())})
