"""The answers of an operator that jobs offer as choices."""

from __future__ import annotations

from enum import StrEnum

from partitions.path.gone import GoneFiles
from resources.kinds.contract.lost_rows import DeletedRows


class GoneAnswer(StrEnum):
    """The answer about rows of files that are gone at the source: delete them, or keep them."""

    delete = "delete"
    keep = "keep"

    @classmethod
    def value_of(cls, answer: GoneAnswer | None) -> GoneFiles | None:
        """Return the answer as decisions and replays take it."""
        return None if answer is None else answer.value


class DeletedAnswer(StrEnum):
    """The answer about rows that others deleted: load them again, or count them as loaded."""

    load = "load"
    skip = "skip"

    @classmethod
    def value_of(cls, answer: DeletedAnswer | None) -> DeletedRows | None:
        """Return the answer as decisions take it."""
        return None if answer is None else answer.value


class FilesBelow(StrEnum):
    """The answer about files of a new root at or below the watermark: they are late, or loaded."""

    late = "late"
    loaded = "loaded"
