"""Maintenance of a dataflow's table, under the dataflow's hold (docs/how-to/maintenance.md).

It removes no file that an unfinished slice may need. Like a decision it takes the next number by an intent
that writes no rows. So no run begins a slice meanwhile, and the next run ends maintenance that died.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from partitions.dataflow import Dataflow, maintenance_periods
from partitions.errors import ConfigurationError, Conflict, StrandlineError
from partitions.instants import time_text
from partitions.maintenance_periods import KEEP_FOR_DOWNSTREAM, OPTIMIZE, RETENTION, VACUUM, Task
from partitions.plan import format_duration
from partitions.spelling import describe_missing
from partitions.state_of_kind import read_version
from partitions.watermark_state import ReadVersion
from resources.decisions.deciding import claim_of
from resources.decisions.expiry import expire_rows
from resources.loop.context import RunContext
from resources.loop.ending import end_intent
from resources.loop.entries import table_fields
from resources.loop.guards.table import check_table
from resources.loop.holder_wait import HolderPolicy, abandoned_intent
from resources.loop.intents import holding, lost_number_error
from resources.platform.opener import Opener
from resources.tables.contract.commit_log import ReadPosition, TellsCommits
from resources.tables.contract.maintenance import CanOptimize, MaintenanceResult
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry, new_id, next_entry, utc_now

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

_NOTE = "maintained"
_LONG_UNFINISHED = timedelta(hours=1)
"""Age from which an unfinished slice prevents the deletion of old versions. Tables keep these for days anyway."""


@dataclass(frozen=True)
class MaintenanceReport:
    """The result of a dataflow's maintenance.

    Attributes:
        dataflow: the dataflow's name.
        results: the result of each task.
        skipped: by task, why it was skipped.
        entry: the entry that records it; None if nothing was done.
    """

    dataflow: str
    results: Mapping[Task, MaintenanceResult] = field(default_factory=dict)
    skipped: Mapping[Task, str] = field(default_factory=dict)
    entry: Entry | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the report as Dagster shows it."""
        return {
            **{
                f"{task}: {name}": count
                for task, result in self.results.items()
                for name, count in result.counts().items()
            },
            **{f"{task}: skipped": why for task, why in self.skipped.items()},
        }


def due_tasks(platform: Opener, dataflow: Dataflow, now: datetime) -> tuple[Task, ...]:
    """Return the tasks whose period has passed since they last ran, or that never ran."""
    periods = maintenance_periods(dataflow)
    note = platform.log.note(dataflow.name, _NOTE) or {}
    return tuple(task for task, period in periods.items() if _is_due(note.get(task), period, now))


def maintain(
    platform: Opener,
    dataflow: Dataflow,
    tasks: Sequence[Task],
    holder_policy: HolderPolicy | None = None,
    now: datetime | None = None,
) -> MaintenanceReport:
    """Run maintenance tasks, append an entry that records them, and return a report.

    Args:
        platform: the resources.
        dataflow: the dataflow whose table is maintained.
        tasks: the tasks; OPTIMIZE runs last.
        holder_policy: how long to wait for a run that holds the dataflow.
        now: the clock of the retention, aware; None: this machine's. The part by which it is ahead of this
            machine's does not count.

    Raises:
        DataflowHeld: a living run or a decision works on the next number.
        Conflict: a run has left a slice unfinished, or was faster.
        NeedsDecision: state and table do not match.
        TargetError: the maintenance failed.
        ConfigurationError: the table lacks a column of ``cluster_by`` or the column of the retention, or
            that column's type has no time.
    """
    run = platform.loop(dataflow, now or datetime.now(UTC)).context
    table, log, name = run.table, platform.log, dataflow.name
    last, open_intent = abandoned_intent(run, log.newest(name), holder_policy or HolderPolicy())
    if open_intent is not None and open_intent.loads_slice:
        raise Conflict(
            f"dataflow {name}: slice {open_intent.number} is unfinished, and may need files that would be removed. Run `strandline run {name}`, which"
            " finishes it, and repeat this command"
        )
    if open_intent is not None:
        last = end_intent(run, last, open_intent, "ended for maintenance")
    if last is None:
        return MaintenanceReport(name, skipped=dict.fromkeys(tasks, "nothing is loaded yet"))
    last, expired = _expire(platform, run, last) if RETENTION in tasks else (last, {})
    reason = (
        _reason_to_keep_versions(platform, dataflow) or _reason_to_wait_for_readers(platform, dataflow, table)
        if VACUUM in tasks
        else None
    )
    skipped: dict[Task, str] = {VACUUM: reason} if reason else {}
    due = [task for task in (VACUUM, OPTIMIZE) if task in tasks and task not in skipped]
    if not due:
        entry = last if expired and expired[RETENTION].rows else None
        return MaintenanceReport(name, expired, skipped, entry)
    check_table(dataflow, last, table, own_state=run.own_state)
    if OPTIMIZE in due:
        _check_clustered(dataflow, table)

    def run_tasks() -> tuple[dict[Task, MaintenanceResult], str]:
        cluster_by = dataflow.target.cluster_by
        results = {task: _run_task(table, task, lambda: run.spark, cluster_by) for task in due}
        return results, "; ".join(f"{task}: {result}" for task, result in results.items())

    results, appended = run_held(run, last, " and ".join(due), run_tasks)
    _note(platform, name, due)
    return MaintenanceReport(name, {**expired, **results}, skipped, appended)


