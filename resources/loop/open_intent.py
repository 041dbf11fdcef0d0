"""What a decision does with the intent that a run or another decision left open: it ends it, and reads no slice again (docs/explanation/protocol.md, Recovery)."""

from __future__ import annotations

from contextlib import suppress
from typing import Generic

from partitions.errors import Conflict, DataflowHeld, NeedsDecision
from resources.kinds.contract.slices import SliceT
from resources.loop.appending import follow_up
from resources.loop.context import RunContext
from resources.loop.giving_up import close, drop, preview_close
from resources.loop.holder_wait import Patience
from resources.loop.intents import held
from resources.loop.lease import is_held
from resources.loop.verifying import guarded_head
from resources.tables.contract.table import FollowsUp
from resources.watermarks.entry import Entry, Intent


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
            with suppress(Conflict, DataflowHeld, NeedsDecision):
                guarded_head(self._run, entry)
                follow_up(self._run, entry)

    def _open(self) -> tuple[Entry | None, Intent | None]:
        entry = self._run.log.newest(self._run.name)
        intent = self._run.log.open_intent(self._run.name, entry)
        if intent is not None and is_held(
            self._run.log, intent, self._patience.run_is_live, self._patience.wait
        ):
            raise held(intent)
        return entry, intent
