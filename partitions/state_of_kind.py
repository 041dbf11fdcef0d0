"""What the log asks of a state, by the name of its kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitions.kinds import KINDS, definition_class
from partitions.sentinels import Watermark
from partitions.watermark import is_empty
from partitions.watermark_state import ReadVersion


def remembers_files(kind: str) -> bool:
    """Return whether a kind's log lists each loaded file; for other kinds the watermark says everything."""
    definition = definition_class(kind)
    return definition is not None and definition.remembers_files


def lists_windows(kind: str) -> bool:
    """Return whether an entry of a kind lists the windows that it has loaded."""
    definition = definition_class(kind)
    return definition is not None and definition.has_ledger


def shorten_watermark(kind: str, watermark: Watermark) -> Watermark:
    """Return a watermark's short public form (docs/reference/cli.md)."""
    definition = definition_class(kind)
    if definition is None or is_empty(watermark):
        return watermark
    return KINDS[definition].state.short_form(watermark)


def read_version(kind: str, watermark: Mapping[str, Any]) -> ReadVersion | None:
    """Return the version up to which a watermark has read the log of a table; None if it names none."""
    definition = definition_class(kind)
    if definition is None or is_empty(watermark):
        return None
    return KINDS[definition].state.read_version(watermark)


def holds_nothing(kind: str, watermark: Mapping[str, Any] | None) -> bool:
    """Return whether a watermark counts nothing as loaded.

    Args:
        kind: kind of the watermark.
        watermark: as the log has it; None: there is none.
    """
    if watermark is None or is_empty(watermark):
        return True
    definition = definition_class(kind)
    return definition is not None and KINDS[definition].state.holds_nothing(watermark)
