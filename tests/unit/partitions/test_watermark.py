from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import ConfigurationError
from partitions.watermark import compare_values


@given(st.integers(), st.integers())
def test_values_of_one_kind_compare_as_they_do(one: int, other: int) -> None:
    assert compare_values(one, other) == (one > other) - (one < other)


def test_a_date_counts_as_its_midnight_beside_a_naive_datetime() -> None:
    assert compare_values(date(2026, 1, 2), datetime(2026, 1, 2)) == 0  # noqa: DTZ001
    assert compare_values(datetime(2026, 1, 2, 1), date(2026, 1, 2)) == 1  # noqa: DTZ001


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)),  # noqa: DTZ001
        (date(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)),
        ("1", 1),
    ],
)
def test_values_without_a_common_order_are_refused(one: object, other: object) -> None:
    with pytest.raises(ConfigurationError, match="cannot compare"):
        compare_values(one, other)
