"""The chunks of a replay: a range, cut at calendar boundaries or multiples of a step.

See docs/reference/replay.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import islice, pairwise
from typing import Any

from partitions.column.predicates import ColumnRange, format_bound
from partitions.errors import ConfigurationError
from partitions.replay.bounds import ReplayBound, typed_bounds
from partitions.watermark import compare_values

MAX_CHUNKS = 100_000
"""The most chunks of one replay: each is a commit, which takes some tenths of a second at least."""


@dataclass(frozen=True)
class Chunk:
    """The rows whose column is in ``[lower, upper)``."""

    column: str
    lower: ReplayBound
    upper: ReplayBound

    @property
    def words(self) -> str:
        """Return the rows in words."""
        return self.range.words

    @property
    def span(self) -> str:
        """Return the bounds in words."""
        return f"{format_bound(self.lower)} to {format_bound(self.upper)}"

    @property
    def range(self) -> ColumnRange:
        """Return its values as a range."""
        return ColumnRange(self.column, self.lower, self.upper, lower_inclusive=True, upper_inclusive=False)


def chunk_column(requested: str | None, columns: Sequence[str]) -> str:
    """Return the column to cut: the requested one, or the first watermark column.

    Raises:
        ConfigurationError: if there is none, or the requested one is no watermark column.
    """
    if not columns:
        raise ConfigurationError("expected a watermark column to replay by, found none")
    if requested is not None and requested not in columns:
        raise ConfigurationError(f"expected a watermark column ({', '.join(columns)}), found {requested!r}")
    return requested if requested is not None else columns[0]


def chunks(column: str, start: Any, end: Any, interval: Mapping[str, Any] | None) -> tuple[Chunk, ...]:
    """Cut a range into chunks, in order and without gaps.

    The first chunk ends at the first boundary after the start, and the last one at the end.

    Args:
        column: whose values are cut.
        start: inclusive; typed by its text.
        end: exclusive; typed by its text.
        interval: one unit and its amount, such as ``{"months": 1}`` or ``{"step": 1000}``; None: one
        chunk.

    Raises:
        ConfigurationError: for bounds as in :func:`typed_bounds`, for an unknown unit, more or fewer than
        one, an amount that is no whole number above 0, a step of dates, calendar units of numbers, and
        more than ``MAX_CHUNKS`` chunks.
    """
    unit, amount = _single_unit(interval) if interval is not None else (None, 0)
    lower, upper = typed_bounds(start, end, with_time=unit in _BELOW_A_DAY)
    if unit is None:
        return (Chunk(column, lower, upper),)
    if isinstance(lower, int) is not (unit == _STEP):
        expected = "numbers for start and end, or calendar units," if unit == _STEP else f"{_STEP!r}"
        raise ConfigurationError(f"expected {expected} for chunks of {start} to {end}, found {unit!r}")
    edges = (lower, *islice(_boundaries(lower, upper, unit, amount), MAX_CHUNKS), upper)
    if len(edges) - 1 > MAX_CHUNKS:
        raise ConfigurationError(
            f"expected at most {MAX_CHUNKS:,} chunks, found more for {amount} {unit} of {start} to {end}: take longer ones"
        )
    return tuple(Chunk(column, lower_edge, upper_edge) for lower_edge, upper_edge in pairwise(edges))


def chunks_above(planned: Sequence[Chunk], stored: Mapping[str, Any] | None) -> tuple[Chunk, ...]:
    """Return the chunks that a replay with a saved watermark still has to read: those that end above it.

    Args:
        planned: all chunks of the replay.
        stored: value of each watermark column; if the chunks' column has none, all chunks remain.

    Raises:
        ConfigurationError: if the stored value and a bound have no common order.
    """
    watermark = {} if stored is None else stored
    return tuple(
        chunk
        for chunk in planned
        if (value := watermark.get(chunk.column)) is None or compare_values(chunk.upper, value) > 0
    )


def _single_unit(interval: Mapping[str, Any]) -> tuple[str, int]:
    if len(interval) != 1 or not interval.keys() <= set(UNITS):
        raise ConfigurationError(
            f"expected one of {', '.join(UNITS)} as the chunk's interval, found {dict(interval)}"
        )
    ((unit, amount),) = interval.items()
    if not isinstance(amount, int) or isinstance(amount, bool) or amount <= 0:
        raise ConfigurationError(f"expected a whole number of {unit} above 0, found {amount!r}")
    return unit, amount


def _boundaries(lower: ReplayBound, upper: ReplayBound, unit: str, amount: int) -> Iterator[ReplayBound]:
    """Yield the boundaries strictly between the bounds."""
    at = lower
    while True:
        try:
            at = at // amount * amount + amount if isinstance(at, int) else _NEXT[unit](at, amount)
        except (OverflowError, ValueError):  # beyond the year 9999
            return
        if at >= upper:  # type: ignore[operator]  # both are of one type by now
            return
        yield at


def _midnight(at: date) -> date:
    return at.replace(hour=0, minute=0, second=0, microsecond=0, fold=0) if isinstance(at, datetime) else at


def _next_year(at: date, years: int) -> date:
    """Return the next boundary of years; blocks are counted from year 1."""
    return _midnight(at).replace(year=(at.year - 1) // years * years + years + 1, month=1, day=1)


def _next_month(at: date, months: int) -> date:
    """Return the next boundary of months; blocks are counted from January, and end with the year."""
    month = (at.month - 1) // months * months + months + 1
    if month > 12:
        return _next_year(at, 1)
    return _midnight(at).replace(month=month, day=1)


def _next_week(at: date, weeks: int) -> date:
    """Return the next boundary of weeks, from the Monday of the current week."""
    return _midnight(at) - timedelta(days=at.weekday()) + timedelta(weeks=weeks)


def _next_day(at: date, days: int) -> date:
    return _midnight(at) + timedelta(days=days)


def _next_hour(at: date, hours: int) -> date:
    """Return the next boundary of hours; blocks are counted within the day, and end with it."""
    assert isinstance(at, datetime)
    return _midnight(at) + timedelta(hours=min(at.hour // hours * hours + hours, 24))


def _next_minute(at: date, minutes: int) -> date:
    """Return the next boundary of minutes; blocks are counted within the hour, and end with it."""
    assert isinstance(at, datetime)
    hour = at.replace(minute=0, second=0, microsecond=0)
    return hour + timedelta(minutes=min(at.minute // minutes * minutes + minutes, 60))


_STEP = "step"
_BELOW_A_DAY = ("hours", "minutes")
_NEXT: Mapping[str, Callable[[date, int], date]] = {
    "years": _next_year,
    "months": _next_month,
    "weeks": _next_week,
    "days": _next_day,
    "hours": _next_hour,
    "minutes": _next_minute,
}

UNITS = (_STEP, *_NEXT)
"""The units of a chunk's length."""
