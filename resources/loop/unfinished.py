"""The intent that another run or decision left open: whether its holder lives, and how it is ended (docs/protocol.md, Recovery)."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic

from partitions.errors import Conflict, Held, NeedsDecision
from resources.kinds.kind import SliceT
from resources.loop import holder as holders
from resources.loop.appending import follow_up
from resources.loop.context import RunContext
from resources.loop.giving_up import close, drop, preview_close
from resources.loop.intents import held
from resources.loop.lease import is_renewed
from resources.loop.verifying import guarded_head
from resources.tables.table import FollowsUp
from resources.watermarks.entry import Entry, Intent


@dataclass(frozen=True)
class Patience:
    """How a run treats the holder of an open intent.

    Attributes:
        hold_wait: how long to wait for a living holder.
        run_is_live: asks Dagster about a run on another machine.
        wait: sleeps, or returns early when it is told to stop.
    """

    hold_wait: timedelta = timedelta(0)
    run_is_live: holders.RunIsLive = lambda run_id: None
    wait: Callable[[float], None] = time.sleep


def is_held(run: RunContext[SliceT], intent: Intent, patience: Patience) -> bool:
    """Return whether a holder works on an intent. If neither the process nor Dagster tells, the lease does."""
    alive = holders.is_alive(intent.holder, intent.id, patience.run_is_live)
    return is_renewed(run.log, intent, patience.wait) if alive is None else alive


def abandoned_intent(
    run: RunContext[SliceT], entry: Entry | None, patience: Patience
) -> tuple[Entry | None, Intent | None]:
    """Wait for the holder of the next number; return the newest entry then, and the intent that a dead holder has left.

    Raises:
        Held: the holder lives, and the patience is at its end.
    """
    deadline = time.monotonic() + patience.hold_wait.total_seconds()
    while (intent := run.log.open_intent(run.name, entry)) is not None:
        alive = is_held(run, intent, patience)
        # A holder that is gone may have finished before it went.
        newest = run.log.newest(run.name)
        if (newest and newest.id) != (entry and entry.id):
            entry = newest
        elif not alive:
            break
        elif time.monotonic() >= deadline:
            raise held(intent)
        else:
            patience.wait(1.0)
    return entry, intent


class Unfinished(Generic[SliceT]):
    """What decisions about a state do with the intent that a run left open: they read no slice again."""

    def __init__(self, run: RunContext[SliceT], patience: Patience) -> None:
        """Use a run of the dataflow, which loads nothing."""
        self._run, self._patience = run, patience

    def close(self, reason: str, *, new_state: bool = False) -> None:
        """End what a run left open, without loading anything.

        Args:
            reason: of the operator.
            new_state: whether the state is taken anew after it, as :func:`resources.loop.giving_up.close` says.

        Raises:
            Held: while that run lives.
            NeedsDecision, TargetError: as :func:`resources.loop.giving_up.close` says.
        """
        entry, intent = self._open()
        if intent is not None and intent.is_decision:
            drop(self._run, entry, intent)
        elif intent is not None:
            close(self._run, entry, intent, reason, new_state=new_state)

    def preview(self) -> tuple[Entry | None, Intent | None]:
        """Return what :meth:`close` would end, and the entry that would be the newest then. Changes nothing, starts no Spark.

        Raises:
            Held: while that run lives.
        """
        entry, intent = self._open()
        return (preview_close(self._run, entry, intent) if intent else entry), intent

    def check_table(self, entry: Entry | None) -> None:
        """Raise as a run would, if state and table do not belong together."""
        guarded_head(self._run, entry)

    def follow_up(self, entry: Entry | None) -> None:
        """Do what a run that died has left for after its entry, if table and state belong together: a decision may count its rows no more."""
        if isinstance(self._run.table, FollowsUp):
            with suppress(Conflict, Held, NeedsDecision):
                guarded_head(self._run, entry)
                follow_up(self._run, entry)

    def _open(self) -> tuple[Entry | None, Intent | None]:
        entry = self._run.log.newest(self._run.name)
        intent = self._run.log.open_intent(self._run.name, entry)
        if intent is not None and is_held(self._run, intent, self._patience):
            raise held(intent)
        return entry, intent
