"""One step of a listing: what it has found so far, and what it gives back to go on from."""

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
        listed: what this step found, in pair order.
        complete: whether nothing is left to list.
        resume: the token that the next step continues from; ``None`` when complete.
        settling: how many new files ``settle`` holds back; whoever plans counts them, a listing alone knows of none.
    """

    listed: ListedFiles
    complete: bool = True
    resume: str | None = None
    settling: int = 0


class ListingStep:
    """One step of a listing while it works, whatever is listed: what it has found, and whether its budget is used up."""

    def __init__(
        self, position: ListingStart, endings: tuple[str, ...], budget: Budget | None = None
    ) -> None:
        """Begin to measure the budget.

        Args:
            position: files strictly above it are listed.
            endings: of names.
            budget: where the step stops; None: nowhere.
        """
        self.position = position
        self.endings = endings
        self.files: list[SourceFile] = []
        self.skipped = SkippedNamesCollector(endings)
        self.root_files = False
        self.calls = 0
        self.used_up = budget.start() if budget else _never

    def listing(self, resume: str | None = None) -> Listing:
        """Return what was found; complete unless there is a token to go on from."""
        listed = ListedFiles(in_pair_order(self.files), self.root_files, self.calls, self.skipped.skipped)
        return Listing(listed, complete=resume is None, resume=resume)


def _never(_pages: int) -> bool:
    return False
