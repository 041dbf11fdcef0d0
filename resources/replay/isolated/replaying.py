"""Replay into a table aside: chunk by chunk, by the loop that loads everything, under a log and a hold of its own (docs/reference/replay.md, Isolated)."""

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
from resources.outcome import Observer, Outcome
from resources.platform.opener import Opener
from resources.replay.chunk_runs import Piece, ProgressListener, Replayed, Report, read_chunks
from resources.replay.chunks import ReplayChunk
from resources.replay.isolated.chunks import (
    Parts,
    chunks_of,
    note_done,
    put_parts,
    remaining_chunks,
    stored_parts,
)
from resources.replay.isolated.claim import begin, check_unclaimed
from resources.replay.isolated.definition import check_defined_so, definition_of_rows
from resources.replay.isolated.promoting import promoted_entry
from resources.replay.isolated.refusals import changed_aside, stopped
from resources.replay.isolated.standing import (
    BESIDE,
    Aside,
    drop_command,
    is_marked,
    mark,
    names_of,
    stored_aside,
    stored_asides,
)
from resources.replay.isolated.unchanged import check_unchanged
from resources.replay.kind import Cut, ReplayKind
from resources.replay.options import ReplayOptions
from resources.tables.registry import find_format
from resources.watermarks.entry import new_id, utc_now

_LONGEST = 100
"""Characters of a part of a table's name: files and folders of the table have longer ones."""


def plan_aside(platform: Opener, dataflow: Dataflow, options: ReplayOptions, now: datetime) -> Plan[Any]:
    """Return what a replay would read, one slice a chunk. Opens no source, changes nothing.

    Raises:
        ConfigurationError, NeedsDecision: as :func:`replay_aside`.
    """
    aside = check_aside(platform, dataflow, options, now)
    replay, log = platform.replay(dataflow, options, now), platform.log
    chunks = chunks_of(log, aside) if aside is not None else ()
    if aside is None or not chunks:
        return replay.plan(replay.cut(), ())
    remaining, loading = {*remaining_chunks(log, aside)}, replay.loaded_by(aside.of(dataflow))
    slices = [replay.slices(loading, chunk) if chunk in remaining else () for chunk in chunks]
    return replay.plan(Cut(chunks, slices), {*chunks} - remaining)


def replay_aside(
    platform: Opener,
    dataflow: Dataflow,
    options: ReplayOptions,
    now: datetime,
    *,
    observer: Observer = lambda step, line: None,
    on_progress: ProgressListener = lambda reports: None,
    **how: Any,
) -> Replayed:
    """Read a range again into a table aside, or go on where the same replay has stopped.

    Args:
        platform: the resources.
        dataflow: whose rows they are.
        options: the range, and the table.
        now: the clock, aware.
        observer: hears of every step.
        on_progress: hears what has become of all chunks, after each.
        how: run_id, job_id, and attributes of :class:`resources.loop.holder_wait.Patience`, with a run that loads the same replay.

    Raises:
        ConfigurationError: the range, the table or the dataflow is not one that can be replayed so; nothing was changed.
        NeedsDecision: the replay there is being dropped, or is promoted.
    """
    existing = check_aside(platform, dataflow, options, now)
    replay, log = platform.replay(dataflow, options, now), platform.log
    aside = existing or _new(dataflow, replay)
    if not is_marked(log, aside, "complete"):
        aside = begin(log, aside)
    _check_same(aside, options)
    if aside.column is None and stored_parts(log, aside) is None:
        cut = replay.cut()
        put_parts(log, aside, Parts(chunks=tuple(cut.chunks), warnings=tuple(cut.warnings)))
    loop = platform.loop(replay.loaded_by(aside.of(dataflow)), now, observer=observer, **how)
    remaining = {*remaining_chunks(log, aside)}
    pieces = [
        Piece(
            chunk,
            partial(_request, platform, replay, aside, chunk),
            replay.reason(chunk),
            done=chunk not in remaining,
            finished=partial(note_done, log, aside, number),
        )
        for number, chunk in enumerate(chunks_of(log, aside))
    ]
    done = read_chunks(loop, pieces, on_progress)
    outcome = done.outcome
    outcome.warnings[:0] = (stored_parts(log, aside) or Parts()).warnings
    if outcome.error is None:
        mark(log, aside, "complete")
    else:
        _tell(outcome, done.chunks, aside)
    return done


