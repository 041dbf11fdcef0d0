"""The entry that ends a number, from its intent and commit: loaded, deleted, abandoned or dropped.

This module decides each field of such an entry. It reads and writes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.fingerprint import short_hash
from partitions.rules.counts import RuleCounts
from partitions.state_of_kind import holds_nothing
from resources.tables.contract.commits import TableCommit, TaggedCommit
from resources.watermarks.deleted_rows import RETENTION
from resources.watermarks.entry import Entry, Intent, new_id, next_entry
from resources.watermarks.expiry import carry_expired, carry_expiry


def loaded_entry(
    dataflow: Dataflow,
    before: Entry | None,
    intent: Intent,
    commit: TaggedCommit,
    *,
    watermark: str,
    replace_until: str | None,
    job_id: str | None,
    now: datetime,
    withheld: Mapping[int, int] | None = None,
    counts: RuleCounts | None = None,
    guarded: bool = True,
) -> Entry:
    """Return the entry of a slice that is in the table.

    Args:
        dataflow: the definition.
        before: the newest entry.
        intent: the slice's intent.
        commit: the commit that carries the slice, with all its counts.
        watermark: the state after the slice, sentinel JSON text.
        replace_until: the state up to which later loads still replace rows, sentinel JSON text; None if
            they do not.
        job_id: Dagster's job.
        now: the run's clock, aware.
        withheld: rows that deletes in force held back, by the numbers of their entries; None if not
            counted.
        counts: rows that failed rules; None without rules, or if not counted.
        guarded: whether state and table match. If not, the entry keeps the table commit of the entry
            before, so that the next run stops, too.
    """
    keeps = before is not None and commit.removed is not None
    rows, files = (before.total_rows, before.total_files) if before and keeps else (0, 0)
    new_files = intent.files if intent.first_loads is None else intent.first_loads
    return next_entry(
        before,
        **intent.for_entry() | {"watermark": watermark},
        **(_of_table(dataflow, before, commit) if guarded else {}),
        job_id=job_id,
        committed_by=commit.committed_by,
        rows=commit.rows,
        deleted=_deleted_rows(dataflow, commit),
        expiry=_expiry_after(dataflow, before, intent, withheld, now),
        withheld=dict(withheld) if withheld else None,
        total_withheld=(before.total_withheld if before else 0) + sum((withheld or {}).values()),
        checked=counts.rows if counts else 0,
        rejected=counts.rejected if counts else 0,
        failed_rules=dict(counts.failed) if counts else None,
        total_rows=rows + commit.rows - (commit.removed or 0),
        loaded_rows=(before.loaded_rows if before else 0) + commit.rows,
        total_files=max(0, files + new_files),
        lost_rows=before.lost_rows if before and keeps else 0,
        modified=intent.modified if intent.modified is not None else before and before.modified,
        definition=short_hash(intent.definition),
        keyed_by=keyed_by(intent.definition),
        since=intent.since or (before.since if before else None),
        replace_until=replace_until,
        replace_table=bool(before and before.replace_table and intent.replaces != "table"),
        new_columns=False,
        lost_files=None,
    )


def _deleted_rows(dataflow: Dataflow, commit: TaggedCommit) -> int:
    """Return how many rows a load whose rows can delete their key took out of the table.

    Where it replaces the rows of keys, it is by how many the table has shrunk. SCD2 keeps ended versions.
    """
    if not dataflow.deletes_keys:
        return 0
    if dataflow.target.load == "merge_overwrite":
        return max(0, (commit.removed or 0) - commit.rows)
    return commit.deleted if dataflow.target.load == "merge_upsert" else 0


def _expiry_after(
    dataflow: Dataflow,
    before: Entry | None,
    intent: Intent,
    withheld: Mapping[int, int] | None,
    now: datetime,
) -> str | None:
    """Return how far a retention has taken rows out after a slice: it may have held back some of its rows."""
    retention = dataflow.target.retention
    remaining = None if intent.replaces == "table" else before
    if retention is None or (withheld is not None and not withheld.get(RETENTION)):
        return remaining.expiry if remaining else None
    limit = retention.limit(min(now, datetime.now(UTC)))
    return carry_expiry(remaining, intent.number, intent.id, retention.column, limit)


def abandoned_entry(
    dataflow: Dataflow,
    before: Entry | None,
    intent: Intent,
    fence: TaggedCommit | None,
    reason: str,
    job_id: str | None,
) -> Entry:
    """Return the entry of an abandoned number: the watermark stays, and the work is planned again.

    Args:
        dataflow: the definition.
        before: the newest entry.
        intent: the slice's intent.
        fence: the commit that carries the number, in a table that matches the state; None if there is
            none.
        reason: why the number is abandoned.
        job_id: Dagster's job.
    """
    is_fence = fence is not None and fence.gives_up
    return next_entry(
        before,
        id=fence.owner if fence and is_fence and fence.owner else new_id(),
        number=intent.number,
        watermark=intent.before,
        why="abandon",
        reason=reason,
        run_id=intent.run_id,
        job_id=job_id,
        lower=intent.lower,
        # Nothing was loaded with the intent's definition: the state stays that of the one before, and a first number that is given up has none.
        fingerprint=before.fingerprint if before else "",
        kind=intent.kind,
        app_id=intent.app_id,
        # A number that is given up pins no schema. If its fence has made the table, the columns there belong to no schema either.
        new_columns=_holds_only_fences(before, fence),
        **(_of_table(dataflow, before, fence) if fence and is_fence else {}),
    )


def deleted_entry(
    dataflow: Dataflow,
    before: Entry | None,
    intent: Intent,
    commit: TaggedCommit | None,
    job_id: str | None,
) -> Entry:
    """Return the entry of a delete or an expiry: the watermark stays, and the deleted rows are counted.

    Args:
        dataflow: the definition.
        before: the newest entry.
        intent: the delete's intent, which names the deletes in force from now on.
        commit: the commit that deleted the rows, with all its counts; None if it is only foreseen.
        job_id: Dagster's job.
    """
    rows = before.total_rows if before else 0
    deleted = 0
    if commit is not None:
        deleted = rows if commit.removed is None else commit.removed
    return next_entry(
        before,
        id=intent.id,
        number=intent.number,
        watermark=intent.watermark,
        why=intent.why,
        reason=intent.reason,
        run_id=intent.run_id,
        job_id=job_id,
        fingerprint=before.fingerprint if before else intent.fingerprint,
        kind=intent.kind,
        app_id=intent.app_id,
        upper=intent.upper,
        predicate=intent.predicate,
        deletes=intent.deletes,
        deleted=deleted,
        expired=(before.expired if before else 0) + (deleted if intent.why == "expire" else 0),
        expiry=carry_expired(before, intent.number, intent.id, intent.upper)
        if intent.why == "expire" and intent.upper
        else (before.expiry if before else None),
        total_rows=max(0, rows - deleted),
        committed_by=commit.committed_by if commit else None,
        **(_of_table(dataflow, before, commit) if commit else {}),
    )


def dropped_entry(before: Entry | None, intent: Intent) -> Entry:
    """Return the entry that ends an unfinished decision, which wrote nothing."""
    return next_entry(
        before,
        number=intent.number,
        why="abandon",
        reason=f"{intent.why} did not finish",
        fingerprint=before.fingerprint if before else intent.fingerprint,
        kind=intent.kind,
        app_id=intent.app_id,
    )


def is_last_query(before: Entry | None, intent: Intent) -> bool:
    """Return whether a slice's query differs from the last slice's only in its files.

    False for a dataflow with ``transform`` or inputs: the code may have changed under its name, and the
    columns of an input with its version.
    """
    if before is None or not intent.files or intent.definition.get("transform") or intent.inputs:
        return False
    return before.pinned == intent.pinned and before.definition == short_hash(intent.definition)


def keyed_by(definition: Mapping[str, Any]) -> str:
    """Return how a load finds rows of its table: JSON of the load and its keys, if it uses keys.

    Args:
        definition: the parts that a write depends on, as an intent stores them.
    """
    by_keys = not definition.get("replace_by_watermark")
    keys = sorted({str(key).casefold() for key in definition.get("merge_keys") or ()}) if by_keys else []
    return json.dumps([definition.get("load"), *keys])


def names_other_table(dataflow: Dataflow, entry: Entry | None) -> bool:
    """Return whether the definition names another table than the entry."""
    return entry is not None and entry.table is not None and entry.table != dataflow.table


def table_fields(dataflow: Dataflow, commit: TableCommit) -> dict[str, Any]:
    """Return the fields of an entry that record a table commit; :func:`recorded_commit` reads them."""
    return {
        "table": dataflow.table,
        "table_version": commit.version,
        "table_commit": commit.id,
        "table_number": commit.number,
        "table_file": commit.file,
    }


def recorded_commit(entry: Entry) -> TableCommit:
    """Return the table commit that an entry records."""
    return TableCommit(entry.table_version, entry.table_commit, entry.table_number, entry.table_file)


def hash_lost_files(missing: Sequence[str]) -> str | None:
    """Return the hash by which an entry accepts missing files of its table; None if none are missing."""
    return short_hash({"missing": sorted(missing)}) if missing else None


def required_commit(entry: Entry | None) -> TableCommit | None:
    """Return the commit that the table's history must have; None if the entry counts no rows as loaded."""
    if entry is None or entry.table_version is None or holds_nothing(entry.kind, entry.state()):
        return None  # after a reset nothing is said of the rows: the table may be dropped before or after, and is then made again
    return recorded_commit(entry)


def _of_table(dataflow: Dataflow, before: Entry | None, commit: TaggedCommit) -> dict[str, Any]:
    """Return the fields that record a table commit; one that changes no file keeps the earlier file."""
    changes_none = commit.file is None and commit.removed == 0 and not commit.removed_recorded_file
    file = before.table_file if before and changes_none else commit.file
    return {**table_fields(dataflow, commit.commit), "table_file": file}


def _holds_only_fences(before: Entry | None, fence: TaggedCommit | None) -> bool:
    """Return whether the table holds nothing but fences: no rows, and columns that no load has pinned."""
    held_before = before is not None and before.new_columns
    if fence is None or not fence.gives_up:
        return held_before
    return fence.follows is None or (
        held_before and before is not None and fence.follows == before.table_version
    )
