"""The state of a column watermark: how values are compared with bounds."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.column.state import ColumnState, ReadBound

MARKS = st.builds(ReadBound, st.integers(0, 3), st.booleans())
STATES = st.builds(ColumnState, st.dictionaries(st.sampled_from("abc"), MARKS))


@given(STATES, STATES)
def test_a_capped_state_is_the_lower_one_of_each_column(state: ColumnState, bounds: ColumnState) -> None:
    capped = state.cap_at(bounds)
    assert set(capped.bounds) == set(state.bounds) & set(bounds.bounds)
    assert bounds.covers(capped)
    assert state.covers(capped)
    for name, mark in capped.bounds.items():
        assert mark in (state.bounds[name], bounds.bounds[name])


@pytest.mark.parametrize(
    ("known", "bound", "saved"),
    [
        (Decimal("1.50"), 4, Decimal(4)),
        (1.5, 4, 4.0),
        (1.5, 2**53 + 1, 2**53 + 1),
        (1, 4, 4),
        (Decimal("1.50"), Decimal("4.25"), Decimal("4.25")),
    ],
)
def test_a_whole_bound_is_saved_as_a_value_of_the_column_s_type(known: Any, bound: Any, saved: Any) -> None:
    raised = ColumnState({"price": ReadBound(known)}).raise_to({"price": ReadBound(bound, inclusive=False)})
    value = raised.bounds["price"].value
    assert (value, type(value), raised.bounds["price"].inclusive) == (saved, type(saved), False)
