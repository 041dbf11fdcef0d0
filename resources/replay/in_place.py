"""Replay in place: chunks go into the dataflow's own table, each under the next number.

One object beside the log says that a replay is in progress, and since which number
(docs/reference/replay.md, In place). If the process dies, the same command continues with the chunks that
have no entry. The object is removed when all chunks are done, so the same command then starts a new
replay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.plan import Plan
from resources.loop.loop import Loop
from resources.notes.last_run import note_attempt, note_stop
from resources.outcome import Observer
from resources.platform.opener import Opener
from resources.replay.chunk_runs import ProgressListener, ReplayResult, ReplayStep, read_chunks
from resources.replay.kind import ReplayKind
from resources.replay.options import ChosenPartitions, ReplayOptions
from resources.replay.under_way import begin_in_place, find_in_place, forget_in_place


def plan_in_place(platform: Opener, dataflow: Dataflow, options: ReplayOptions, now: datetime) -> Plan[Any]:
    """Return what a replay in place would read, one slice per chunk. Changes nothing.

    Opens no source for column watermarks.

    Raises:
        ConfigurationError, NeedsDecision: as :func:`replay_in_place`.
    """
    replay = _checked_replay(platform, dataflow, options, now)
    in_progress = find_in_place(platform.log, dataflow.name, options.words)
    cut = replay.cut(in_progress.range if in_progress else None)
    return replay.plan(cut, replay.done(cut, in_progress))


def replay_in_place(
    platform: Opener,
    dataflow: Dataflow,
    options: ReplayOptions,
    now: datetime,
    *,
    observer: Observer = lambda step, line: None,
    on_progress: ProgressListener = lambda reports: None,
    **how: Any,
) -> ReplayResult:
    """Read a range again into the dataflow's own table, or continue the same replay.

    Args:
        platform: the resources.
        dataflow: the dataflow.
        options: the range, and what happens to table and watermark.
        now: the clock, aware.
        observer: is called at each step.
        on_progress: is called with all reports after each chunk.
        how: run_id, job_id, and attributes of :class:`resources.loop.holder_wait.HolderPolicy`.

    Raises:
        ConfigurationError: the range or the dataflow cannot be replayed like this; nothing was changed.
        NeedsDecision: an operator has to say what becomes of rows; nothing was changed.
    """
    replay = _checked_replay(platform, dataflow, options, now)
    return read_again(
        platform,
        replay,
        platform.loop(replay.loaded_by(dataflow), now, observer=observer, **how),
        on_progress,
    )


def read_again(
    platform: Opener,
    replay: ReplayKind,
    loop: Loop[Any],
    on_progress: ProgressListener = lambda reports: None,
) -> ReplayResult:
    """Read the remaining chunks of a replay, and note how it went; end the replay when none remains.

    Args:
        platform: the resources.
        replay: the replay.
        loop: the loop of the dataflow that loads it.
        on_progress: is called with all reports after each chunk.
    """
    log, name, words = platform.log, replay.dataflow.name, replay.options.words
    in_progress = begin_in_place(log, name, words, replay.range)
    cut = replay.cut(in_progress.range)
    done, table = replay.done(cut, in_progress), loop.context.table
    steps = [
        ReplayStep(
            chunk,
            partial(replay.request, chunk, in_progress.number, table),
            replay.reason(chunk),
            is_done=chunk in done,
            find_unread=replay.find_unread,
        )
        for chunk in cut.chunks
    ]
    lost_rows: Sequence[str] = ()
    if isinstance(replay.options, ChosenPartitions):  # nobody was asked
        lost_rows = replay.describe_lost_rows(platform.with_intent_ended(replay.dataflow, replay.now))
    warnings = [
        *cut.warnings,
        *lost_rows,
        *(replay.describe_unread_rows([chunk for chunk in cut.chunks if chunk not in done]) or ()),
    ]
    try:
        replayed = read_chunks(loop, steps, on_progress)
    except KeyboardInterrupt:
        note_stop(log, name, loop.context.run_id)
        raise
    replayed.outcome.warnings[:0] = warnings
    if replayed.outcome.error is None:
        forget_in_place(log, name, words)
    note_attempt(log, replayed.outcome, is_replay=True)
    return replayed


def _checked_replay(
    platform: Opener, dataflow: Dataflow, options: ReplayOptions, now: datetime
) -> ReplayKind:
    """Return the requested replay, once the dataflow and the operator's answers allow it.

    Raises:
        ConfigurationError: the range or the dataflow cannot be replayed like this.
        NeedsDecision: an operator has to say what becomes of rows.
    """
    name, target = dataflow.name, dataflow.target
    replay = platform.replay(dataflow, options, now)
    replay.check()
    if target.only_adds and not options.replace:
        alternatives = (
            replace(options, replace=True),
            replace(options, table=f"{dataflow.table}_replay", save_watermark=False),
        )
        raise ConfigurationError(
            f"dataflow {name}: expected --replace, found load: append: the table would hold the rows of the range twice. With --replace each chunk"
            " deletes its rows in the commit that loads them. With --into the replay loads a table of its own. --dry-run shows what either would"
            " do",
            choices=[alternative.command(name) for alternative in alternatives],
        )
    if target.load == "scd2" and options.replace:
        raise ConfigurationError(
            f"dataflow {name}: expected no --replace with load: scd2: a replay deletes no version of a history, and adds those that are"
            " missing"
        )
    replay.check_answers(platform.with_intent_ended(dataflow, now))
    return replay
