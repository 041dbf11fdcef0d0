from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import CorruptWatermark
from partitions.path.order import FileKey
from partitions.path.state import PathState
from partitions.path.time_template import TimeTemplate
from partitions.sentinels import deserialise, serialise
from tests.support.trees import paths

processed = st.lists(paths, max_size=6)


@given(processed, processed)
def test_nothing_ever_falls(first: list[str], second: list[str]) -> None:
    before = PathState().after_files(first)
    after = before.after_files(second)
    assert before.last is None or (after.last is not None and after.last >= before.last)
    assert all(after.names[partition] >= name for partition, name in before.names.items())


@given(st.lists(paths, min_size=1, max_size=6))
def test_the_order_of_processing_does_not_matter(files: list[str]) -> None:
    assert PathState().after_files(files) == PathState().after_files(reversed(files))


@given(st.lists(paths, min_size=1, max_size=6))
def test_the_last_is_the_greatest_pair_and_each_partition_keeps_its_greatest_name(files: list[str]) -> None:
    state, keys = PathState().after_files(files), [FileKey.of(path) for path in files]
    assert state.last == max(keys)
    partitions = {key.partition for key in keys}
    assert state.names == {one: max(key.name for key in keys if key.partition == one) for one in partitions}


@given(processed)
def test_a_saved_watermark_reads_back(files: list[str]) -> None:
    state = PathState().after_files(files)
    partition = PathState.of(deserialise(serialise(state.partition_watermark())))
    assert PathState.of(deserialise(serialise(state.global_watermark()))).last == state.last
    assert (partition.names, partition.closed_before) == (state.names, None)


def test_an_empty_path_is_not_no_watermark() -> None:
    assert PathState.of({"path": ""}).last == FileKey("", "")


def test_empty_paths_with_a_closed_bound_are_not_a_cold_start() -> None:
    state = PathState.of({"paths": {}, "closed_before": datetime(2026, 1, 1, tzinfo=UTC)})
    assert (state.names, state.closed_before, state.status) == (
        {},
        datetime(2026, 1, 1, tzinfo=UTC),
        "active",
    )


@pytest.mark.parametrize(
    "watermark",
    [
        {"path": 5},
        {"paths": ["a"]},
        {"paths": {"a": 1}},
        {"path": "a", "paths": {}},
        {"paths": {}, "closed_before": "2026"},
        {"paths": {}, "closed_before": datetime(2026, 1, 1)},  # noqa: DTZ001
        {"id": 1},
    ],
)
def test_a_watermark_of_another_form_is_corrupt(watermark: dict[str, Any]) -> None:
    with pytest.raises(CorruptWatermark):
        PathState.of(watermark)


def test_a_source_that_never_saw_a_file_stays_initial() -> None:
    assert PathState().idle().status == "initial"


class TestCovers:
    """Whether going from one state to another lowers nothing."""

    @given(processed, processed)
    def test_a_state_covers_all_it_came_from(self, first: list[str], second: list[str]) -> None:
        before = PathState().after_files(first)
        after = before.after_files(second)
        assert before.covers(before)
        assert after.covers(before)
        assert before.covers(after) == ((before.last, before.names) == (after.last, after.names))

    @given(processed, processed, processed)
    def test_it_is_transitive(self, first: list[str], second: list[str], third: list[str]) -> None:
        one, two, three = (PathState().after_files(files) for files in (first, second, third))
        if one.covers(two) and two.covers(three):
            assert one.covers(three)

    def test_every_state_covers_that_of_a_new_source_and_this_one_covers_no_other(self) -> None:
        some = PathState().after_files(["a"])
        assert (some.covers(PathState()), PathState().covers(some)) == (True, False)

    def test_no_name_of_an_open_partition_may_fall_or_be_forgotten(self) -> None:
        other = PathState(names={"p": "b", "q": "b"}, status="active")
        assert PathState(names={"p": "b", "q": "c", "r": "a"}).covers(other)
        assert not PathState(names={"p": "a", "q": "b"}).covers(other)
        assert not PathState(names={"p": "b"}).covers(other)

    def test_a_closed_partition_may_be_forgotten(self) -> None:
        template, bound = TimeTemplate("d=%Y-%m-%d"), datetime(2026, 1, 5, tzinfo=UTC)
        other = PathState(names={"d=2026-01-04": "b", "d=2026-01-05": "b"})
        state = PathState(names={"d=2026-01-05": "b"}, closed_before=bound)
        assert state.covers(other, template)
        assert not state.covers(other), "without a template nothing tells that it is closed"
        assert not PathState(names={}, closed_before=bound).covers(other, template), "the 5th is open"

    def test_the_closed_bound_may_not_fall(self) -> None:
        lower, higher = (PathState(closed_before=datetime(2026, 1, day, tzinfo=UTC)) for day in (4, 5))
        assert (higher.covers(lower), lower.covers(higher), PathState().covers(lower)) == (True, False, False)
