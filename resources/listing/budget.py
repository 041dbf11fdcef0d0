"""Limit one step of a listing, so that a tick stays under its time limit.

See docs/explanation/watermarks.md, Listing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Budget:
    """The limits of a step. It stops after the page (or folder) that reaches one, so each step advances.

    Attributes:
        pages: LIST calls, or opened folders of a local folder; ``None`` is no limit.
        seconds: by ``clock``; ``None`` is no limit.
        clock: monotonic seconds.
    """

    pages: int | None = None
    seconds: float | None = None
    clock: Callable[[], float] = field(default=time.monotonic, compare=False, repr=False)

    def start(self) -> Callable[[int], bool]:
        """Start to measure; the result takes a number of pages and returns whether the budget is used up."""
        started_at = self.clock()

        def used_up(pages: int) -> bool:
            return (self.pages is not None and pages >= self.pages) or (
                self.seconds is not None and self.clock() - started_at >= self.seconds
            )

        return used_up
