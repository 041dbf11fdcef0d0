"""Partitions that are missing: ``expected: daily`` and the like.

See docs/reference/files.md, The ledger of partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Literal, NamedTuple, get_args

Expected = Literal["hourly", "daily", "weekly", "monthly", "yearly"]
"""How often a partition is expected; weeks start on Monday, all periods are in UTC."""

EXPECTED: tuple[Expected, ...] = get_args(Expected)

FINEST_EXPECTED: Mapping[str, Expected] = {
    "hours": "hourly",
    "days": "daily",
    "months": "monthly",
    "years": "yearly",
}
"""The most frequent value for partitions of a unit of time."""


class MissingRange(NamedTuple):
    """Consecutive periods without a file.

    Attributes:
        group: the components of the partitions' names without time.
        start: start of the first period, UTC.
        end: end of the last period, exclusive, UTC.
        periods: number of periods.
    """

    group: str
    start: datetime
    end: datetime
    periods: int


def missing_ranges(
    expected: Expected,
    starts_by_group: Mapping[str, Iterable[datetime]],
    now: datetime,
    start: datetime | None = None,
    end: datetime | None = None,
) -> Iterator[MissingRange]:
    """Yield the periods without a partition, by group and time.

    A group's periods count from its first partition on, and once they are over.

    Args:
        expected: how often a partition is expected.
        starts_by_group: the starts of the partitions that hold files, by group.
        now: the clock, aware.
        start: periods that start earlier are left out; None: none.
        end: periods that start at or after it are left out; None: none.
    """
    number_of, start_of = _PERIODS[expected]
    last = number_of(now.astimezone(UTC))
    lowest = 0 if start is None else _first_number(expected, start.astimezone(UTC))
    after = last if end is None else min(last, _first_number(expected, end.astimezone(UTC)))
    for group, starts in sorted(starts_by_group.items()):
        numbers = sorted({number_of(time) for time in starts})
        for before, following in pairwise([*(number for number in numbers if number < last), last]):
            first, until = max(before + 1, lowest), min(following, after)
            if first < until:
                yield MissingRange(group, start_of(first), start_of(until), until - first)


def _first_number(expected: Expected, instant: datetime) -> int:
    """Return the number of the first period that starts at or after an instant."""
    number_of, start_of = _PERIODS[expected]
    number = number_of(instant)
    return number if start_of(number) == instant else number + 1


_ZERO = datetime(1, 1, 1, tzinfo=UTC)
"""A Monday."""

_PERIODS: Mapping[Expected, tuple[Callable[[datetime], int], Callable[[int], datetime]]] = {
    "hourly": (
        lambda time: (time - _ZERO) // timedelta(hours=1),
        lambda number: _ZERO + timedelta(hours=number),
    ),
    "daily": (lambda time: (time - _ZERO).days, lambda number: _ZERO + timedelta(days=number)),
    "weekly": (lambda time: (time - _ZERO).days // 7, lambda number: _ZERO + timedelta(weeks=number)),
    "monthly": (
        lambda time: (time.year - 1) * 12 + time.month - 1,
        lambda number: datetime(number // 12 + 1, number % 12 + 1, 1, tzinfo=UTC),
    ),
    "yearly": (lambda time: time.year - 1, lambda number: datetime(number + 1, 1, 1, tzinfo=UTC)),
}
"""For each period: the number of the period that holds an instant, and the start of a numbered period."""
