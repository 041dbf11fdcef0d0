"""Decide when changed project files are read again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class ProjectFileStates:
    """The states of a project's files that matter; any edit changes the state.

    Attributes:
        at_work: the state that the running dataflows were read from.
        last_state: the state at the last check.
        refused: the last state with errors in the settings; the earlier settings stay in force.
    """

    at_work: Hashable
    last_state: Hashable = None
    refused: Hashable = None

    def after_look(self, state: Hashable) -> tuple[ProjectFileStates, bool]:
        """Return the states after a check, and whether to read the files now.

        They are read if they have changed, but not since the check before: an editor may write a file in
        several steps, or several files one after the other.
        """
        is_due = state == self.last_state and state not in (self.at_work, self.refused)
        return replace(self, last_state=state), is_due

    def after_read(self) -> ProjectFileStates:
        """Return the states after the files were read."""
        return replace(self, at_work=self.last_state)

    def after_errors(self) -> ProjectFileStates:
        """Return the states after the files could not be read."""
        return replace(self, refused=self.last_state)