def _request(platform: Opener, replay: ReplayKind, aside: Aside, chunk: ReplayChunk) -> Request:
    """Return what is asked for of a chunk, if the replay is still there and the table is what the chunks before have made of it."""
    if stored_aside(platform.log, aside) != aside or is_marked(platform.log, aside, "dropping"):
        raise stopped(aside)
    check_unchanged(platform, replay.dataflow, aside)
    return replay.request(chunk)


def _tell(outcome: Outcome, chunks: Sequence[Report], aside: Aside) -> None:
    """Have an error name the dataflow, not the log of the replay, and the ways on."""
    if isinstance(outcome.error, NeedsDecision):
        outcome.error = changed_aside(aside, outcome.error)
    elif outcome.error is not None:
        outcome.error.args = (outcome.error.message.replace(aside.log, aside.dataflow),)
    for report in chunks:
        report["error"] = report["error"] and outcome.error and outcome.error.message


def check_aside(platform: Opener, dataflow: Dataflow, options: ReplayOptions, now: datetime) -> Aside | None:
    """Return the replay that is there, if there is one. Opens no source, changes nothing.

    Raises:
        ConfigurationError, NeedsDecision: as :func:`replay_aside`.
    """
    assert options.table is not None
    if options.save_watermark:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected --into or --save-watermark, found both: a replay aside leaves the watermark as it is"
        )
    platform.replay(dataflow, options, now).check()
    _check_load(dataflow)
    _check_name(platform, dataflow, options.table)
    log = platform.log
    existing = next(
        (aside for aside in stored_asides(log, dataflow.name) if aside.table == options.table), None
    )
    if existing is None:
        _check_places(platform, dataflow, options.table)
        return None
    _check_same(existing, options)
    if is_marked(log, existing, "dropping"):
        raise NeedsDecision(
            f"dataflow {dataflow.name}: a drop of {options.table} was begun. End it, and replay again",
            code="replay_dropping",
            choices=(drop_command(existing),),
        )
    if promoted_entry(log, existing, log.newest(dataflow.name)) is not None:
        raise NeedsDecision(
            f"dataflow {dataflow.name}: the replay into {options.table} is promoted; only its table and its log are left. Remove them",
            code="replay_promoted",
            choices=(drop_command(existing),),
        )
    check_defined_so(dataflow, existing)
    return existing


def _check_load(dataflow: Dataflow) -> None:
    name, target = dataflow.name, dataflow.target
    if target.load == "scd2":
        raise ConfigurationError(
            f"dataflow {name}: expected a load that replaces rows of a range, found scd2: versions of a key follow each other over all ranges, so those of one range cannot"
            " be swapped. Replay in place, without --into: that adds the versions that are missing"
        )


def _check_name(platform: Opener, dataflow: Dataflow, table: str) -> None:
    parts = table.split("/")
    if len(parts) != 2 or not all(
        part.isidentifier() and part.isascii() and not part.startswith("_") and len(part) <= _LONGEST
        for part in parts
    ):
        raise ConfigurationError(
            f"dataflow {dataflow.name}: --into: expected <layer>/<name> in the lake, letters, digits and underscores, at most {_LONGEST} each, found {table!r}"
        )
    if {*names_of(table), table.removesuffix(BESIDE)} & platform.lineage.tables:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: --into: expected a table that no dataflow loads or reads, found {table}"
        )
    check_unclaimed(platform.log, dataflow, table)


def _check_places(platform: Opener, dataflow: Dataflow, table: str) -> None:
    """Raise if anything lies where a replay that begins now puts its rows, and records that do not parse: all of it is removed with the replay."""
    for name in names_of(table):
        place = platform.lake.child(name)
        if find_format(place) is not None or not is_empty(place):
            raise ConfigurationError(
                f"dataflow {dataflow.name}: --into: expected nothing at {name}, or the table of a replay of this dataflow, found another table, or files."
                " Use another name"
            )


def _check_same(aside: Aside, options: ReplayOptions) -> None:
    if aside.request != options.request:
        raise ConfigurationError(
            f"dataflow {aside.dataflow}: table {aside.table} holds another replay, of {aside.words}. Promote or drop it, or use another table",
            choices=(drop_command(aside),),
        )


def _new(dataflow: Dataflow, replay: ReplayKind) -> Aside:
    """Return a replay that begins now."""
    options, newest = replay.options, replay.newest
    assert options.table is not None
    return Aside(
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
