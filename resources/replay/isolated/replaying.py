"""Replay into an isolated table, chunk by chunk, under a log and a hold of its own.

See docs/reference/replay.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, NeedsDecision
from partitions.plan import Plan
from partitions.request import Request
from resources.listing.removal import is_empty
from resources.loop.rows.delete_marks import UNFIT
from resources.outcome import Observer, Outcome
from resources.platform.opener import Opener
from resources.replay.chunk_runs import ProgressListener, ReplayResult, ReplayStep, Report, read_chunks
from resources.replay.chunks import ReplayChunk
from resources.replay.isolated.chunks import (
    StoredChunks,
    chunks_of,
    note_done,
    put_chunks,
    remaining_chunks,
    stored_chunks,
)
from resources.replay.isolated.claim import begin_isolated, check_unclaimed
from resources.replay.isolated.definition import check_same_definition, definition_of_rows
from resources.replay.isolated.promoted_entries import promoted_entry
from resources.replay.isolated.refusals import dropped_while_read, table_changed
from resources.replay.isolated.standing import (
    SUFFIXES,
    IsolatedReplay,
    drop_command,
    is_marked,
    mark,
    names_of,
    stored_replay,
    stored_replays,
)
from resources.replay.isolated.unchanged import check_unchanged
from resources.replay.kind import Cut, ReplayKind
from resources.replay.options import ReplayOptions
from resources.tables.registry import find_format
from resources.watermarks.entry import new_id, utc_now

_MAX_NAME_LENGTH = 100
"""Characters of a part of a table's name: files and folders of the table have longer ones."""


def plan_isolated(platform: Opener, dataflow: Dataflow, options: ReplayOptions, now: datetime) -> Plan[Any]:
    """Return what an isolated replay would read, one slice per chunk. Changes nothing.

    A new replay of files or windows asks the source for them.

    Raises:
        ConfigurationError, NeedsDecision: as :func:`replay_isolated`.
    """
    isolated = existing_replay(platform, dataflow, options, now)
    replay, log = platform.replay(dataflow, options, now), platform.log
    chunks = chunks_of(log, isolated) if isolated is not None else ()
    if isolated is None or not chunks:
        return replay.plan(replay.cut(), ())
    remaining, loading = (
        {*remaining_chunks(log, isolated)},
        replay.loaded_by(isolated.loading_dataflow(dataflow)),
    )
    slices = [replay.slices(loading, chunk) if chunk in remaining else () for chunk in chunks]
    return replay.plan(Cut(chunks, slices), {*chunks} - remaining)


def replay_isolated(
    platform: Opener,
    dataflow: Dataflow,
    options: ReplayOptions,
    now: datetime,
    *,
    observer: Observer = lambda step, line: None,
    on_progress: ProgressListener = lambda reports: None,
    **how: Any,
) -> ReplayResult:
    """Read a range again into an isolated table, or continue the same replay.

    Args:
        platform: the resources.
        dataflow: the dataflow.
        options: the range, and the table.
        now: the clock, aware.
        observer: is called at each step.
        on_progress: is called with all reports after each chunk.
        how: run_id, job_id, and attributes of :class:`resources.loop.holder_wait.HolderPolicy`, for a run
            that loads the same replay.

    Raises:
        ConfigurationError: the range, the table or the dataflow cannot be replayed like this; nothing was
            changed.
        NeedsDecision: the table's replay is being dropped, or is promoted; or the definition has changed
            since the replay began.
    """
    existing = existing_replay(platform, dataflow, options, now)
    replay, log = platform.replay(dataflow, options, now), platform.log
    isolated = existing or _new_replay(dataflow, replay)
    if not is_marked(log, isolated, "complete"):
        isolated = begin_isolated(log, isolated)
    _check_same(isolated, options)
    if isolated.column is None and stored_chunks(log, isolated) is None:
        cut = replay.cut()
        put_chunks(log, isolated, StoredChunks(chunks=tuple(cut.chunks), warnings=tuple(cut.warnings)))
    loading = replay.loaded_by(isolated.loading_dataflow(dataflow))
    loop = platform.loop(loading, now, observer=observer, live=dataflow, **how)
    remaining = {*remaining_chunks(log, isolated)}
    steps = [
        ReplayStep(
            chunk,
            partial(_request, platform, replay, isolated, chunk),
            replay.reason(chunk),
            is_done=chunk not in remaining,
            on_finish=partial(note_done, log, isolated, number),
            find_unread=replay.find_unread,
        )
        for number, chunk in enumerate(chunks_of(log, isolated))
    ]
    result = read_chunks(loop, steps, on_progress)
    outcome = result.outcome
    outcome.warnings[:0] = (stored_chunks(log, isolated) or StoredChunks()).warnings
    if outcome.error is None:
        mark(log, isolated, "complete")
    else:
        _rename_in_errors(outcome, result.reports, isolated)
    return result


def _request(platform: Opener, replay: ReplayKind, isolated: IsolatedReplay, chunk: ReplayChunk) -> Request:
    """Return the request for a chunk; raise if the replay was dropped, or its table changed by others."""
    if stored_replay(platform.log, isolated) != isolated or is_marked(platform.log, isolated, "dropping"):
        raise dropped_while_read(isolated)
    check_unchanged(platform, replay.dataflow, isolated)
    return replay.request(chunk)


