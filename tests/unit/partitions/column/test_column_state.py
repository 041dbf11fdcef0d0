"""The state of a column watermark: how values are compared with bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partitions.column.state import ColumnState, Mark

MARKS = st.builds(Mark, st.integers(0, 3), st.booleans())
STATES = st.builds(ColumnState, st.dictionaries(st.sampled_from("abc"), MARKS))


@given(STATES, STATES)
def test_a_capped_state_is_the_lower_one_of_each_column_and_says_nothing_of_others(
    state: ColumnState, bounds: ColumnState
) -> None:
    capped = state.capped(bounds)
    assert set(capped.marks) == set(state.marks) & set(bounds.marks)
    assert bounds.covers(capped)
    assert state.covers(capped)
    for name, mark in capped.marks.items():
        assert mark in (state.marks[name], bounds.marks[name])
