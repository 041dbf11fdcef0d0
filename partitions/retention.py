"""How long rows stay in a table (docs/how-to/deleting-and-keeping.md)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from partitions.errors import ConfigurationError
from partitions.model import Duration, Model
from partitions.path.hive import folder_value
from partitions.predicate import Between

_SHORTEST = timedelta(days=1)

TYPES = ("date", "timestamp", "timestamp_ntz")
"""Types of a column that retention compares, in Spark's words; a ``timestamp_ntz`` counts as UTC."""


def _not_too_short(keep: timedelta) -> timedelta:
    if keep < _SHORTEST:
        raise ValueError("expected P1D or longer: rows go by whole days")
    return keep


class Retention(Model):
    """The age at which rows go.

    Attributes:
        column: the column with a row's time; rows without a value stay.
        keep: how long a row stays, at least a day.
    """

    column: Annotated[str, Field(min_length=1)]
    keep: Annotated[Duration, AfterValidator(_not_too_short)]

    def limit(self, now: datetime) -> datetime:
        """Return the first instant whose rows stay: a midnight in UTC.

        The day of ``now - keep`` stays whole, so that the limit moves once a day.

        Args:
            now: the clock, aware.
        """
        start = now.astimezone(UTC) - self.keep
        return start.replace(hour=0, minute=0, second=0, microsecond=0)

    def expired_rows(self, data_type: str, now: datetime) -> Between | None:
        """Return the rows below the limit; None if the column's type has no time.

        Args:
            data_type: the column's type, in Spark's words.
            now: the clock, aware.
        """
        return rows_before(self.column, data_type, self.limit(now))


def rows_before(column: str, data_type: str, limit: datetime) -> Between | None:
    """Return the rows of a column below a midnight in UTC; None if the column's type has no time."""
    bounds: dict[str, Any] = {
        "date": limit.date(),
        "timestamp": limit,
        "timestamp_ntz": limit.replace(tzinfo=None),
    }
    return Between(column, None, bounds[data_type]) if data_type in bounds else None


def refuse_below_retention(
    dataflow: str, retention: Retention | None, column: str | None, end: Any, now: datetime
) -> None:
    """Raise ConfigurationError if a range of a column lies below the retention as a whole.

    Args:
        dataflow: the dataflow's name.
        retention: its retention; None: there is none.
        column: the column of the range; None: unknown.
        end: the exclusive end of the range: a date, a time, or another value; a time without a zone is UTC.
        now: the clock, aware.

    Raises:
        ConfigurationError: code ``below_retention``.
    """
    if retention is None or column is None or column.casefold() != retention.column.casefold():
        return
    if not isinstance(end, date):
        return
    limit = retention.limit(now)
    instant = end if isinstance(end, datetime) else datetime(end.year, end.month, end.day)  # noqa: DTZ001
    instant = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
    if instant <= limit:
        raise ConfigurationError(
            f"dataflow {dataflow}: expected a range that ends above the retention ({retention.column} from {limit:%Y-%m-%d} on, UTC), found one up to"
            f" {end}: no row in it would stay. To get these rows back, lengthen target.retention.keep",
            code="below_retention",
        )


def expired_folders(retention: Retention | None, paths: Iterable[str], now: datetime) -> list[str]:
    """Return the paths whose folder of the retention's column names a day below the limit."""
    if retention is None:
        return []
    limit = retention.limit(now).date()
    expired = []
    for path in paths:
        value = folder_value(path, retention.column)
        try:
            day = date.fromisoformat(value) if value else limit
        except ValueError:
            continue
        if day < limit:
            expired.append(path)
    return expired
