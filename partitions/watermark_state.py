"""What the states of all watermarks share. Each kind has its own state in its room."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, Self

from partitions.sentinels import Watermark


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
    def short_form(watermark: Watermark, /) -> Watermark:
        """Return the public form of a watermark that is not empty (docs/reference/cli.md)."""
        return watermark
