"""Whole loaded windows of a state; what runs will read again takes no part."""

from __future__ import annotations

from partitions.instants import HOUR
from partitions.window.calendar_grid import Grid
from partitions.window.loaded_spans import loaded_spans
from partitions.window.state import WindowState

HOURS = Grid("hourly")


def test_windows_are_cut_by_their_own_grid_and_parts_take_no_part() -> None:
    half_open = 3 * HOUR + HOUR // 2
    state = WindowState(HOURS, {"a": [[0, 2 * HOUR], [2 * HOUR, half_open]], "b": []})
    assert loaded_spans(state) == {"a": [(0, HOUR), (HOUR, 2 * HOUR), (2 * HOUR, 3 * HOUR)]}


def test_windows_that_grow_or_are_read_again_take_no_part() -> None:
    units = {"a": [[0, 6 * HOUR]]}
    state = WindowState(HOURS, units, open={"a": [5 * HOUR]}, changed={"a": [[HOUR, 2 * HOUR]]})
    assert [start // HOUR for start, _ in loaded_spans(state)["a"]] == [0, 2, 3, 4]
    early = WindowState(HOURS, units, early={"a": [[0, 6 * HOUR]]})
    assert loaded_spans(early) == {}
