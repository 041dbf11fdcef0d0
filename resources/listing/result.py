"""What a listing gives back, how far it may go, and whether a file is still what was listed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from partitions.errors import BadFile
from partitions.path.position import Position
from partitions.path.source import ListedFiles, SourceFile, in_pair_order

FILE_CHANGED, FILE_VANISHED = "file_changed", "file_vanished"
"""Codes of a BadFile that is not what was listed any more, or is not there any more."""

OUTDATED = frozenset({FILE_CHANGED, FILE_VANISHED})
"""Codes of a BadFile that another listing would not name so."""


@dataclass(frozen=True)
class Listing:
    """One step of a listing; the only step, unless a budget cut it short.

    Attributes:
        listed: what this step found, in pair order.
        complete: whether nothing is left to list.
        resume: the token that the next step goes on from; ``None`` when complete.
    """

    listed: ListedFiles
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


class ListingStep:
    """One step of a listing while it goes on, whatever is listed: what it has found, and whether its budget is used up."""

    def __init__(self, position: Position, endings: tuple[str, ...], budget: Budget | None = None) -> None:
        """Begin to measure the budget.

        Args:
            position: files strictly above it are listed.
            endings: of names.
            budget: where the step stops; None: nowhere.
        """
        self.position = position
        self.endings = endings
        self.files: list[SourceFile] = []
        self.root_files = False
        self.calls = 0
        self.used_up = budget.start() if budget else _never

    def listing(self, resume: str | None = None) -> Listing:
        """Return what was found; complete unless there is a token to go on from."""
        listed = ListedFiles(in_pair_order(self.files), self.root_files, self.calls)
        return Listing(listed, complete=resume is None, resume=resume)


def _never(pages: int) -> bool:  # noqa: ARG001 - takes what a budget takes
    return False


def require_unchanged(then: SourceFile, now: SourceFile | None) -> None:
    """Raise if a file is not what was listed any more.

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
