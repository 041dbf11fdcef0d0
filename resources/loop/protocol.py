"""The commit protocol of one number: plan, write, verify, commit; a module per step.

A process may die at any point. It leaves either nothing, or an intent that :func:`resume_slice` finishes
the same way.

See docs/explanation/protocol.md.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from partitions.errors import BadFile, BadPart, Conflict, SchemaEvolved
from partitions.path.bad_files import CHANGED_WHILE_READ
from partitions.plan import pluralize
from resources.kinds.contract.reading import BuildsOnState, SliceBase
from resources.kinds.contract.slices import SliceT, reads_source
from resources.kinds.contract.writing import ROWS, KeepsStats, StatsReader, WriteStats
from resources.loop.appending import append_abandoned, append_loaded
from resources.loop.context import RunContext
from resources.loop.giving_up import give_up
from resources.loop.guards.keys import check_keys
from resources.loop.intents import draft_intent, holding, put_intent
from resources.loop.interruption_retries import retry_interruptions
from resources.loop.rows.slice_rows import observe_again
from resources.loop.rules.row_rules import counts_of
from resources.loop.verifying import check_log, find_commit, guarded_head, verified_commit
from resources.loop.writing import analysed_rows, reason_of, write
from resources.outcome import Committed, NotCommitted, Step
from resources.tables.contract.commits import TaggedCommit
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.stored_objects import OBSERVED

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def commit_slice(
    run: RunContext[SliceT], entry: Entry | None, slice_: SliceT, pinned: str
) -> Committed | NotCommitted:
    """Commit a slice as the number after an entry.

    Args:
        run: the run.
        entry: the newest entry.
        slice_: the slice that was planned on the entry.
        pinned: text of the schema that the slice is read with.

    Returns:
        the new entry; or, for example if a part of the slice cannot be read, the reason why there is none,
        or an abandoned one.

    Raises:
        Conflict, DataflowHeld: another run was faster, or works on the number.
        NeedsDecision: state and table do not match; the slice would lower the watermark; a delete in force
            does not fit its rows; or the table has several rows of a key.
        ConfigurationError, SchemaError, SourceError: the definition or the source does not allow the slice.
        StrandlineError: code ``query``: the query or function does not fit the rows.
        TargetError: the table cannot hold the rows, before anything is stored; or the write failed, and the
            next run finishes the intent.
    """
    started = time.monotonic()
    with run.staging.emptied():
        try:
            base, planned = SliceBase(run.spark, entry, pinned, run.now), slice_
            slice_ = retry_interruptions(lambda: run.kind.reading.fix(planned, base))
            intent = draft_intent(run, entry, guarded_head(run, entry), slice_, pinned)
            # Before the intent is put: a query that does not fit its rows must not leave a number that no run can finish.
            rows = retry_interruptions(lambda: analysed_rows(run, entry, intent, slice_))
        except (BadPart, SchemaEvolved) as why:
            return NotCommitted(entry, why)
        check_keys(run, entry, intent)
        put_intent(run, intent, slice_.size.amount)
        with holding(run, intent):
            return _write_and_append(run, entry, intent, slice_, rows, started)


def resume_slice(
    run: RunContext[SliceT], entry: Entry | None, intent: Intent, slice_: SliceT
) -> Committed | NotCommitted:
    """Finish the intent of a dead run: look up its commit, write it if it is missing, append its entry.

    Returns:
        as :func:`commit_slice`; a slice that can no longer be read is abandoned.

    Raises:
        Conflict: another run has finished it.
        SchemaError: the source or the definition needs another schema than the intent's; the intent stays.
        NeedsDecision: state and table do not match; nothing was written.
        TargetError: the write failed; the intent stays.
    """
    started = time.monotonic()
    with run.staging.emptied(), holding(run, intent):
        tagged = find_commit(run, entry, intent)
        if tagged is None:
            try:
                if reads_source(slice_):
                    retry_interruptions(
                        lambda: run.kind.reading.check_schema(run.spark, run.log.get_schema(intent.pinned))
                    )
                run.kind.reading.check_unchanged(slice_)
                if isinstance(reading := run.kind.reading, BuildsOnState):
                    # Nothing looks at it again before the rows are written.
                    base = SliceBase(run.spark, entry, run.log.get_schema(intent.pinned), run.now)
                    retry_interruptions(partial(reading.check_fixed, slice_, base))
            except (BadPart, SchemaEvolved) as why:
                if abandoned := give_up(run, entry, intent, reason_of(why)):
                    return NotCommitted(abandoned, why)
                tagged = find_commit(run, entry, intent)
        if tagged is None:
            return _write_and_append(run, entry, intent, slice_, None, started, recovered=True)
        return _append(run, entry, intent, slice_, tagged, {}, started, recovered=True)


def _write_and_append(
    run: RunContext[SliceT],
    entry: Entry | None,
    intent: Intent,
    slice_: SliceT,
    rows: DataFrame | None,
    started: float,
    *,
    recovered: bool = False,
) -> Committed | NotCommitted:
    """Write a slice, look its commit up, append its entry."""
    written = write(run, entry, intent, slice_, rows)
    if isinstance(written, NotCommitted):
        return written
    tagged = verified_commit(run, entry, intent)
    stats = _store_stats(run, intent, written, tagged) if tagged.owner == intent.id else {}
    return _append(run, entry, intent, slice_, tagged, stats, started, recovered=recovered)


def _append(
    run: RunContext[SliceT],
    entry: Entry | None,
    intent: Intent,
    slice_: SliceT,
    tagged: TaggedCommit,
    stats: WriteStats,
    started: float,
    *,
    recovered: bool,
) -> Committed | NotCommitted:
    """Append the entry of a commit that was looked up; for a fence, the entry of an abandoned number."""
    if tagged.owner != intent.id:  # the table holds the number for a fence, which must still be recorded
        abandoned = append_abandoned(run, entry, intent, tagged, "abandoned by another run")
        return NotCommitted(abandoned, _given_up_error(intent))
    run.notify(Step.VERIFIED, f"slice {intent.number} is version {tagged.version} of the table")
    if recovered:
        observed_again = observe_again(run, entry, intent, slice_)
        stats = stats or observed_again
    changed = None if recovered else _change_while_read(run, slice_)
    check_log(run, intent)
    appended, loaded, is_own = append_loaded(run, entry, intent, tagged, stats=stats)
    if not is_own and recovered:
        return NotCommitted(appended, _finished_error(intent))
    size = slice_.size
    amount = "" if size.ranges else f" of {size.amount}"
    deleted = f", {appended.deleted:,} deleted" if appended.deleted else ""
    run.notify(Step.APPENDED, f"slice {intent.number}: {pluralize(loaded.rows, 'row')}{deleted}{amount}")
    return Committed(
        appended,
        # Another run took this one for dead, and counts the slice.
        loaded.rows if is_own else 0,
        size.files if is_own else 0,
        (size.bytes or 0) if is_own else 0,
        time.monotonic() - started,
        recovered,
        loaded.removed if is_own else 0,
        slice_,
        stats,
        changed,
    )


def _store_stats(
    run: RunContext[SliceT], intent: Intent, read_stats: StatsReader, tagged: TaggedCommit
) -> WriteStats:
    """Store the write's statistics before the entry exists, and return them; none if rows were read twice.

    A write that Spark retried has read its source twice, and Spark in this process reports the first time.
    An append's number of rows reveals it; every other load rereads the same rows, which does no harm.
    """
    stats = dict(read_stats())
    (observed_rows,) = stats.pop(ROWS, (None,))
    withheld = sum((run.withheld.of_slice(intent.number) or {}).values())
    counts = counts_of(run, intent)
    rejected = counts.rejected if counts else 0
    if observed_rows not in (None, tagged.rows + withheld + rejected) and run.dataflow.target.only_adds:
        return {}
    if stats and isinstance(run.kind.writing, KeepsStats):
        rows = run.kind.writing.stats_to_rows(stats)
        run.log.put_list(run.name, f"{intent.number:010d}-{intent.id}", rows, OBSERVED)
    return stats


def _change_while_read(run: RunContext[SliceT], slice_: SliceT) -> BadFile | None:
    """Return an error if a file changed while it was read; its rows are committed, of an unknown version."""
    try:
        run.kind.reading.check_unchanged(slice_)
    except BadFile as bad:
        return BadFile(
            f"file {bad.path} changed while it was being loaded. Its rows are in the table once, but from "
            "an unknown version of the file. Files must not change after they appear; for folders that "
            "are not filled by rename, set `settle`",
            path=bad.path,
            code=CHANGED_WHILE_READ,
        )
    return None


def _finished_error(intent: Intent) -> Conflict:
    return Conflict(
        f"dataflow {intent.dataflow}: slice {intent.number} was finished by another run at the same time, which counts its rows"
    )


def _given_up_error(intent: Intent) -> Conflict:
    return Conflict(
        f"dataflow {intent.dataflow}: slice {intent.number} was abandoned by another run. Run again: the "
        "run plans its work anew"
    )