def run_held(
    run: RunContext[Any], last: Entry, reason: str, act: Callable[[], tuple[T, str]]
) -> tuple[T, Entry]:
    """Run work that changes no row while the next number is held; return its result and its entry.

    Args:
        run: a run of the dataflow.
        last: the newest entry.
        reason: the work, for whoever finds its claim.
        act: does the work, and returns its result with a summary, which becomes the entry's reason.

    Raises:
        DataflowHeld, Conflict: a run works on the number, or was faster.
        NeedsDecision: state and table do not match.
    """
    dataflow, table = run.dataflow, run.table
    entry = next_entry(
        last,
        id=new_id(),
        number=last.number + 1,
        why="maintain",
        reason=reason,
        fingerprint=last.fingerprint,
        kind=last.kind,
        app_id=last.app_id,
    )
    claim = claim_of(dataflow, last, entry)
    with holding(run, claim):
        winner = run.log.put_intent(claim)
        if winner.id != claim.id:
            raise lost_number_error(run, winner)
        check_table(dataflow, last, table)
        result, summary = act()
        entry = entry.model_copy(update={"reason": summary, **_table_after(dataflow, last, table)})
        return result, run.log.append(dataflow.name, entry, expected=entry.previous)


def _expire(
    platform: Opener, run: RunContext[Any], last: Entry
) -> tuple[Entry, dict[Task, MaintenanceResult]]:
    """Delete expired rows and note the time; return the newest entry then, and the result by task."""
    entry, result = expire_rows(run, last)
    _note(platform, run.name, [RETENTION])
    return entry, {RETENTION: result}


def _table_after(dataflow: Dataflow, last: Entry, table: Table) -> dict[str, Any]:
    """Return the fields that record the current table, on which the next run may build.

    Maintenance may have joined the files that the last slice added. OPTIMIZE runs last, so the recorded
    file exists.
    """
    head = check_table(dataflow, last, table)
    if last.table != dataflow.table or head.newest is None or last.table_version is None:
        return {}
    file = head.newest.file or last.table_file
    return table_fields(
        dataflow, replace(head.newest, number=max(head.highest_tag, last.table_number), file=file)
    )


def _check_clustered(dataflow: Dataflow, table: Table) -> None:
    columns = table.contents.columns() if dataflow.target.cluster_by else []
    table_columns = {name.lower() for name in columns}
    missing = [name for name in dataflow.target.cluster_by if name.lower() not in table_columns]
    if missing and columns:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: target.cluster_by: expected columns of the table {dataflow.table}, found"
            f" {describe_missing(missing, columns)}. Correct target.cluster_by",
            code="query",
        )


def _run_task(
    table: Table, task: Task, session: Callable[[], SparkSession], cluster_by: Sequence[str]
) -> MaintenanceResult:
    """Run one task; definitions name only tasks that the table format has (``partitions.supported``)."""
    maintenance = table.maintenance
    if task == OPTIMIZE and isinstance(maintenance, CanOptimize):
        return maintenance.optimize(session, cluster_by)
    if task == VACUUM:
        return maintenance.vacuum(session)
    return MaintenanceResult()


def _reason_to_keep_versions(platform: Opener, dataflow: Dataflow) -> str | None:
    """Return why older versions of the table are needed: an unfinished slice reads one; else None."""
    for reader in platform.lineage.readers_of(dataflow.table):
        intent = platform.log.open_intent(reader, platform.log.newest(reader))
        if intent is None or not intent.loads_slice:
            continue
        if datetime.now(UTC) - datetime.fromisoformat(intent.time) > _LONG_UNFINISHED:
            return f"dataflow {reader} has a slice unfinished since {time_text(intent.time)}, which may read an older version. Run `strandline run {reader}`"
    return None


def _reason_to_wait_for_readers(platform: Opener, dataflow: Dataflow, table: Table) -> str | None:
    """Return which dataflow has not read commits whose files a vacuum may delete; None if none has to."""
    now = datetime.now(UTC)
    keep_for = dataflow.maintenance.keep_for_downstream if dataflow.maintenance else KEEP_FOR_DOWNSTREAM
    for flow in platform.lineage.readers(dataflow.table):
        if isinstance(flow, Dataflow) and not flow.watermark.needs_commits:
            continue  # its state may still have the position up to which it has followed them
        reader = flow.name
        entry = platform.log.newest(reader)
        position = read_version(entry.kind, entry.state()) if entry is not None else None
        since = _unread_since(table, position) if position is not None else None
        if since is not None and table.maintenance.retention() < now - since <= keep_for:
            when = time_text(since.isoformat())
            return (
                f"dataflow {reader} has not read what table {dataflow.table} got since {when}. Run `strandline run {reader}`; vacuum waits for it"
                f" for {format_duration(keep_for.total_seconds())} at most (maintenance.keep_for_downstream)"
            )
    return None


def _unread_since(table: Table, position: ReadVersion) -> datetime | None:
    """Return when the oldest commit behind a position was made; None if nothing tells it.

    Files of a first read that is not done are those of its version. A position of another table, beside which
    a reader has this one as an input, tells nothing.
    """
    if not isinstance(table, TellsCommits):
        return None
    read = ReadPosition(position.version, position.id)
    with suppress(StrandlineError):  # what the reader will say is no reason to keep more
        if position.table not in (None, table.commits.newest()[0]):
            return None
        if position.in_first_read:
            return table.commits.time_of(read)
        times = [commit.time for commit in table.commits.since(read).commits if commit.files]
        return min((time for time in times if time is not None), default=None)
    return None


def _is_due(last_run: object, period: timedelta, now: datetime) -> bool:
    try:
        return now - datetime.fromisoformat(str(last_run)) >= period
    except (ValueError, TypeError):
        return True


def _note(platform: Opener, name: str, tasks: Sequence[Task]) -> None:
    note = platform.log.note(name, _NOTE) or {}
    platform.log.put_note(name, _NOTE, {**note, **dict.fromkeys(tasks, utc_now())})
