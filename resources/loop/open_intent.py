"""How a decision ends the intent that a run or another decision left open.

It reads no slice again.

See docs/explanation/protocol.md, Recovery.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Generic

from partitions.errors import Conflict, DataflowHeld, NeedsDecision
from resources.kinds.contract.slices import SliceT
from resources.loop.appending import follow_up
from resources.loop.context import RunContext
from resources.loop.ending import end_intent, preview_end
from resources.loop.holder_wait import HolderPolicy
from resources.loop.intents import held_error
from resources.loop.lease import is_held
from resources.loop.rows.deletes_of_table import finish_deletes_of_table
from resources.loop.verifying import guarded_head
from resources.tables.contract.table import FollowsUp
from resources.watermarks.entry import Entry, Intent


class UnfinishedIntent(Generic[SliceT]):
    """The open intent of a dataflow, for decisions about its state."""

    def __init__(self, run: RunContext[SliceT], holder_policy: HolderPolicy) -> None:
        """Bind to a run of the dataflow that loads nothing."""
        self._run, self._holder_policy = run, holder_policy

    def close(self, reason: str, *, new_state: bool = False) -> None:
        """End the open intent, if there is one, without loading anything.

        Args:
            reason: the operator's reason.
            new_state: whether a decision replaces the state afterwards, as
                :func:`resources.loop.ending.end_intent` describes.

        Raises:
            DataflowHeld: the intent's holder lives.
            Conflict, NeedsDecision, TargetError: as :func:`resources.loop.ending.end_intent` describes.
        """
        entry, intent = self._open()
        if intent is not None:
            end_intent(self._run, entry, intent, reason, new_state=new_state)

    def preview(self) -> tuple[Entry | None, Intent | None]:
        """Return the entry that would be the newest after :meth:`close`, and the intent that it would end.

        Changes nothing, starts no Spark.

        Raises:
            DataflowHeld: the intent's holder lives.
        """
        entry, intent = self._open()
        return (preview_end(self._run, entry, intent) if intent else entry), intent

    def preview_abandoned(self) -> Entry | None:
        """Return the entry that :meth:`preview` returns; an intent that is held counts as left by now."""
        entry = self._run.log.newest(self._run.name)
        intent = self._run.log.open_intent(self._run.name, entry)
        return preview_end(self._run, entry, intent) if intent else entry

    def check_not_held(self) -> None:
        """Raise DataflowHeld if the open intent's holder lives."""
        self._open()

    def check_table(self, entry: Entry | None) -> None:
        """Raise as a run would if state and table do not match."""
        guarded_head(self._run, entry)

    def follow_up(self, entry: Entry | None) -> None:
        """Finish a dead process's work after its entry; in the table only if state and table match.

        A decision may change the state so that no later run would do it.
        """
        finish_deletes_of_table(self._run.table, self._run.log, entry)
        if isinstance(self._run.table, FollowsUp):
            with suppress(Conflict, DataflowHeld, NeedsDecision):
                guarded_head(self._run, entry)
                follow_up(self._run, entry)

    def _open(self) -> tuple[Entry | None, Intent | None]:
        entry = self._run.log.newest(self._run.name)
        intent = self._run.log.open_intent(self._run.name, entry)
        if intent is not None and is_held(
            self._run.log, intent, self._holder_policy.run_is_live, self._holder_policy.wait
        ):
            raise held_error(intent)
        return entry, intent
