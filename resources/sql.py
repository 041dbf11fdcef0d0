"""Texts and names in Spark's SQL, and combined conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column


def any_of(conditions: Sequence[Column]) -> Column:
    """Return the condition that at least one of the conditions holds; false without conditions.

    The conditions are combined in pairs: a chain of hundreds is too deep for Python, and for Spark.
    """
    return _joined(conditions, "__or__", empty=False)


def all_of(conditions: Sequence[Column]) -> Column:
    """Return the condition that all of the conditions hold; true without conditions."""
    return _joined(conditions, "__and__", empty=True)


def _joined(conditions: Sequence[Column], operator: str, *, empty: bool) -> Column:
    from pyspark.sql import functions as F

    if len(conditions) < 2:
        return conditions[0] if conditions else F.lit(empty)
    half = len(conditions) // 2
    first_half, second_half = (
        _joined(part, operator, empty=empty) for part in (conditions[:half], conditions[half:])
    )
    joined: Column = getattr(first_half, operator)(second_half)
    return joined


def literal(text: str) -> str:
    """Return a text as a literal of Spark's SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def quoted(name: str) -> str:
    """Return a name quoted for Spark's SQL."""
    return "`" + name.replace("`", "``") + "`"
