"""One step of a listing: its files so far, and the token to continue from."""

from __future__ import annotations

from dataclasses import dataclass

from partitions.path.listing_positions import ListingStart
from partitions.path.skipped import SkippedNamesCollector
from partitions.path.source import ListedFiles, SourceFile, in_pair_order
from resources.listing.budget import Budget


@dataclass(frozen=True)
class Listing:
    """One step of a listing; the only step, unless a budget cut it short.

    Attributes:
        listed: the files of this step, in pair order.
        complete: whether nothing is left to list.
        resume: the token that the next step continues from; ``None`` when complete.
        settling: how many new files ``settle`` holds back; the planner counts them, a listing alone does
        not.
    """

    listed: ListedFiles
    complete: bool = True
    resume: str | None = None
    settling: int = 0


class ListingStep:
    """A running step of any listing: its files so far, and whether its budget is used up."""

    def __init__(
        self, position: ListingStart, endings: tuple[str, ...], budget: Budget | None = None
    ) -> None:
        """Start to measure the budget.

        Args:
            position: files strictly above it are listed.
            endings: endings of names.
            budget: where the step stops; None: at the end.
        """
        self.position = position
        self.endings = endings
        self.files: list[SourceFile] = []
        self.skipped = SkippedNamesCollector(endings)
        self.root_files = False
        self.calls = 0
        self.used_up = budget.start() if budget else _never

    def listing(self, resume: str | None = None) -> Listing:
        """Return the files so far; the listing is complete unless there is a token to continue from."""
        listed = ListedFiles(in_pair_order(self.files), self.root_files, self.calls, self.skipped.skipped)
        return Listing(listed, complete=resume is None, resume=resume)


def _never(_pages: int) -> bool:
    return False
