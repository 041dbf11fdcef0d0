"""What the states of all watermarks share. Each kind has its own state in its room."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

from partitions.sentinels import Watermark


class ReadVersion(NamedTuple):
    """How far the log of a table is read.

    Attributes:
        version: number of the last commit that was read.
        id: identity of that commit; None: unknown.
        in_first_read: whether files of that version itself are left to read.
        table: id of the table; None: unknown.
    """

    version: int
    id: str | None
    in_first_read: bool = False
    table: str | None = None


class WatermarkState(ABC):
    """How far a source is read. A state never falls."""

    @classmethod
    @abstractmethod
    def of(cls, watermark: Mapping[str, Any] | None) -> Self:
        """Parse a stored watermark; an empty one is the state of a new source.

        Raises:
            CorruptWatermark: it has another form.
        """

    @staticmethod
    def holds_nothing(_watermark: Mapping[str, Any], /) -> bool:
        """Return whether a watermark that is not empty counts nothing as loaded."""
        return False

    @staticmethod
    def read_version(_watermark: Mapping[str, Any], /) -> ReadVersion | None:
        """Return the version up to which the log of a table is read; None if a watermark names none."""
        return None

    @staticmethod
    def short_form(watermark: Watermark, /) -> Watermark:
        """Return the public form of a watermark that is not empty (docs/reference/cli.md)."""
        return watermark
