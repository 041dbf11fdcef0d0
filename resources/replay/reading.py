"""Chunks one after the other: each is a run of the loop that is asked for it, so that live runs go on between two of them (docs/replay.md)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from partitions.column.predicates import shown
from partitions.errors import Conflict, Held, StrandlineError
from partitions.replay.chunks import Chunk
from partitions.request import Replay
from partitions.sentinels import serialise
from resources.loop.loop import Loop
from resources.loop.outcome import Outcome

Report = dict[str, Any]
"""What has become of a chunk, in the public JSON form (docs/cli.md)."""

Told = Callable[[Sequence[Report]], None]
"""Hears what has become of all chunks, first and after each."""

_FASTER = 20
"""So often in a row another run may be faster than a chunk."""


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
    loop: Loop[Any],
    planned: Sequence[Chunk],
    left: Sequence[Chunk],
    request: Callable[[Chunk], Replay],
    told: Told = lambda reports: None,
) -> Replayed:
    """Read chunks in their order, up to the first that fails.

    Args:
        loop: of the dataflow.
        planned: all chunks.
        left: those that are not done yet.
        request: what is asked for of a chunk.
        told: hears of each.
    """
    run = loop.context
    newest = run.log.newest(run.name)
    outcome = Outcome(
        run.name, run.run_id, newest.state() if newest else {}, newest.number if newest else 0, newest=newest
    )
    reports = {chunk: _report(chunk, "pending" if chunk in left else "skipped") for chunk in planned}
    told(list(reports.values()))
    for chunk in left:
        asked = request(chunk)
        done = _read(loop, asked)
        rows = _own_rows(done, asked)
        _add(outcome, done)
        if done.error is not None:
            _name(done.error, chunk)
            reports[chunk] = _report(chunk, "failed", rows or 0, done.error.message)
        else:
            reports[chunk] = _report(chunk, "nothing" if rows is None else "committed", rows or 0)
        told(list(reports.values()))
        if done.error is not None:
            break
    return Replayed(outcome, list(reports.values()))


def words(chunk: Chunk) -> str:
    """Return the bounds of a chunk for people."""
    return f"{shown(chunk.lower)} to {shown(chunk.upper)}"


def _read(loop: Loop[Any], asked: Replay) -> Outcome:
    """Read a chunk. A live run that is faster is waited for, as long as the patience lasts: the chunk takes the number after it."""
    run = loop.context
    alone = replace(run, request=asked, start_spark=lambda: run.spark)
    deadline = time.monotonic() + loop.patience.hold_wait.total_seconds()
    done = Loop(alone, loop.patience, loop.history).run()
    for _ in range(_FASTER):
        raced = isinstance(done.error, Conflict)
        if not raced and not (isinstance(done.error, Held) and time.monotonic() < deadline):
            break
        before, done = done, Loop(alone, loop.patience, loop.history).run()
        done.committed[:0] = before.committed
    return done


def _own_rows(done: Outcome, asked: Replay) -> int | None:
    """The rows of the chunk itself; None if nothing was written for it. A run may also have finished what another had begun."""
    own = [
        each.rows
        for each in done.committed
        if each.entry.why == "replay" and each.entry.reason == asked.reason
    ]
    return sum(own) if own else None


def _add(outcome: Outcome, done: Outcome) -> None:
    outcome.plan = outcome.plan or done.plan
    outcome.committed += done.committed
    outcome.newest, outcome.error = done.newest, done.error
    outcome.calls += done.calls
    outcome.seconds += done.seconds
    outcome.warnings += [warning for warning in done.warnings if warning not in outcome.warnings]


def _name(error: StrandlineError, chunk: Chunk) -> None:
    """Have an error say which chunk has failed."""
    error.args = (f"chunk {words(chunk)}: {error.message}",)


def _report(chunk: Chunk, status: str, rows: int = 0, error: str | None = None) -> Report:
    bounds: dict[str, Any] = json.loads(serialise({"lower": chunk.lower, "upper": chunk.upper}))
    return {**bounds, "status": status, "rows": rows, "error": error}
