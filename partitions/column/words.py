"""Column watermarks in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from partitions.column.predicates import format_bound
from partitions.column.state import ColumnState
from partitions.errors import CorruptWatermark
from partitions.sentinels import deserialise, serialise


def describe_watermark(watermark: Mapping[str, Any]) -> str:
    """Return each column with its value, from a watermark's JSON form or from its values.

    Raises:
        CorruptWatermark: the values have another form, such as windows.
    """
    return _in_words(ColumnState.of(deserialise(_text(watermark))))


def describe_stored_watermark(text: str) -> str:
    """Return a stored watermark in words; the start of its text if its values have another form."""
    try:
        return _in_words(ColumnState.of(deserialise(text)))
    except CorruptWatermark:
        return text[:200]


def _in_words(state: ColumnState) -> str:
    parts = [
        f"{name} {'=' if bound.inclusive else '<'} {format_bound(bound.value)}"
        for name, bound in state.bounds.items()
    ]
    return ", ".join(parts) or "none"


def _text(watermark: Mapping[str, Any]) -> str:
    import json

    encoded = any(isinstance(value, Mapping) for value in watermark.values())
    return json.dumps(watermark) if encoded else serialise(watermark)