def _rename_in_errors(outcome: Outcome, chunks: Sequence[Report], isolated: IsolatedReplay) -> None:
    """Have the errors name the dataflow instead of the replay's log, with the remedies."""
    if isinstance(outcome.error, NeedsDecision) and outcome.error.code != UNFIT:
        outcome.error = table_changed(isolated, outcome.error)
    elif outcome.error is not None:
        outcome.error.args = (outcome.error.message.replace(isolated.log, isolated.dataflow),)
    for report in chunks:
        report["error"] = report["error"] and outcome.error and outcome.error.message


def existing_replay(
    platform: Opener, dataflow: Dataflow, options: ReplayOptions, now: datetime
) -> IsolatedReplay | None:
    """Return the replay into the table, if there is one. Opens no source, changes nothing.

    Raises:
        ConfigurationError, NeedsDecision: as :func:`replay_isolated`.
    """
    assert options.table is not None
    if options.save_watermark:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected --into or --save-watermark, found both: an isolated replay leaves the watermark as it is"
        )
    platform.replay(dataflow, options, now).check()
    _check_load(dataflow)
    _check_name(platform, dataflow, options.table)
    log = platform.log
    existing = next(
        (isolated for isolated in stored_replays(log, dataflow.name) if isolated.table == options.table), None
    )
    if existing is None:
        _check_places(platform, dataflow, options.table)
        return None
    _check_same(existing, options)
    if is_marked(log, existing, "dropping"):
        raise NeedsDecision(
            f"dataflow {dataflow.name}: a drop of {options.table} is unfinished. Finish it, and replay again",
            code="replay_dropping",
            choices=(drop_command(existing),),
        )
    if promoted_entry(log, existing, log.newest(dataflow.name)) is not None:
        raise NeedsDecision(
            f"dataflow {dataflow.name}: the replay into {options.table} is promoted; only its table and its log remain. Remove them",
            code="replay_promoted",
            choices=(drop_command(existing),),
        )
    check_same_definition(dataflow, existing)
    return existing


def _check_load(dataflow: Dataflow) -> None:
    name, target = dataflow.name, dataflow.target
    if target.load == "scd2":
        raise ConfigurationError(
            f"dataflow {name}: expected a load that replaces rows of a range, found scd2: a key's versions follow each other across ranges, so those of one range cannot be"
            " swapped. Replay in place, without --into: that adds the missing versions"
        )
    option = (
        "missing_columns: keep" if target.keeps_missing_columns else "immutable" if target.immutable else ""
    )
    if option:
        raise ConfigurationError(
            f"dataflow {name}: expected a load whose rows depend on their range alone, found {option}: rows keep values"
            " that earlier ranges have loaded, which an isolated table lacks. Replay in place, without --into"
        )


def _check_name(platform: Opener, dataflow: Dataflow, table: str) -> None:
    parts = table.split("/")
    if len(parts) != 2 or not all(
        part.isidentifier() and part.isascii() and not part.startswith("_") and len(part) <= _MAX_NAME_LENGTH
        for part in parts
    ):
        raise ConfigurationError(
            f"dataflow {dataflow.name}: --into: expected <layer>/<name> in the lake, letters, digits and underscores, at most {_MAX_NAME_LENGTH} each, found {table!r}"
        )
    owners = {table.removesuffix(suffix) for suffix in SUFFIXES}
    if {*names_of(table), *owners} & platform.lineage.tables:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: --into: expected a table that no dataflow loads or reads, found {table}"
        )
    check_unclaimed(platform.log, dataflow, table)


def _check_places(platform: Opener, dataflow: Dataflow, table: str) -> None:
    """Raise if anything lies at the names of a new replay's tables: a drop would remove it, too."""
    for name in names_of(table):
        place = platform.lake.child(name)
        if find_format(place) is not None or not is_empty(place):
            raise ConfigurationError(
                f"dataflow {dataflow.name}: --into: expected nothing at {name}, or the table of a replay of this dataflow, found another table or files."
                " Use another name"
            )


def _check_same(isolated: IsolatedReplay, options: ReplayOptions) -> None:
    if isolated.request != options.request:
        raise ConfigurationError(
            f"dataflow {isolated.dataflow}: table {isolated.table} holds another replay, of {isolated.words}. Promote or drop it, or use another table",
            choices=(drop_command(isolated),),
        )


def _new_replay(dataflow: Dataflow, replay: ReplayKind) -> IsolatedReplay:
    """Return a replay that begins now."""
    options, newest = replay.options, replay.newest
    assert options.table is not None
    return IsolatedReplay(
        id=new_id(),
        dataflow=dataflow.name,
        kind=dataflow.kind,
        table=options.table,
        request=options.request,
        column=replay.column,
        interval=options.interval,
        range=replay.range(),
        number=newest.number if newest else 0,
        watermark=newest.watermark if newest else "{}",
        definition=definition_of_rows(dataflow),
        time=utc_now(),
    )
