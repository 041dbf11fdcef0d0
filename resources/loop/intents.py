"""Step 1, plan: the intent that fixes what a number will be, stored before any write.

See docs/explanation/protocol.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from partitions.errors import Conflict, DataflowHeld, StrandlineError
from partitions.fingerprint import fingerprint
from partitions.instants import time_text
from partitions.plan import FixesInputs, TellsSourceIdentity
from partitions.request import Forced, Repair, Replay, ReplayCommits, ReplayFiles
from partitions.sentinels import serialise
from resources.kinds.contract.bad_parts import SetsAside
from resources.kinds.contract.planning import CountsFirstLoads
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.loop.guards.definition import definition_of
from resources.loop.guards.watermark import check_rises
from resources.loop.lease import keep_lease
from resources.loop.rules.row_rules import rules_for_intent
from resources.outcome import Step
from resources.tables.contract.commits import TableHead, Version
from resources.watermarks import holder as holders
from resources.watermarks.entry import Entry, Intent, Replaces, new_id, utc_now
from resources.watermarks.stored_objects import QUARANTINE


def draft_intent(
    run: RunContext[SliceT], entry: Entry | None, head: TableHead, slice_: SliceT, pinned: str
) -> Intent:
    """Return the intent of the next number and store its lists; no other run sees it yet.

    Args:
        run: the run.
        entry: the newest entry.
        head: the head of the table, which matches the entry.
        slice_: the slice that the number will load.
        pinned: text of the schema that the slice is read with.

    Raises:
        NeedsDecision: code ``would_fall``: the slice would lower the watermark.
        SourceError: a table that the user's step reads beside the rows is missing.
    """
    state, size = entry.state() if entry else {}, slice_.size
    watermark = serialise(slice_.advance(state))
    check_rises(run, entry, watermark)
    number, intent_id = entry.number + 1 if entry else 1, new_id()
    object_name = f"{number:010d}-{intent_id}"
    file_list = run.log.put_list(run.name, object_name, run.kind.stored_slices.to_rows(slice_))
    run.notify(Step.LIST_KEPT, file_list)
    quarantine, quarantined_count = _store_quarantine(run, entry, slice_, object_name)
    replaces = _replaces(entry, head, slice_)
    reads_again = replaces == "own" or slice_.why in ("replay", "reconcile")
    return Intent(
        id=intent_id,
        number=number,
        dataflow=run.name,
        kind=run.dataflow.kind,
        app_id=entry.app_id if entry else new_id(),
        why=slice_.why,
        before=serialise(state),
        watermark=watermark,
        lower=serialise(slice_.lower) if slice_.lower else None,
        upper=serialise(slice_.upper),
        reason=run.request.reason
        if isinstance(run.request, Replay | ReplayFiles | ReplayCommits | Forced | Repair)
        else None,
        definition=definition_of(run.dataflow),
        fingerprint=fingerprint(run.dataflow),
        pinned=run.log.put_schema(run.name, pinned),
        file_list=file_list,
        files=size.files,
        work_units=size.work_units,
        failed_units=size.failed_units,
        quarantined=quarantined_count,
        quarantine=quarantine,
        inputs={**run.inputs.newest_versions(), **_fixed_inputs(slice_)} or None,
        since=serialise(slice_.since) if slice_.since else None,
        replaces=replaces,
        first_loads=first_loads(run, entry, slice_) if reads_again else None,
        modified=run.kind.planning.modified(slice_, state, run.now),
        source=_source(entry, slice_),
        holder=holders.current_holder(run.run_id),
        run_id=run.run_id,
        time=utc_now(),
        table_version=head.version,
        rules=rules_for_intent(run),
    )


def first_loads(run: RunContext[SliceT], entry: Entry | None, slice_: SliceT) -> int:
    """Return how many files a slice adds to the loaded ones; 0 for a kind without files."""
    planning = run.kind.planning
    return planning.count_first_loads(entry, slice_) if isinstance(planning, CountsFirstLoads) else 0


def _fixed_inputs(slice_: object) -> Mapping[str, Version]:
    """Return the versions of inputs that the plan has fixed, by name."""
    return slice_.input_versions if isinstance(slice_, FixesInputs) else {}


def _source(entry: Entry | None, slice_: object) -> str | None:
    """Return the identity of the source: the slice's if it has one, else the entry's."""
    identity = slice_.source if isinstance(slice_, TellsSourceIdentity) else None
    return identity if identity is not None else entry.source if entry else None


def put_intent(run: RunContext[SliceT], intent: Intent, amount: str) -> None:
    """Store an intent, which fixes what its number does, and hold the number in this process.

    Raises:
        Conflict, DataflowHeld: another run has finished the number, or works on it.
    """
    holders.mark_active(intent.id)
    try:
        _put_first(run, intent)
        run.notify(Step.INTENT_PUT, f"slice {intent.number}: {amount}")
    except BaseException:  # the number must not be held as long as the process lives
        holders.mark_inactive(intent.id)
        raise


def _put_first(run: RunContext[SliceT], intent: Intent) -> None:
    winner = run.log.put_intent(intent)
    if winner.id != intent.id:
        raise lost_number_error(run, winner)


@contextmanager
def holding(run: RunContext[SliceT], intent: Intent) -> Iterator[None]:
    """Hold an intent inside the block, with a lease that others can see."""
    holders.mark_active(intent.id)
    try:
        with keep_lease(run.log, intent):
            yield
    finally:
        holders.mark_inactive(intent.id)


def lost_number_error(run: RunContext[SliceT], winner: Intent) -> StrandlineError:
    """Return the error for a number that another run has finished, or works on."""
    newest = run.log.newest(run.name)
    if newest is not None and newest.number >= winner.number:
        return Conflict(
            f"dataflow {run.name}: another run committed number {winner.number} first (run "
            f"{winner.run_id or 'unknown'}). This run wrote nothing for it. Run again to continue from "
            "there"
        )
    return held_error(winner)


def held_error(intent: Intent) -> DataflowHeld:
    """Return the error for a number that a living run or decision works on."""
    holder = intent.holder
    doing = "loading" if intent.loads_slice else "deciding"
    by_run = f", run {intent.run_id}" if intent.run_id else ""
    return DataflowHeld(
        f"dataflow {intent.dataflow} is held: process {holder.pid} on {holders.host_name(holder)}{by_run} has "
        f"been {doing} number {intent.number} since {time_text(intent.time)}. Nothing was changed. Wait "
        "until it ends, then run again"
    )


def _replaces(entry: Entry | None, head: TableHead, slice_: SliceT) -> Replaces | None:
    """Return which rows the slice's commit deletes: all, its own, or none.

    A table that holds only fences is replaced with its columns, unless another writer has written to it.
    """
    if entry and (entry.replace_table or (entry.new_columns and head.version == entry.table_version)):
        return "table"
    return "own" if slice_.replaces else None


def _store_quarantine(
    run: RunContext[SliceT], entry: Entry | None, slice_: SliceT, name: str
) -> tuple[str | None, int]:
    """Store the quarantine after a slice; return its object's name, and how many files the slice adds."""
    bad_parts = run.kind.bad_parts
    quarantined, added = (
        bad_parts.quarantine(entry, slice_) if isinstance(bad_parts, SetsAside) else (None, 0)
    )
    if quarantined is None:
        return (entry.quarantine if entry else None), added
    return (run.log.put_list(run.name, name, quarantined, QUARANTINE) if quarantined.rows else None), added
