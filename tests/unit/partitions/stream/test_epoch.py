"""How an epoch begins and ends: new, declared, idle, returning and removed splits; and the stored form of its state."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import CorruptWatermark
from partitions.sentinels import deserialise, serialise
from partitions.stream.epoch import close_epoch, open_epoch, state_with_merged_splits, state_without_splits
from partitions.stream.splits import SplitOptions
from partitions.stream.state import Segment, Split, StreamState

_DECLARED = SplitOptions(timeout=10, declared=frozenset("ab"), idle_after=2)


def _epoch(
    state: StreamState, splits: SplitOptions, tops: dict[str, int], *, counts: bool = True
) -> StreamState:
    return close_epoch(open_epoch(state, splits, tops), splits, tops, counts=counts)


def _run(splits: SplitOptions, *epochs: dict[str, int]) -> StreamState:
    state = StreamState()
    for tops in epochs:
        state = _epoch(state, splits, tops)
    return state


def test_split_watermarks_survive_between_epochs() -> None:
    assert _run(_DECLARED, {"a": 101, "b": 50}, {"a": 200}).value == 40
    assert _run(_DECLARED, {"a": 101, "b": 50}, {"a": 200}, {"b": 60}).value == 50


def test_a_declared_split_that_never_comes_is_idle_in_time_and_then_not_waited_for() -> None:
    assert _run(_DECLARED, {"a": 100}).value is None
    state = _run(_DECLARED, {"a": 100}, {"a": 200})
    assert (state.value, state.splits["b"]) == (190, Split(None, 2))
    late = _epoch(state, _DECLARED, {"b": 150})
    assert (late.value, late.splits["b"]) == (190, Split(190, 0))


def test_an_epoch_that_left_input_unread_makes_no_split_idle() -> None:
    state = _run(_DECLARED, {"a": 100, "b": 100})
    for top in range(101, 120):
        state = _epoch(state, _DECLARED, {"a": top}, counts=False)
    assert (state.value, state.splits["b"].idle) == (90, 0)


def test_a_split_that_returns_is_judged_by_the_global_watermark() -> None:
    state = _run(_DECLARED, {"a": 100, "b": 50}, {"a": 200}, {"a": 300})
    assert (state.value, state.bound("b")) == (290, 290)


def test_under_stall_an_idle_split_is_waited_for() -> None:
    stall = SplitOptions(timeout=10, declared=frozenset("ab"), idle_after=1, idle="stall")
    assert _run(stall, {"a": 100, "b": 50}, {"a": 200}, {"a": 300}).value == 40


def test_an_idle_split_adopts_the_maximum_in_each_further_epoch() -> None:
    adopt = SplitOptions(timeout=10, idle_after=1, idle="adopt_max")
    state = _run(adopt, {"a": 100, "b": 50}, {"a": 200})
    assert (state.value, state.splits["b"].watermark) == (190, 190)
    assert _epoch(state, adopt, {"a": 300}).splits["b"].watermark == 290


def test_when_all_are_idle_the_global_watermark_stays() -> None:
    state = _run(_DECLARED, {"a": 100, "b": 50}, {"c": 70}, {"c": 70}, {})
    assert _epoch(_epoch(state, _DECLARED, {}), _DECLARED, {}).value == state.value


def test_a_new_split_stands_at_the_global_watermark_and_a_new_name_is_declared_there() -> None:
    state = _run(_DECLARED, {"a": 100, "b": 100})
    assert open_epoch(state, _DECLARED, ["c"]).splits["c"] == Split(90, 0)
    more = SplitOptions(timeout=10, declared=frozenset("abd"))
    assert open_epoch(state, more, []).splits["d"] == Split(90, 0)


def test_an_undeclared_name_with_rows_is_kept_and_not_waited_for() -> None:
    less = SplitOptions(timeout=10, declared=frozenset("b"))
    state = _run(_DECLARED, {"a": 100})
    only = SplitOptions(timeout=10, declared=frozenset("a"))
    assert open_epoch(state, only, ["c"]).bound("c") is None, (
        "a row is not late because a name was taken out just now"
    )
    assert _epoch(state, only, {}).value == 90
    assert set(open_epoch(state, less, []).splits) == {"a", "b"}


def test_a_removed_split_leaves_the_minimum() -> None:
    state = _run(_DECLARED, {"a": 100, "b": 50})
    assert state_without_splits(state, _DECLARED, ["b"]).value == 90


def test_a_merged_split_is_as_awake_as_its_parents() -> None:
    state = _run(_DECLARED, {"a": 100, "b": 50}, {"a": 200})
    merged = state_with_merged_splits(state, _DECLARED, ["a", "b"], "n")
    assert merged.splits == {"n": Split(190, 0)}
    assert merged.value == 190


def test_in_mode_unit_a_new_split_raises_all_to_the_maximum_at_once() -> None:
    unit = SplitOptions(timeout=10, scaling="unit")
    state = _run(unit, {"a": 100, "b": 50})
    assert open_epoch(state, unit, ["a", "b"]) == state
    begun = open_epoch(state, unit, ["c"])
    assert {split.watermark for split in begun.splits.values()} == {90}
    assert begun.value == 90


def test_in_mode_unit_splits_that_become_one_raise_all_to_the_maximum_at_once() -> None:
    unit = SplitOptions(timeout=10, scaling="unit")
    state = _run(unit, {"a": 100, "b": 50, "c": 20})
    merged = state_with_merged_splits(state, unit, ["b", "c"], "n")
    assert {name: split.watermark for name, split in merged.splits.items()} == {"a": 90, "n": 90}
    assert merged.value == 90


_TOPS = st.dictionaries(st.sampled_from("abcd"), st.integers(0, 60), max_size=4)


@given(
    epochs=st.lists(st.tuples(_TOPS, st.integers(0, 20), st.booleans()), max_size=10),
    declared=st.frozensets(st.sampled_from("abc")),
    idle=st.sampled_from(["exclude", "adopt_max", "stall"]),
    scaling=st.sampled_from(["split", "unit"]),
    least=st.integers(0, 3),
)
def test_no_watermark_ever_falls(
    epochs: list[tuple[dict[str, int], int, bool]],
    declared: frozenset[str],
    idle: Any,
    scaling: Any,
    least: int,
) -> None:
    state = StreamState()
    for tops, timeout, counts in epochs:
        splits = SplitOptions(timeout, declared, least, idle, 2, scaling)
        after = _epoch(state, splits, tops, counts=counts)
        assert _at_least(after.value, state.value)
        assert all(
            _at_least(after.splits[name].watermark, split.watermark) for name, split in state.splits.items()
        )
        assert StreamState.of(deserialise(serialise(after.watermark()))) == after
        state = after


def _at_least(after: int | None, before: int | None) -> bool:
    return before is None or (after is not None and after >= before)


def test_the_stored_form_keeps_times_and_segments() -> None:
    at = datetime(2026, 1, 1)  # noqa: DTZ001
    state = StreamState({"a": Split(at, 3)}, at, (Segment("s1", 5, at, at),))
    assert StreamState.of(deserialise(serialise(state.watermark()))) == state
    assert StreamState.holds_nothing(StreamState({"a": Split()}).watermark())
    assert not StreamState.holds_nothing(state.watermark())


@pytest.mark.parametrize("damaged", [
    {"global": 5},
    {"global": 5, "splits": {}, "segments": [], "more": 1},
    {"global": 5, "splits": {"a": {"watermark": datetime(2026, 1, 1), "idle": 0}}, "segments": []},  # noqa: DTZ001
    {"global": 5, "splits": {"a": {"watermark": 5, "idle": -1}}, "segments": []},
    {"global": 5, "splits": [], "segments": []},
    {"global": "5", "splits": {}, "segments": []},
])  # fmt: skip
def test_another_form_is_refused(damaged: dict[str, Any]) -> None:
    with pytest.raises(CorruptWatermark):
        StreamState.of(damaged)
