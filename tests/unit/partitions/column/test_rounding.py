from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_HALF_UP, Decimal, localcontext

from hypothesis import example, given
from hypothesis import strategies as st

from partitions.column.predicates import Range
from partitions.column.rounding import as_loaded, whole_cells
from partitions.column.slices import ColumnSlice
from partitions.predicate import matches

UNIT = Decimal(1).scaleb(-18)
HALVES = st.integers(-6, 6).map(lambda number: number * UNIT / 2)
NEAR = st.builds(
    lambda cell, rest: cell + rest, HALVES, st.sampled_from([Decimal(0), UNIT / 1000, -UNIT / 1000])
)


def loaded(value: Decimal) -> Decimal:
    with localcontext(prec=99):
        return value.quantize(UNIT, ROUND_HALF_UP)


def slice_of(lower: Decimal | None, upper: Decimal | None, low: bool, high: bool) -> ColumnSlice:
    return ColumnSlice({}, (Range("n", lower, upper, low, high),))


@given(
    values=st.lists(NEAR),
    lower=st.none() | NEAR,
    upper=NEAR,
    low=st.booleans(),
    high=st.booleans(),
    base=st.sampled_from([Decimal(0), Decimal(10) ** 19]),
)
@example(values=[UNIT / 2], lower=UNIT, upper=UNIT * 2, low=False, high=True, base=Decimal(0))
@example(values=[-UNIT / 2], lower=Decimal(0), upper=UNIT, low=True, high=True, base=Decimal(0))
def test_what_is_read_is_what_is_deleted_but_for_rows_that_were_never_loaded(
    values: list[Decimal], lower: Decimal | None, upper: Decimal, low: bool, high: bool, base: Decimal
) -> None:
    """Each row that is read is deleted, and each row that is deleted and was loaded before, up to the upper bound, is read."""
    with localcontext(prec=99):
        values = [base + value for value in values]
        given_ = slice_of(base + lower if lower is not None else None, base + upper, low, high)
    read, deleted = whole_cells(given_, {"n"}).rows, as_loaded(given_, {"n"}).rows
    for value in values:
        is_read = matches(read, {"n": value})
        is_deleted = matches(deleted, {"n": loaded(value)})
        assert not is_read or is_deleted
        was_loaded = value <= given_.ranges[0].upper if high else True
        assert not (is_deleted and was_loaded) or is_read


@given(value=NEAR, lower=NEAR)
def test_no_row_above_the_lower_bound_is_left_out(value: Decimal, lower: Decimal) -> None:
    given_ = slice_of(lower, None, low=False, high=True)
    assert not matches(given_.rows, {"n": value}) or matches(whole_cells(given_, {"n"}).rows, {"n": value})


def test_other_columns_and_open_bounds_stay_as_they_are() -> None:
    given_ = ColumnSlice({}, (Range("n", None, Decimal(1)), Range("at", 1, 2)))
    read = whole_cells(given_, {"n"})
    assert read == given_
    assert as_loaded(given_, {"n"}) == replace(
        given_, ranges=(Range("n", None, loaded(Decimal(1))), Range("at", 1, 2))
    )
