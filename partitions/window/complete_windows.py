"""Windows of a complete source: each of them is the whole (docs/how-to/deletes.md)."""

from __future__ import annotations

from collections.abc import Iterator

from partitions.complete_source import COMPLETE
from partitions.refusal import Refusal
from partitions.window.definition import WindowWatermark


def complete_window_refusals(watermark: WindowWatermark) -> Iterator[Refusal]:
    """Yield why a run does not read the whole source."""
    if watermark.unit_fields or watermark.secondary_input:
        yield Refusal(COMPLETE, "true beside units", "no such key (a run may read some of the units alone)")
    if watermark.grace:
        yield Refusal(
            ("watermark", "grace"), "a grace beside source.complete", "none (an older window is superseded)"
        )
    if watermark.reads_parts:
        yield Refusal(
            ("watermark", "partial"),
            "true beside source.complete",
            "false; or reread: whole (a run must read a window as a whole)",
        )
