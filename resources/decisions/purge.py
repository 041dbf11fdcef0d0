"""``strandline delete --purge``: delete the old versions and files that hold deleted rows.

See docs/how-to/deleting-and-keeping.md, Purge.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import Conflict, NeedsDecision
from partitions.loads import Replace
from partitions.plan import pluralize
from partitions.predicate import SqlCondition
from partitions.sql_condition import named_columns
from partitions.table_names import bad_records_table
from resources.decisions.delete_condition import without_rows
from resources.decisions.maintenance import run_held
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.kinds.contract.writing import KeepsWaitingRows
from resources.loop.context import RunContext
from resources.loop.ending import end_abandoned
from resources.outcome import Observer
from resources.platform.opener import Opener
from resources.replay.isolated.standing import drop_command, stored_replays
from resources.tables.contract.commits import Tag
from resources.tables.contract.maintenance import PurgeResult
from resources.tables.contract.table import Table
from resources.watermarks.deleted_rows import DeleteInForce, deletes_in_force
from resources.watermarks.entry import Entry, new_id


@dataclass(frozen=True)
class Purged:
    """The result of a purge of one dataflow.

    Attributes:
        dataflow: the dataflow's name.
        deleted: number of files that were deleted, those of side tables included.
        side_rows: number of rows that were deleted from side tables.
        remains: what still holds deleted rows or their values, for people.
        entry: the entry that records it.
    """

    dataflow: str
    deleted: int
    side_rows: int
    remains: Sequence[str]
    entry: Entry

    def as_json(self) -> dict[str, Any]:
        """Return the result in the public JSON form (docs/reference/cli.md, JSON)."""
        return {
            "dataflow": self.dataflow,
            "number": self.entry.number,
            "files": self.deleted,
            "side_rows": self.side_rows,
            "remains": list(self.remains),
        }


def check_purge(
    platform: Opener, dataflow: Dataflow, dataflows: Mapping[str, Dataflow], now: datetime
) -> None:
    """Raise if somebody may still need an older version of the table.

    Args:
        platform: the resources.
        dataflow: the dataflow whose table is purged.
        dataflows: all valid dataflows of the project, by name.
        now: the clock, aware.

    Raises:
        NeedsDecision: code ``replays_open``: an isolated replay may hold deleted rows, and reads versions.
        Conflict: another dataflow has an unfinished slice, or a stream has not read the table yet.
    """
    log, name = platform.log, dataflow.name
    replays = stored_replays(log, name)
    if replays:
        raise NeedsDecision(
            f"dataflow {name}: expected no isolated replay beside a purge, found {', '.join(replay.table for replay in replays)}, which may hold"
            " deleted rows. Nothing was purged. Promote or drop it, then delete again with --purge",
            code="replays_open",
            choices=[
                command
                for replay in replays
                for command in (
                    f"strandline promote {name} {replay.table} --reason TEXT",
                    drop_command(replay),
                )
            ],
        )
    sharers = [maker.name for maker in platform.lineage.makers(dataflow.table) if maker.name != name]
    readers = platform.lineage.readers_of(dataflow.table)
    for other in dict.fromkeys((*sharers, *readers)):
        intent = log.open_intent(other, log.newest(other))
        if intent is not None and intent.loads_slice:
            raise _needs_versions(name, other, f"has not finished slice {intent.number}")
    for reader in readers:
        flow = dataflows.get(reader)
        if flow is not None and flow.watermark.reads_versions and platform.plan(flow, now).slices:
            raise _needs_versions(name, reader, f"has not read all versions of {dataflow.table}")


def _needs_versions(name: str, other: str, why: str) -> Conflict:
    return Conflict(
        f"dataflow {name}: expected that nobody needs an older version of its table, found that dataflow {other} {why}. Nothing was purged."
        f" Run `strandline run {other}`, then delete again with --purge"
    )


def describe_purge(dataflow: Dataflow) -> list[str]:
    """Describe what a purge deletes and what it cannot, for people."""
    lines = [
        f"--purge: then all older versions of {dataflow.table} go, so that no RESTORE and no time travel reaches before this delete",
        "--purge cannot reach the source, backups and copies, and what other programs have read",
    ]
    bad_records = bad_records_table(dataflow)
    if bad_records is not None:
        lines.append(
            f"--purge cannot tell whose the bad records in {bad_records} are: they are texts. Look into it"
        )
    if dataflow.streams_with_spark:
        lines.append(
            "--purge does not reach Spark's checkpoint and its batches: `state reset --replace` removes them"
        )
    return lines


def purge_deleted(
    platform: Opener,
    dataflow: Dataflow,
    reason: str,
    now: datetime,
    *,
    run_id: str | None = None,
    job_id: str | None = None,
    observer: Observer = lambda step, line: None,
    **patience: Any,
) -> Purged:
    """Delete the files that hold deleted rows, and such rows of side tables; return the result.

    The same purge again finishes one that died.

    Args:
        platform: the resources.
        dataflow: the dataflow.
        reason: the operator's reason; stays in the log.
        now: the clock, aware.
        run_id: Dagster's run id, if the run is Dagster's.
        job_id: Dagster's job.
        observer: is called at each step.
        patience: attributes of :class:`resources.loop.holder_wait.HolderPolicy`, for a live run.

    Raises:
        DataflowHeld, NeedsDecision, TargetError: as :func:`resources.decisions.delete.delete_rows`.
        Conflict: another run was faster, or a row that a delete names waits in a stream's side table.
    """
    loop = platform.loop(dataflow, now, run_id=run_id, job_id=job_id, observer=observer, **patience)
    run, name = loop.context, dataflow.name
    last = end_abandoned(run, loop.holder_policy, "a purge", reason)
    assert last is not None  # a delete comes first
    deletes, number = deletes_in_force(platform.log, last), last.number + 1
    _check_waiting_rows(run, last, deletes)

    def purge() -> tuple[tuple[PurgeResult, int], str]:
        with run.staging.emptied():
            side_rows = sum(
                _delete_aside(run, table, deletes, number) for table in _tables_aside(run).values()
            )
        tables = [
            (run.table, dataflow.target.shared),
            *((table, False) for table in _tables_aside(run).values()),
        ]
        results = [_purge(run, table, last, is_shared=is_shared) for table, is_shared in tables]
        files = sum(result.deleted for result in results)
        remains = tuple(dict.fromkeys(line for result in results for line in result.remains))
        summary = f"purge: {pluralize(files, 'file')} deleted; {reason}"
        return (PurgeResult(files, remains), side_rows), summary

    (result, side_rows), entry = run_held(run, last, "purge", purge)
    return Purged(name, result.deleted, side_rows, result.remains, entry)


def _purge(run: RunContext[Any], table: Table, last: Entry, *, is_shared: bool) -> PurgeResult:
    recorded = last.table_version if table is run.table else None
    since = table.contents.newest_version() if recorded is None else recorded
    return table.maintenance.purge(lambda: run.spark, since, is_shared=is_shared)


def _tables_aside(run: RunContext[Any]) -> dict[str, Table]:
    """Return the existing side tables by short name."""
    return {name: table for name, table in run.sides.items() if table.exists()}


def _delete_aside(run: RunContext[Any], table: Table, deletes: Iterable[DeleteInForce], number: int) -> int:
    """Delete rows of a side table that a delete in force names; return their number."""
    columns = table.contents.columns()
    conditions = [delete.predicate for delete in deletes if _fits(delete, columns)]
    if not conditions:
        return 0
    predicate = " OR ".join(f"({condition})" for condition in conditions)
    version, app_id = table.contents.newest_version(), _app_id(run)
    rows = table.contents.read(run.spark, version)
    count = rows.count() - without_rows(rows, predicate).count()
    if count:
        where = SqlCondition(predicate, named_columns(predicate, columns))
        tag = Tag(app_id, number, new_id(), deletes=True)
        table.write(rows.limit(0), Replace(where), tag, "{}", base=version)
    return count


def _check_waiting_rows(run: RunContext[Any], last: Entry, deletes: Sequence[DeleteInForce]) -> None:
    """Raise Conflict if rows that a delete names wait in a side table: the stream's state counts them."""
    writing = run.kind.writing
    for name, table in _tables_aside(run).items() if isinstance(writing, KeepsWaitingRows) else ():
        assert isinstance(writing, KeepsWaitingRows)
        rows = table.contents.read(run.spark, table.contents.newest_version())
        waiting = rows.where(
            predicate_sql(writing.waiting_rows(name, last.state(), dict(rows.dtypes)), SPARK)
        )
        for delete in deletes:
            if not _fits(delete, rows.columns):
                continue
            if without_rows(waiting, delete.predicate).count() < waiting.count():
                raise Conflict(
                    f"dataflow {run.name}: expected no waiting row that the delete of entry {delete.number} names, found some in"
                    f" {run.dataflow.table}__{name}. They are withheld when they leave. Run until they have left, or"
                    f" `strandline stream flush {run.name}`, then delete again with --purge"
                )


def _fits(delete: DeleteInForce, columns: Sequence[str]) -> bool:
    return {name.casefold() for name in delete.columns} <= {name.casefold() for name in columns}


def _app_id(run: RunContext[Any]) -> str:
    entry = run.log.newest(run.name)
    assert entry is not None
    return entry.app_id
