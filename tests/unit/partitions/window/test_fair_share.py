from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partitions.window.due_ranges import DueRange
from partitions.window.fair_share import (
    PlanBudget,
    UnitDueRange,
    UnitSelector,
    in_planning_order,
    share_slots,
)

ENDS = range(1, 41)
UNITS = 8


@st.composite
def offers(draw: st.DrawFn) -> list[UnitDueRange]:
    """What is due of some units: ascending ranges that lie apart."""
    parts = []
    for place in range(draw(st.integers(1, UNITS))):
        edges = sorted(draw(st.sets(st.integers(0, len(ENDS)), max_size=10)))
        for first, after in zip(edges[::2], edges[1::2], strict=False):
            served = draw(st.booleans())
            parts.append(
                UnitDueRange(DueRange(first, after, "grace" if served else "new", served=served), place)
            )
    return parts


@settings(max_examples=300)
@given(offers(), st.integers(1, 60))
def test_new_work_goes_by_window_then_by_lowest_high(parts: list[UnitDueRange], most: int) -> None:
    selector = UnitSelector(PlanBudget(1, most), ENDS)
    for part in parts:
        selector.offer(part)
    every = [
        (due.served, index, place) for due, place in parts for index in range(due.first, due.after)
    ]  # the high of a window that is loaded is its end
    wanted = sorted(every)[:most]
    assert [(due.served, index, place) for index, place, due in selector.selected] == sorted(
        wanted, key=lambda one: one[1:]
    )
    left = {
        (index, part.unit_index) for first, after, part in selector.over_cap for index in range(first, after)
    }
    assert left == {one[1:] for one in sorted(every)[most:] if one[0]}
    assert sum(selector.counts.values()) == len(every)


@given(offers())
def test_planning_order_is_windows_outside_and_units_inside(parts: list[UnitDueRange]) -> None:
    found = [(index, place) for index, place, _ in in_planning_order(parts)]
    assert found == sorted((index, place) for due, place in parts for index in range(due.first, due.after))


@pytest.mark.parametrize(
    ("budget", "failed", "others", "rooms"),
    [
        (PlanBudget(10, 100), 3, 50, (3, 50)),
        (PlanBudget(10, 100), 10, 0, (10, 0)),
        (PlanBudget(10, 100), 99, 0, (10, 0)),
        (PlanBudget(10, 100), 99, 1, (9, 1)),
        (PlanBudget(10, 100), 99, 5000, (1, 900)),
        (PlanBudget(1, 100), 99, 5000, (0, 100)),
        (PlanBudget(1, 100), 99, 0, (1, 0)),
        (PlanBudget(100, 100, 5), 9, 9, (5, 5)),
    ],
)
def test_work_units_that_failed_have_a_slice_each_and_never_all_of_them(
    budget: PlanBudget, failed: int, others: int, rooms: tuple[int, int]
) -> None:
    assert budget.slots_for(failed, others) == rooms


@pytest.mark.parametrize(
    ("budget", "most"),
    [(PlanBudget(10, 100), 1000), (PlanBudget(10, 100, 50), 50), (PlanBudget(2, 3, 50), 6)],
)
def test_a_plan_holds_as_many_work_units_as_slices_and_parallelism_allow(
    budget: PlanBudget, most: int
) -> None:
    assert budget.max_work_units == most


@pytest.mark.parametrize(
    ("others", "failed", "most", "wanted"),
    [
        ("abc", "xy", 10, "abcxy"),
        ("abc", "wxyz", 4, "abwx"),
        ("a", "wxyz", 4, "awxy"),
        ("abcd", "x", 4, "abcx"),
        ("abc", "xyz", 3, "abx"),
        ("", "xyz", 2, "xy"),
    ],
)
def test_failed_work_has_half_of_the_places(others: str, failed: str, most: int, wanted: str) -> None:
    assert "".join(share_slots(others, failed, most)) == wanted
