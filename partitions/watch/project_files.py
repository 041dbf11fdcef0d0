"""When changed project files are read again."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class ProjectFiles:
    """The states of a project's files that matter: each changes with any edit.

    Attributes:
        at_work: the state that the dataflows at work were read from.
        seen: by the last look.
        refused: the last state with errors in the settings; what was read before goes on.
    """

    at_work: Hashable
    seen: Hashable = None
    refused: Hashable = None

    def looked_at(self, state: Hashable) -> tuple[ProjectFiles, bool]:
        """Return the states after a look, and whether the files are to be read now: they are others, and were the same at the look before.

        An editor may write a file in several steps, or several files one after the other.
        """
        is_due = state == self.seen and state not in (self.at_work, self.refused)
        return replace(self, seen=state), is_due

    def taken(self) -> ProjectFiles:
        """Return the states after the files were read."""
        return replace(self, at_work=self.seen)

    def with_errors(self) -> ProjectFiles:
        """Return the states after the files could not be read."""
        return replace(self, refused=self.seen)
