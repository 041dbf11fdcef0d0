"""Rules for every watermark: when it is empty, and how values compare.

See docs/explanation/watermarks.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

from partitions.errors import ConfigurationError


def is_empty(watermark: Mapping[str, Any] | None) -> bool:
    """Return whether a watermark is ``None``, ``{}``, or has only ``None`` as values.

    0, ``""`` and ``[]`` are values.
    """
    return watermark is None or all(value is None for value in watermark.values())


def compare_values(first: Any, second: Any) -> int:
    """Compare two values of one column: -1, 0 or 1.

    A date counts as its midnight beside a naive datetime.

    Raises:
        ConfigurationError: the values have no common order (with and without a zone, text and int).
    """
    first, second = _midnight(first, second), _midnight(second, first)
    try:
        return int(first > second) - int(first < second)
    except TypeError as error:
        raise ConfigurationError(
            f"cannot compare {_value_text(first)} with {_value_text(second)}: expected two values of one kind, both with or both without a zone"
        ) from error


def _value_text(value: Any) -> str:
    return (
        value.isoformat(sep=" ")
        if isinstance(value, datetime)
        else repr(value)
        if isinstance(value, str)
        else str(value)
    )


def _midnight(value: Any, beside: Any) -> Any:
    if isinstance(beside, datetime) and isinstance(value, date) and not isinstance(value, datetime):
        return datetime.combine(value, time.min)
    return value
