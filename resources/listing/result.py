"""What a listing gives back, how far it may go, and whether a file is still what was listed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from partitions.errors import BadFile
from partitions.path.source import Found, SourceFile

FILE_CHANGED, FILE_VANISHED = "file_changed", "file_vanished"
"""Codes of a BadFile that is not what was listed any more, or is not there any more."""

OUTDATED = frozenset({FILE_CHANGED, FILE_VANISHED})
"""Codes of a BadFile that another listing would not name so."""


@dataclass(frozen=True)
class Listing:
    """One step of a listing; the only step, unless a budget cut it short.

    Attributes:
        found: what this step found, in pair order.
        complete: whether nothing is left to list.
        resume: the token that the next step goes on from; ``None`` when complete.
    """

    found: Found
    complete: bool = True
    resume: str | None = None


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
        begun = self.clock()

        def used_up(pages: int) -> bool:
            return (self.pages is not None and pages >= self.pages) or (
                self.seconds is not None and self.clock() - begun >= self.seconds
            )

        return used_up


def start(budget: Budget | None) -> Callable[[int], bool]:
    """Begin to measure a budget, or none."""
    return budget.start() if budget else lambda pages: False


def compare(then: SourceFile, now: SourceFile | None) -> None:
    """Compare a file with what was listed.

    Raises:
        BadFile: ``file_vanished`` or ``file_changed``.
    """
    if now is None:
        why = "was listed and has vanished since"
        raise BadFile(f"{then.path}: {why}", path=then.path, why=why, code=FILE_VANISHED)
    if (now.size, now.version) != (then.size, then.version):
        why = f"changed since it was listed: {then.size} bytes then, {now.size} now"
        raise BadFile(
            f"{then.path}: {why}. Files must be complete when they appear: rename them into place, or set settle",
            path=then.path,
            why=why,
            code=FILE_CHANGED,
        )
