"""Replay in place: chunks go into the dataflow's own table, each under the next number of its log (docs/reference/replay.md, In place).

One object beside the log says that a replay is under way, and since which number: whatever dies, the same command goes on with the chunks that
have no entry. It is removed when all chunks are done, so the same command then reads them again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.plan import Plan
from resources.loop.loop import Loop
from resources.outcome import Observer
from resources.platform.opener import Opener
from resources.replay.chunk_runs import Piece, ProgressListener, Replayed, read_chunks
from resources.replay.kind import ReplayKind
from resources.replay.options import ReplayOptions
from resources.replay.under_way import begin, find, forget


def plan_in_place(platform: Opener, dataflow: Dataflow, options: ReplayOptions, now: datetime) -> Plan[Any]:
    """Return what a replay would read, one slice a chunk. Opens no source of column kinds, changes nothing.

    Raises:
        ConfigurationError: as :func:`replay_in_place`.
    """
    replay = _checked(platform, dataflow, options, now)
    under_way = find(platform.log, dataflow.name, options.words)
    cut = replay.cut(under_way.range if under_way else None)
    return replay.plan(cut, replay.done(cut, under_way))


def replay_in_place(
    platform: Opener,
    dataflow: Dataflow,
    options: ReplayOptions,
    now: datetime,
    *,
    observer: Observer = lambda step, line: None,
    on_progress: ProgressListener = lambda reports: None,
    **how: Any,
) -> Replayed:
    """Read a range again into the dataflow's own table, or go on where the same replay has stopped.

    Args:
        platform: the resources.
        dataflow: whose rows they are.
        options: the range, and what becomes of table and watermark.
        now: the clock, aware.
        observer: hears of every step.
        on_progress: hears what has become of all chunks, after each.
        how: run_id, job_id, and attributes of :class:`resources.loop.holder_wait.Patience`, with a live run.

    Raises:
        ConfigurationError: the range or the dataflow is not one that can be replayed so; nothing was changed.
    """
    replay = _checked(platform, dataflow, options, now)
    return read_again(
        replay, platform.loop(replay.loaded_by(dataflow), now, observer=observer, **how), on_progress
    )


def read_again(
    replay: ReplayKind, loop: Loop[Any], on_progress: ProgressListener = lambda reports: None
) -> Replayed:
    """Read all chunks of a replay that are still to be read; when none is left, the same may be asked for again.

    Args:
        replay: what is read.
        loop: of the dataflow that it is loaded by.
        on_progress: hears what has become of all chunks, after each.
    """
    log, name, words = replay.platform.log, replay.dataflow.name, replay.options.words
    under_way = begin(log, name, words, replay.range)
    cut = replay.cut(under_way.range)
    done, table = replay.done(cut, under_way), loop.context.table
    pieces = [
        Piece(
            chunk,
            partial(replay.request, chunk, under_way.number, table),
            replay.reason(chunk),
            done=chunk in done,
        )
        for chunk in cut.chunks
    ]
    warnings = [
        *cut.warnings,
        *(replay.passed_over([chunk for chunk in cut.chunks if chunk not in done]) or ()),
    ]
    replayed = read_chunks(loop, pieces, on_progress)
    replayed.outcome.warnings[:0] = warnings
    if replayed.outcome.error is None:
        forget(log, name, words)
    return replayed


def _checked(platform: Opener, dataflow: Dataflow, options: ReplayOptions, now: datetime) -> ReplayKind:
    """Return the replay that is asked for.

    Raises:
        ConfigurationError: the range or the dataflow is not one that can be replayed so.
    """
    name, target = dataflow.name, dataflow.target
    replay = platform.replay(dataflow, options, now)
    replay.check()
    if target.only_adds and not options.replace:
        ways = (
            replace(options, replace=True),
            replace(options, table=f"{dataflow.table}_replay", save_watermark=False),
        )
        raise ConfigurationError(
            f"dataflow {name}: expected --replace, found a replay into a table of load append: its rows would be there twice. With --replace each"
            " chunk deletes its own rows and adds them again, in one commit; with --into it loads a table of its own. With --dry-run either shows"
            " what it would do",
            choices=[way.command(name) for way in ways],
        )
    if target.load == "scd2" and options.replace:
        raise ConfigurationError(
            f"dataflow {name}: expected no --replace, found it beside load scd2: no version of a history is deleted; a replay adds those that"
            " are missing"
        )
    return replay
