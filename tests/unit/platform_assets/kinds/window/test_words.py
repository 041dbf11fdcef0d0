"""How far windows are loaded, in words; the plan of a run tells of gaps before the first loaded window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from partitions.instants import DAY, milliseconds
from partitions.plan import Plan
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from platform_assets.kinds.window.profile import WindowProfile
from platform_assets.kinds.window.words import UnloadedSpan, reach_in_words
from resources.outcome import Outcome
from tests.support.chained import at
from tests.support.upstreams import ONE, after, hours, planned, unit

EWR, JFK = unit("EWR"), unit("JFK")
FROM = milliseconds(at(0))
"""5 January 2026."""


def span(first: int, last: int) -> tuple[int, int]:
    return FROM + first * DAY, FROM + last * DAY


def up_to(day: int) -> str:
    return f"2026-01-{5 + day:02}T00:00:00+00:00"


@pytest.mark.parametrize(
    ("units", "unloaded", "words"),
    [
        ({ONE: [span(1, 2)]}, [], f"up to {up_to(2)}"),
        ({ONE: [span(1, 2)]}, [(span(0, 1), "")], f"loaded up to {up_to(2)}, first windows missing (1 gap)"),
        ({ONE: [span(1, 2)]}, [(span(2, 3), "")], f"up to {up_to(2)}"),
        ({ONE: [span(1, 2)]}, [(span(1, 2), "")], f"up to {up_to(2)}"),
        (
            {ONE: [span(0, 1), span(2, 3), span(4, 5)]},
            [(span(1, 2), ""), (span(3, 4), "")],
            f"complete up to {up_to(1)}, at most up to {up_to(5)} (2 gaps)",
        ),
        (
            {EWR: [span(0, 2)], JFK: [span(1, 2)]},
            [(span(0, 1), "airport JFK")],
            f"loaded up to {up_to(2)}, first windows missing (1 of 2 units behind)",
        ),
        (
            {EWR: [span(0, 2)]},
            [(span(0, 1), "airport JFK")],
            f"loaded up to {up_to(2)}, first windows missing (1 of 2 units behind)",
        ),
        (
            {EWR: [span(0, 2)], JFK: [span(0, 1)]},
            [(span(1, 2), "airport JFK")],
            f"complete up to {up_to(1)}, at most up to {up_to(2)} (1 of 2 units behind)",
        ),
    ],
)
def test_windows_that_are_not_loaded_are_gaps(
    units: dict[str, Any], unloaded: Sequence[UnloadedSpan], words: str
) -> None:
    assert reach_in_words({"units": units}, unloaded) == words


def test_a_failed_first_window_is_told_as_a_failure() -> None:
    watermark = {"units": {ONE: [span(1, 2)]}, "failed": {ONE: {str(FROM): [1, "bad", FROM]}}}
    expected = f"complete up to {up_to(0)}, at most up to {up_to(2)}, 1 work unit failed"
    assert reach_in_words(watermark, [(span(0, 1), "")]) == reach_in_words(watermark) == expected


def test_the_line_of_a_run_tells_of_a_first_day_that_waits_and_of_its_load() -> None:
    waiting = planned(hours(2, {ONE: [5]}))
    first = after(waiting)
    complete = planned(hours(2, position=2, since=[(ONE, 5)]), first)
    second = after(complete, first)
    profile, gap = WindowProfile(), "loaded up to 2026-01-03T00:00:00+00:00, first windows missing (1 gap)"

    def words(plan: Plan[WindowSlice], state: WindowState) -> str:
        return profile.outcome_watermark(Outcome("days", None, {}, 0, plan), state.watermark())

    assert words(waiting, first) == gap
    assert (words(complete, first), words(complete, second)) == (gap, "up to 2026-01-03T00:00:00+00:00")
