"""Chunks one after the other: each is a run of the loop that is asked for it, so that live runs go on between two of them (docs/reference/replay.md)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from partitions.errors import Conflict, DataflowHeld, StrandlineError
from partitions.request import Request
from resources.loop.loop import Loop
from resources.outcome import Outcome
from resources.replay.chunks import ReplayChunk

Report = dict[str, Any]
"""What has become of a chunk, in the public JSON form (docs/reference/cli.md)."""

ProgressListener = Callable[[Sequence[Report]], None]
"""Hears what has become of all chunks, first and after each."""

_FASTER = 20
"""So often in a row another run may be faster than a chunk."""


@dataclass(frozen=True)
class Piece:
    """A chunk that is to be read, whatever the kind.

    Attributes:
        chunk: what is read.
        request: makes what is asked for.
        reason: of its entries.
        done: whether it was done before.
        finished: is told once it is done.
    """

    chunk: ReplayChunk
    request: Callable[[], Request]
    reason: str
    done: bool = False
    finished: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Replayed:
    """What a replay has done.

    Attributes:
        outcome: of all its runs.
        chunks: each with what became of it.
    """

    outcome: Outcome
    chunks: Sequence[Report]


def read_chunks(
    loop: Loop[Any], pieces: Sequence[Piece], on_progress: ProgressListener = lambda reports: None
) -> Replayed:
    """Read chunks in their order, up to the first that fails.

    Args:
        loop: of the dataflow.
        pieces: all chunks.
        on_progress: hears of each.
    """
    run = loop.context
    newest = run.log.newest(run.name)
    outcome = Outcome(
        run.name, run.run_id, newest.state() if newest else {}, newest.number if newest else 0, newest=newest
    )
    reports = [_report(piece, "skipped" if piece.done else "pending") for piece in pieces]
    on_progress(reports)
    for place, piece in enumerate(pieces):
        if piece.done:
            continue
        done = _read(loop, piece.request())
        # A run may also have finished what another had begun.
        own = [commit.rows for commit in done.committed if commit.entry.reason == piece.reason]
        _add(outcome, done)
        if done.error is not None:
            _name(done.error, piece)
            reports[place] = _report(piece, "failed", sum(own), done.error.message)
        else:
            piece.finished()
            reports[place] = _report(piece, "committed" if own else "nothing", sum(own))
        on_progress(reports)
        if done.error is not None:
            break
    return Replayed(outcome, reports)


def _read(loop: Loop[Any], request: Request) -> Outcome:
    """Read a chunk. A live run that is faster is waited for, as long as the patience lasts: the chunk takes the number after it."""
    run = loop.context
    alone = replace(run, request=request, start_spark=lambda: run.spark)
    deadline = time.monotonic() + loop.patience.hold_wait.total_seconds()
    done = Loop(alone, loop.patience, loop.history).run()
    for _ in range(_FASTER):
        raced = isinstance(done.error, Conflict)
        if not raced and not (isinstance(done.error, DataflowHeld) and time.monotonic() < deadline):
            break
        before, done = done, Loop(alone, loop.patience, loop.history).run()
        done.committed[:0] = before.committed
    return done


def _add(outcome: Outcome, done: Outcome) -> None:
    outcome.plan = outcome.plan or done.plan
    outcome.committed += done.committed
    outcome.newest, outcome.error = done.newest, done.error
    outcome.calls += done.calls
    outcome.seconds += done.seconds
    outcome.warnings += [warning for warning in done.warnings if warning not in outcome.warnings]


def _name(error: StrandlineError, piece: Piece) -> None:
    """Have an error say which chunk has failed."""
    error.args = (f"chunk {piece.chunk.words}: {error.message}",)


def _report(piece: Piece, status: str, rows: int = 0, error: str | None = None) -> Report:
    bounds: dict[str, Any] = json.loads(piece.chunk.range)
    return {**bounds, "status": status, "rows": rows, "error": error}
