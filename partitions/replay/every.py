"""The interval and the bounds of a replay's chunks, in the type of the column.

See docs/reference/replay.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, time

from partitions.column.predicates import format_bound
from partitions.errors import ConfigurationError
from partitions.replay.bounds import ReplayBound
from partitions.replay.chunks import UNITS, Chunk
from partitions.unit_values import WORDS, ValueType

_EVERY = re.compile(r"\s*(-?\d{1,100})\s+([a-z]+)\s*", re.ASCII | re.IGNORECASE)
_ADVICE = {
    "day": "Take dates, and chunks of whole days",
    "local": "Take dates, or times without a zone",
    "instant": "Take dates or times",
    "whole": "Take whole numbers",
    "number": "Take whole numbers",
}
_OTHERS = "Columns of dates, times and numbers have chunks; cut by another watermark column (--column)"


def parse_interval(text: str) -> dict[str, int]:
    """Parse ``N UNIT``, such as ``1 month``.

    :func:`partitions.replay.chunks.chunks` refuses amounts below 1.

    Raises:
        ConfigurationError: for any other text.
    """
    match = _EVERY.fullmatch(text)
    if match is None:
        raise ConfigurationError(
            f"every: expected a whole number, a blank and a unit, such as '1 month', found {text!r}"
        )
    unit = match[2].lower()
    interval_unit = next(
        (unit_name for unit_name in UNITS if unit in (unit_name, unit_name.removesuffix("s"))), None
    )
    if interval_unit is None:
        raise ConfigurationError(f"every: expected one of {', '.join(UNITS)}, found {match[2]!r}")
    return {interval_unit: int(match[1])}


def fitted_chunks(chunks: Iterable[Chunk], kind: ValueType | None) -> tuple[Chunk, ...]:
    """Return chunks whose bounds have the column's type.

    If the column is zoned, dates and times without a zone are in UTC.

    Args:
        chunks: as requested.
        kind: the type of the column; None: unknown.

    Raises:
        ConfigurationError: if the column has another type.
    """
    return tuple(
        replace(
            chunk,
            lower=fitted_bound(chunk.column, chunk.lower, kind),
            upper=fitted_bound(chunk.column, chunk.upper, kind),
        )
        for chunk in chunks
    )


def fitted_bound(column: str, bound: ReplayBound, kind: ValueType | None) -> ReplayBound:
    """Return a bound in the type of its column.

    Args:
        column: the column's name.
        bound: as requested; beside a zoned column, one without a zone is in UTC.
        kind: the type of the column; None: unknown.

    Raises:
        ConfigurationError: the column has another type.
    """
    is_number = kind in ("whole", "number")
    if isinstance(bound, int):
        fitted: ReplayBound | None = bound if is_number else None
    elif kind == "day":
        fitted = _day(bound)
    elif kind in ("instant", "local"):
        fitted = _moment(bound, zoned=kind == "instant")
    else:
        fitted = None
    if fitted is None:
        column_type = WORDS[kind] if kind else "nothing that tells its type"
        raise ConfigurationError(
            f"expected bounds of the type of column {column}, which holds {column_type}, found {format_bound(bound)}. {_ADVICE.get(kind or '', _OTHERS)}"
        )
    return fitted


def _moment(bound: date, *, zoned: bool) -> datetime | None:
    at = bound if isinstance(bound, datetime) else datetime.combine(bound, time.min)
    if at.tzinfo is None:
        return at.replace(tzinfo=UTC) if zoned else at
    return at.astimezone(UTC) if zoned else None


def _day(bound: date) -> date | None:
    if not isinstance(bound, datetime):
        return bound
    return bound.date() if bound.tzinfo is None and bound.time() == time.min else None
