"""The runs of a replay's chunks, one after another; live runs go on between two of them.

See docs/reference/replay.md.
"""

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

_MAX_CONFLICTS = 20
"""So often in a row another run may be faster than a chunk."""


@dataclass(frozen=True)
class ReplayStep:
    """A chunk to read, of any kind of watermark.

    Attributes:
        chunk: the chunk.
        build_request: makes the request of its run.
        reason: the reason of its entries.
        is_done: whether it was read before.
        on_finish: is called once it is read.
        find_unread: returns the error of a run that has left out a part of the chunk; None if it has not.
    """

    chunk: ReplayChunk
    build_request: Callable[[], Request]
    reason: str
    is_done: bool = False
    on_finish: Callable[[], None] = lambda: None
    find_unread: Callable[[Outcome], StrandlineError | None] = lambda outcome: None


@dataclass(frozen=True)
class ReplayResult:
    """The result of a replay.

    Attributes:
        outcome: the sum of all its runs.
        reports: one per chunk.
    """

    outcome: Outcome
    reports: Sequence[Report]


def read_chunks(
    loop: Loop[Any], steps: Sequence[ReplayStep], on_progress: ProgressListener = lambda reports: None
) -> ReplayResult:
    """Read chunks in order, up to the first that fails. A chunk that has to wait does not stop the others.

    Args:
        loop: the dataflow's loop.
        steps: all chunks.
        on_progress: is called with all reports, first and after each chunk.
    """
    run = loop.context
    newest = run.log.newest(run.name)
    outcome = Outcome(
        run.name, run.run_id, newest.state() if newest else {}, newest.number if newest else 0, newest=newest
    )
    reports = [_report(step, "skipped" if step.is_done else "pending") for step in steps]
    on_progress(reports)
    unread: StrandlineError | None = None
    for position, step in enumerate(steps):
        if step.is_done:
            continue
        chunk_outcome = _read(loop, step.build_request())
        # A run may also have finished what another had begun.
        own_rows = [commit.rows for commit in chunk_outcome.committed if commit.entry.reason == step.reason]
        _add(outcome, chunk_outcome)
        waits = None if chunk_outcome.error is not None else step.find_unread(chunk_outcome)
        if (error := chunk_outcome.error or waits) is not None:
            _name_chunk(error, step)
            reports[position] = _report(step, "failed", sum(own_rows), error.message)
            unread = unread or waits
        else:
            step.on_finish()
            reports[position] = _report(step, "committed" if own_rows else "nothing", sum(own_rows))
        on_progress(reports)
        if chunk_outcome.error is not None:
            break
    outcome.error = outcome.error or unread
    return ReplayResult(outcome, reports)


def _read(loop: Loop[Any], request: Request) -> Outcome:
    """Read a chunk; if a live run takes the number first, try again, at most 20 times."""
    run = loop.context
    context = replace(run, request=request, start_spark=lambda: run.spark)
    deadline = time.monotonic() + loop.holder_policy.hold_wait.total_seconds()
    outcome = Loop(context, loop.holder_policy, loop.retention).run()
    for _ in range(_MAX_CONFLICTS):
        conflicted = isinstance(outcome.error, Conflict)
        if not conflicted and not (isinstance(outcome.error, DataflowHeld) and time.monotonic() < deadline):
            break
        earlier, outcome = outcome, Loop(context, loop.holder_policy, loop.retention).run()
        outcome.committed[:0] = earlier.committed
    return outcome


def _add(outcome: Outcome, chunk_outcome: Outcome) -> None:
    outcome.plan = outcome.plan or chunk_outcome.plan
    outcome.committed += chunk_outcome.committed
    outcome.newest, outcome.error = chunk_outcome.newest, chunk_outcome.error
    outcome.calls += chunk_outcome.calls
    outcome.seconds += chunk_outcome.seconds
    outcome.warnings += [warning for warning in chunk_outcome.warnings if warning not in outcome.warnings]


def _name_chunk(error: StrandlineError, step: ReplayStep) -> None:
    """Prefix an error with the chunk that failed."""
    error.args = (f"chunk {step.chunk.words}: {error.message}",)


def _report(step: ReplayStep, status: str, rows: int = 0, error: str | None = None) -> Report:
    bounds: dict[str, Any] = json.loads(step.chunk.range)
    return {**bounds, "status": status, "rows": rows, "error": error}
