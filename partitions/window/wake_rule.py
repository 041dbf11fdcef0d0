"""Decide which due work alone justifies a run (docs/reference/dagster.md).

Work within the grace is due at every tick, and if ``to`` is now, another minute is due every minute. A run
that starts anyway loads both, but neither starts one: a schedule says how often they are loaded.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from partitions.instants import milliseconds
from partitions.window.definition import WindowWatermark
from partitions.window.grace import job_cutoff
from partitions.window.state import WindowState
from partitions.window.work_unit import WorkUnit


def select_waking_work(
    definition: WindowWatermark, state: WindowState, due: Iterable[WorkUnit], now: datetime
) -> tuple[WorkUnit, ...]:
    """Return the due work units for a run now; none if nothing justifies a run.

    Args:
        definition: the declared watermark.
        state: the committed state.
        due: the work units of a plan.
        now: the clock, aware.
    """
    ready = [work for work in due if _rested(state, work, milliseconds(now))]
    cutoff = job_cutoff(state, definition.grace_ms, milliseconds(now))
    return tuple(ready) if any(_wakes(definition, state, work, cutoff) for work in ready) else ()


def _rested(state: WindowState, work: WorkUnit, now: int) -> bool:
    failure = state.failed.get(work.unit, {}).get(work.start)
    return failure is None or failure.rested(now)


def _wakes(definition: WindowWatermark, state: WindowState, work: WorkUnit, cutoff: int | None) -> bool:
    failure = state.failed.get(work.unit, {}).get(work.start)
    if (failure is not None and failure.attempts) or work.reason == "forced":
        return True
    if work.end is None:  # without windows every unit is always due
        return work.unit not in state.units
    if work.reason == "grace":
        # Behind the cutoff, only windows that the cap left out are due. Windows within the grace are always due, and each run takes
        # the lowest high first: waking for them would read the same windows again and again.
        return cutoff is not None and work.end <= cutoff
    grows_by_the_minute = work.open and definition.time_range.to_floor == "minute"
    return not grows_by_the_minute
