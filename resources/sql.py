"""Texts and names as Spark's SQL writes them, and conditions put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column


def any_of(conditions: Sequence[Column]) -> Column:
    """Return whether one of some conditions holds. They are put together in pairs: a chain of hundreds is too deep for Python, and for Spark."""
    return _joined(conditions, "__or__", empty=False)


def all_of(conditions: Sequence[Column]) -> Column:
    """Return whether all of some conditions hold."""
    return _joined(conditions, "__and__", empty=True)


def _joined(conditions: Sequence[Column], operator: str, *, empty: bool) -> Column:
    from pyspark.sql import functions as F

    if len(conditions) < 2:
        return conditions[0] if conditions else F.lit(empty)
    half = len(conditions) // 2
    left, right = (_joined(part, operator, empty=empty) for part in (conditions[:half], conditions[half:]))
    joined: Column = getattr(left, operator)(right)
    return joined


def literal(text: str) -> str:
    """A text as Spark's SQL writes it."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quoted(name: str) -> str:
    """A name as Spark's SQL writes it."""
    return "`" + name.replace("`", "``") + "`"
