from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partitions.window.calendar_grid import Grid
from partitions.window.covering_state import upper_bound
from partitions.window.state import WindowState
from partitions.window.work_outcomes import LoadedUnit
from tests.support.naive_windows import highs

DAY = 86_400_000
GRIDS = st.sampled_from([Grid("daily"), Grid("weekly")])


def _done(day: int, unit: str, grid: Grid, short: int) -> LoadedUnit:
    start, end = day * DAY, grid.end(day * DAY)
    return LoadedUnit(start, end - short, start, unit, bool(short), grid)


loads = st.lists(
    st.builds(_done, st.integers(0, 20), st.sampled_from("ab"), GRIDS, st.sampled_from([0, 5])), max_size=12
)


@given(st.lists(st.tuples(GRIDS, loads), max_size=4))
def test_a_cover_holds_the_highest_highs_alone(given_states: list[tuple[Grid, list[LoadedUnit]]]) -> None:
    states = [WindowState(grid).after(done) for grid, done in given_states]
    found = upper_bound(states)
    wanted: dict[tuple[int, str], int] = {}
    for state in states:
        wanted |= {key: max(high, wanted.get(key, high)) for key, high in highs(state).items()}
    assert highs(found) == wanted
    assert all(found.covers(state) for state in states)
    assert upper_bound([found]) == found
