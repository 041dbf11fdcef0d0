"""Retention: whole days in UTC, and a bound of the column's type."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from pydantic import ValidationError

from partitions.errors import ConfigurationError
from partitions.predicate import Between
from partitions.retention import Retention, expired_folders, refuse_below_retention

RETENTION = Retention.model_validate({"column": "at", "keep": "P90D"})
NOW = datetime(2026, 6, 1, 1, tzinfo=timezone(timedelta(hours=2)))


def test_the_day_of_the_limit_stays_whole_and_days_are_of_utc() -> None:
    assert RETENTION.limit(NOW) == datetime(2026, 3, 2, tzinfo=UTC)
    assert RETENTION.limit(NOW + timedelta(hours=1)) == datetime(2026, 3, 3, tzinfo=UTC)


def test_the_bound_has_the_type_of_the_column() -> None:
    assert RETENTION.expired_rows("date", NOW) == Between("at", None, date(2026, 3, 2))
    assert RETENTION.expired_rows("timestamp", NOW) == Between("at", None, datetime(2026, 3, 2, tzinfo=UTC))
    naive = datetime(2026, 3, 2, tzinfo=UTC).replace(tzinfo=None)
    assert RETENTION.expired_rows("timestamp_ntz", NOW) == Between("at", None, naive)
    assert RETENTION.expired_rows("string", NOW) is None


def test_less_than_a_day_is_refused() -> None:
    with pytest.raises(ValidationError, match="expected P1D or longer"):
        Retention.model_validate({"column": "at", "keep": "PT23H"})


def test_a_range_below_the_limit_is_refused_and_one_that_reaches_it_is_not() -> None:
    for end in (date(2026, 3, 2), datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)):
        with pytest.raises(ConfigurationError, match=r"\(at from 2026-03-02 on, UTC\)") as refused:
            refuse_below_retention("flow", RETENTION, "AT", end, NOW)
        assert refused.value.code == "below_retention"
    others: list[tuple[str | None, Any]] = [
        ("at", date(2026, 3, 3)),
        ("other", date(2020, 1, 1)),
        (None, date(2020, 1, 1)),
        ("at", 7),
    ]
    for column, value in others:
        refuse_below_retention("flow", RETENTION, column, value, NOW)
    refuse_below_retention("flow", None, "at", date(2020, 1, 1), NOW)


def test_folders_of_the_column_below_the_limit_are_expired() -> None:
    paths = ["at=2026-03-01/a", "at=2026-03-02/a", "x/at=2026-02-01/b", "other=2020-01-01/c", "at=old/d", "e"]
    assert expired_folders(RETENTION, paths, NOW) == ["at=2026-03-01/a", "x/at=2026-02-01/b"]
    assert expired_folders(None, paths, NOW) == []
