"""How long a run waits for the holder of an open intent before it fails.

See docs/explanation/protocol.md, Two runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from resources.kinds.contract.slices import SliceT
from resources.loop import lease
from resources.loop.context import RunContext
from resources.loop.intents import held_error
from resources.watermarks import holder as holders
from resources.watermarks.entry import Entry, Intent

HOLD_WAIT = timedelta(minutes=10)
"""How long work that must not fail because of another run waits for that run."""


@dataclass(frozen=True)
class HolderPolicy:
    """How a run treats the holder of an open intent.

    Attributes:
        hold_wait: how long to wait for a living holder.
        run_is_live: asks Dagster about a run on another machine.
        wait: sleeps for some seconds; returns early if the run is told to stop.
    """

    hold_wait: timedelta = timedelta(0)
    run_is_live: holders.RunIsLive = lambda run_id: None
    wait: Callable[[float], None] = time.sleep


def abandoned_intent(
    run: RunContext[SliceT], entry: Entry | None, patience: HolderPolicy
) -> tuple[Entry | None, Intent | None]:
    """Wait for the holder of the next number; return the newest entry, and a dead holder's intent.

    Raises:
        DataflowHeld: the holder still lives after ``hold_wait``.
    """
    deadline = time.monotonic() + patience.hold_wait.total_seconds()
    while (intent := run.log.open_intent(run.name, entry)) is not None:
        alive = lease.is_held(run.log, intent, patience.run_is_live, patience.wait)
        # A holder that is gone may have finished before it went.
        newest = run.log.newest(run.name)
        if (newest and newest.id) != (entry and entry.id):
            entry = newest
        elif not alive:
            break
        elif time.monotonic() >= deadline:
            raise held_error(intent)
        else:
            patience.wait(1.0)
    return entry, intent
