"""Which rows a promote swaps, told of single values: the range's, but none that the live flow has loaded since."""

from __future__ import annotations

import pytest

from partitions.column.state import ColumnState, ReadBound
from partitions.predicate import Between, matches
from partitions.replay.chunks import Chunk
from partitions.replay.promotion import LoadedEntry, loaded_again, promoted_rows, swaps_nothing

RANGE = Chunk("a", 10, 20)


def state(inclusive: bool = True, **values: int) -> ColumnState:
    return ColumnState({name: ReadBound(value, inclusive) for name, value in values.items()})


def swapped(begun: ColumnState, now: ColumnState, **how: bool) -> list[int]:
    rows = promoted_rows(RANGE, ["a"], begun, now, **{"keeps_boundary": False, "leaves_above": False} | how)
    return [value for value in range(5, 25) if matches(rows, {"a": value})]


def test_a_range_below_the_state_is_swapped_whole() -> None:
    assert swapped(state(a=20), state(a=99)) == list(range(10, 20))
    rows = promoted_rows(RANGE, ["a"], state(a=20), state(a=99), keeps_boundary=True, leaves_above=True)
    assert rows == Between("a", 10, 20)


def test_what_the_live_flow_has_loaded_since_stays() -> None:
    assert swapped(state(a=12), state(a=15)) == [10, 11, 12, 16, 17, 18, 19]


def test_rows_above_the_state_come_unless_the_next_run_would_add_them_again() -> None:
    assert swapped(state(a=12), state(a=12)) == list(range(10, 20))
    assert swapped(state(a=12), state(a=12), leaves_above=True) == [10, 11, 12]
    assert swapped(state(), state(), leaves_above=True) == []


def test_a_stored_value_that_is_read_again_stays_as_the_live_flow_has_it() -> None:
    assert swapped(state(a=12), state(a=12), keeps_boundary=True, leaves_above=True) == [10, 11]
    assert swapped(state(inclusive=False, a=12), state(a=12), leaves_above=True) == [10, 11]


@pytest.mark.parametrize("leaves_above", [False, True])
@pytest.mark.parametrize("now", [{}, {"a": 5}, {"a": 12}, {"a": 20}, {"a": 25}])
@pytest.mark.parametrize("begun", [{}, {"a": 5}, {"a": 10}, {"a": 12}, {"a": 19}, {"a": 20}])
def test_a_promote_that_would_swap_no_row_is_told(
    begun: dict[str, int], now: dict[str, int], *, leaves_above: bool
) -> None:
    if now.get("a", 0) < begun.get("a", 0):
        return  # a state that was set back
    was, is_ = (
        ColumnState({name: ReadBound(value) for name, value in marks.items()}) for marks in (begun, now)
    )
    found = swaps_nothing(RANGE, ["a"], was, is_, leaves_above=leaves_above)
    assert found is (swapped(was, is_, leaves_above=leaves_above) == [])


def test_of_several_columns_each_makes_a_row_new() -> None:
    rows = promoted_rows(
        RANGE, ["a", "b"], state(a=30, b=5), state(a=30, b=8), keeps_boundary=False, leaves_above=False
    )
    found = {b: matches(rows, {"a": 12, "b": b}) for b in (4, 5, 6, 8, 9, None)}
    assert found == {4: True, 5: True, 6: False, 8: False, 9: True, None: True}


@pytest.mark.parametrize(
    ("lower", "upper", "again"),
    [
        (12, 14, False),  # above the state when the replay began
        (11, 14, True),
        (5, 9, False),  # below the range
        (None, 14, True),  # after a reset
    ],
)
def test_rows_read_again_below_the_state_are_told(lower: int | None, upper: int, again: bool) -> None:
    entry = LoadedEntry(7, None if lower is None else state(a=lower), state(a=upper))
    assert bool(list(loaded_again([entry], RANGE, ["a"], state(a=12)))) is again


def test_a_first_run_after_the_replay_began_reads_nothing_again() -> None:
    assert not list(loaded_again([LoadedEntry(1, None, state(a=14))], RANGE, ["a"], state()))
