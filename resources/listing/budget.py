"""How far one step of a listing may go, so that a tick stays under its time limit (docs/explanation/watermarks.md, Listing)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Budget:
    """Where a step stops: after the page (or folder) with which a limit is reached, so that each step gets on.

    Attributes:
        pages: LIST calls, or folders opened on a local folder; ``None`` is no limit.
        seconds: by ``clock``; ``None`` is no limit.
        clock: monotonic seconds.
    """

    pages: int | None = None
    seconds: float | None = None
    clock: Callable[[], float] = field(default=time.monotonic, compare=False, repr=False)

    def start(self) -> Callable[[int], bool]:
        """Begin to measure; the result says of a count of pages whether the budget is used up."""
        started_at = self.clock()

        def used_up(pages: int) -> bool:
            return (self.pages is not None and pages >= self.pages) or (
                self.seconds is not None and self.clock() - started_at >= self.seconds
            )

        return used_up
