"""A column watermark in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitions.column.predicates import shown
from partitions.column.state import ColumnState
from partitions.errors import CorruptWatermark
from partitions.sentinels import deserialise, serialise


def values_in_words(watermark: Mapping[str, Any]) -> str:
    """Return each column with its value, from a watermark's JSON form or from its values.

    Raises:
        CorruptWatermark: it has values of another form, such as windows.
    """
    return _in_words(ColumnState.of(deserialise(_text(watermark))))


def text_in_words(text: str) -> str:
    """Return a stored watermark in words; the beginning of its text if it has values of another form."""
    try:
        return _in_words(ColumnState.of(deserialise(text)))
    except CorruptWatermark:
        return text[:200]


def _in_words(state: ColumnState) -> str:
    parts = [
        f"{name} {'=' if mark.inclusive else '<'} {shown(mark.value)}" for name, mark in state.marks.items()
    ]
    return ", ".join(parts) or "none"


def _text(watermark: Mapping[str, Any]) -> str:
    import json

    encoded = any(isinstance(value, Mapping) for value in watermark.values())
    return json.dumps(watermark) if encoded else serialise(watermark)
