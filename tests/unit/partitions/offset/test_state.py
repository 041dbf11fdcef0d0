"""The stored form of an offset, and which state covers which."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import CorruptWatermark
from partitions.log_position import LogPosition
from partitions.offset.commits import Commit
from partitions.offset.slices import CommitRange, SnapshotRange
from partitions.offset.state import OffsetState, SnapshotProgress
from partitions.sentinels import deserialise, serialise

POSITIONS = st.builds(
    LogPosition, st.text(min_size=1), st.integers(0, 99), st.none() | st.text(min_size=1)
) | st.builds(
    LogPosition, st.text(min_size=1), st.integers(0, 99), st.integers(1, 2**62).map(str), st.just(value=True)
)
PROGRESS = st.builds(SnapshotProgress, st.integers(0, 99), st.integers(0, 9), st.integers(10, 20))
STATES = st.just(OffsetState()) | st.builds(
    OffsetState,
    POSITIONS,
    st.none() | PROGRESS,
    st.none() | POSITIONS,
    st.lists(POSITIONS, max_size=2).map(tuple),
    st.none() | st.integers(0, 99),
)


@given(STATES)
def test_a_stored_state_is_the_same_state(state: OffsetState) -> None:
    assert OffsetState.of(deserialise(serialise(state.watermark()))) == state


def test_the_stored_forms_of_both_formats() -> None:
    delta = OffsetState(LogPosition("a", 41, "c"), SnapshotProgress(41, 1200, 4000))
    assert delta.watermark() == {
        "offset": {"table": "a", "version": 41, "commit": "c"},
        "snapshot": {"version": 41, "files_done": 1200, "files": 4000},
    }
    iceberg = OffsetState(LogPosition("u", 41, "8123", is_snapshot=True))
    assert iceberg.watermark() == {"offset": {"table": "u", "snapshot": 8123, "sequence": 41}}


@pytest.mark.parametrize(
    "watermark",
    [
        {"offset": {}},
        {"offset": {"table": "a"}},
        {"offset": {"table": "a", "version": "41"}},
        {"offset": {"table": "a", "version": -1}},
        {"offset": {"table": "a", "version": True}},
        {"offset": {"table": "a", "version": 1, "more": 2}},
        {"offset": {"table": "a", "snapshot": "x", "sequence": 2}},
        {"offset": {"table": "a", "version": 1}, "snapshot": {"version": 1}},
        {"offset": {"table": "a", "version": 1}, "accepted": "2"},
        {"offset": {"table": "a", "version": 1}, "path": "x"},
        {"version": 1},
    ],
)
def test_another_form_is_corrupt(watermark: dict[str, Any]) -> None:
    with pytest.raises(CorruptWatermark, match="offset watermark: expected"):
        OffsetState.of(watermark)


def test_a_first_read_lies_below_the_position_where_it_ends() -> None:
    part = OffsetState(LogPosition("a", 5), SnapshotProgress(5, 2, 9))
    further = OffsetState(LogPosition("a", 5), SnapshotProgress(5, 3, 9))
    whole, later = OffsetState(LogPosition("a", 5)), OffsetState(LogPosition("a", 6))
    states = [OffsetState(), part, further, whole, later]
    for place, state in enumerate(states):
        assert [state.covers(other) for other in states] == [True] * (place + 1) + [False] * (4 - place)


def test_states_of_two_tables_have_no_order() -> None:
    one, other = OffsetState(LogPosition("a", 5)), OffsetState(LogPosition("b", 1))
    assert one.covers(other)
    assert other.covers(one)


def test_an_accepted_change_is_forgotten_once_it_is_passed() -> None:
    state = OffsetState(LogPosition("a", 5), accepted=LogPosition("a", 7))
    assert state.at(LogPosition("a", 6)).accepted == LogPosition("a", 7)
    assert state.at(LogPosition("a", 9), [LogPosition("a", 7)]).accepted is None


def test_numbers_of_commits_rise_although_a_rollback_has_the_version_of_the_commit_before_it() -> None:
    state = OffsetState(LogPosition("u", 5, "50", is_snapshot=True))
    rollback, again, later = (
        Commit(LogPosition("u", version, id_, is_snapshot=True), 1, 1)
        for version, id_ in [(5, "30"), (5, "50"), (6, "60")]
    )
    for commit, number in [(rollback, 6), (again, 7), (later, 8)]:
        part = CommitRange(state.position, (commit,), commit.position)
        assert part.numbers(state) == {commit.position.version: number}
        state = part.state_after(state)
        assert state.last_number == number
    assert state.watermark()["number"] == 8


def test_all_slices_of_a_first_read_have_one_number_and_one_that_follows_another_table_has_a_higher_one() -> (
    None
):
    position = LogPosition("new", 3, "c")
    state = OffsetState(number=41)
    for start in range(2):
        part = SnapshotRange(position, start, start + 1, 2, 1)
        assert part.numbers(state) == {3: 42}
        state = part.state_after(state)
    assert state == OffsetState(position, number=42)
    assert SnapshotRange(position, 0, 2, 2, 1).numbers(OffsetState()) == {3: 3}


def test_numbers_never_fall_after_a_rollback_and_a_typed_position() -> None:
    first, back, later = (LogPosition("u", version, str(version), is_snapshot=True) for version in (5, 5, 9))
    rolled_back = CommitRange(first, (Commit(back, 1, 1),), back).state_after(OffsetState(first))
    assert rolled_back.number == 6
    caught_up = CommitRange(back, (Commit(later, 1, 1),), later).state_after(rolled_back)
    assert (caught_up.last_number, caught_up.number) == (9, 9)  # earlier rows have other numbers for ever
    typed = OffsetState(LogPosition("other", 3))
    assert typed.continued(caught_up).number_of(4) == 10
    assert typed.continued(OffsetState(LogPosition("u", 2))) == typed
    assert OffsetState(LogPosition("u", 12)).continued(caught_up).number == 12
    assert OffsetState().continued(caught_up) == OffsetState()
