"""What holds for every watermark: when it is empty, and how two values of a column are ordered (docs/explanation/watermarks.md)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime, time
from typing import Any

from partitions.errors import ConfigurationError


def is_empty(watermark: Mapping[str, Any] | None) -> bool:
    """Whether nothing is known yet: ``None``, ``{}``, or every value ``None``. 0, ``""`` and ``[]`` are values."""
    return watermark is None or all(value is None for value in watermark.values())


def compare_values(left: Any, right: Any) -> int:
    """Order two values of one column: -1, 0 or 1. A date counts as its midnight beside a naive datetime.

    Raises:
        ConfigurationError: when the values have no common order (zoned beside naive, text beside int).
    """
    left, right = _midnight(left, right), _midnight(right, left)
    try:
        return int(left > right) - int(left < right)
    except TypeError as error:
        raise ConfigurationError(
            f"cannot compare {_shown(left)} with {_shown(right)}: expected two values of one kind, both with or both without a zone"
        ) from error


def _shown(value: Any) -> str:
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
