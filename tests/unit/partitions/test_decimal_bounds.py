"""Bounds of a decimal column become values of it, and mean the same rows."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from partitions.decimal_bounds import DecimalDigits, fit_bounds
from partitions.predicate import AllOf, Among, AnyOf, Between, HasValue, matches

TENTHS = DecimalDigits(2, 1)
HELD = [None, *(Decimal(number) / 10 for number in range(-99, 100))]
BOUNDS = (
    st.decimals(-12, 12, places=2) | st.integers(-12, 12) | st.sampled_from([Decimal("1E+50"), -(10**50)])
)


@given(BOUNDS | st.none(), BOUNDS, st.booleans(), st.booleans(), st.booleans())
def test_a_range_means_the_same_rows(
    lower: Decimal | int | None, upper: Decimal | int, above: bool, below: bool, swap: bool
) -> None:
    low, high = (upper, lower) if swap else (lower, upper)
    asked = Between("v", low, high, lower_inclusive=above, upper_inclusive=below)
    made = fit_bounds(asked, {"v": TENTHS})
    assert [matches(made, {"v": value}) for value in HELD] == [matches(asked, {"v": value}) for value in HELD]
    assert isinstance(made, Between)
    assert all(bound is None or bound in HELD for bound in (made.lower, made.upper))


@given(st.lists(BOUNDS | st.none(), max_size=4))
def test_values_mean_the_same_rows_beyond_the_columns_too(values: list[Decimal | int | None]) -> None:
    asked = Among("v", tuple(values))
    made = fit_bounds(AllOf((AnyOf((asked,)), HasValue("w"))), {"v": TENTHS})
    rows = [{"v": value, "w": 1} for value in HELD]
    assert [matches(made, row) for row in rows] == [matches(asked, row) for row in rows]


def test_other_columns_and_other_values_stay_as_they_are() -> None:
    for predicate in (Between("w", Decimal("0.25"), None), Between("v", "a", None), Among("v", (0.25, None))):
        assert fit_bounds(predicate, {"v": TENTHS}) == predicate
