"""What the states of all watermarks share. Each kind has its own state in its room."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitions.sentinels import Watermark


class WatermarkState:
    """How far a source is read. A state never falls."""

    @staticmethod
    def holds_nothing(_watermark: Mapping[str, Any], /) -> bool:
        """Return whether a watermark that is not empty counts nothing as loaded."""
        return False

    @staticmethod
    def short_form(watermark: Watermark, /) -> Watermark:
        """Return the public form of a watermark that is not empty (docs/reference/cli.md)."""
        return watermark
