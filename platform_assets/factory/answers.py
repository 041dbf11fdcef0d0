"""The answers of an operator that jobs offer as choices."""

from __future__ import annotations

from enum import StrEnum

from partitions.path.gone import GoneFiles


class GoneAnswer(StrEnum):
    """What becomes of the rows of files that are gone at the source."""

    delete = "delete"
    keep = "keep"

    @classmethod
    def value_of(cls, answer: GoneAnswer | None) -> GoneFiles | None:
        """Return the answer as decisions and replays take it."""
        return None if answer is None else answer.value


class DeletedAnswer(StrEnum):
    """What becomes of rows that others deleted: they are loaded again, or count as loaded."""

    load = "load"
    skip = "skip"


class FilesBelow(StrEnum):
    """How files of another root count that lie at or below the watermark."""

    late = "late"
    loaded = "loaded"
