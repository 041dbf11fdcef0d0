"""Which versions go into one epoch, which epoch counts for idleness, and which splits a plan names."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from partitions.plan import Plan
from partitions.stream.definition import StreamWatermark
from partitions.stream.plan import Chunk, plan
from partitions.stream.slices import EpochSlice
from partitions.stream.state import Split, StreamState

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def planned(chunks: list[Chunk], state: StreamState | None = None, **keys: Any) -> Plan[EpochSlice]:
    declared = {"type": "stream", "event_time": "ts", "split": "d", "timeout": 5} | keys
    definition = StreamWatermark.model_validate(declared)
    return plan(definition, state or StreamState(), "t", chunks, NOW, dataflow="flow", number=7)


def test_an_epoch_has_at_most_so_many_files_and_no_version_is_cut() -> None:
    chunks = [Chunk(0, 2, 1), Chunk(1, 2, 1), Chunk(2, 9, 1), Chunk(3, 1, 1)]
    slices = planned(chunks, checkpoint={"interval_files": 4}).slices
    assert [(each.number, each.input.first, each.input.last) for each in slices] == [
        (8, 0, 1),
        (9, 2, 2),
        (10, 3, 3),
    ]
    assert [each.counts for each in slices] == [False, False, True]


def test_versions_that_append_nothing_go_along_and_are_no_epoch_alone() -> None:
    (only,) = planned([Chunk(3, 0, 0), Chunk(4, 1, 1), Chunk(5, 0, 0)]).slices
    assert (only.input.first, only.input.last) == (3, 5)
    assert planned([Chunk(3, 0, 0)]).slices == ()


def test_a_run_that_leaves_epochs_for_the_next_one_makes_no_split_idle() -> None:
    found = planned(
        [Chunk(0, 1, 1), Chunk(1, 1, 1), Chunk(2, 1, 1)], checkpoint={"interval_files": 1}, max_slices=2
    )
    assert [each.counts for each in found.slices] == [False, False]
    assert [skip.what for skip in found.skips] == ["1 epoch"]


def test_awaited_and_idle_splits_are_skips() -> None:
    state = StreamState({"a": Split(10, 0), "b": Split(10, 5), "c": Split(None, 1)}, 10)
    found = planned([], state, splits=["a", "c", "d"])
    assert [(skip.what, skip.why.split(":")[0]) for skip in found.skips] == [
        ("split c", "is awaited"),
        ("split d", "is awaited"),
        ("split b", "is idle"),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20),
    st.integers(1, 6),
    st.integers(1, 9),
)
def test_epochs_cover_all_versions_with_files_once_and_in_order(
    sizes: list[tuple[int, int]], most_files: int, most_bytes: int
) -> None:
    chunks = [Chunk(version, files, size) for version, (files, size) in enumerate(sizes)]
    limits = {"interval_files": most_files, "interval_bytes": most_bytes}
    slices = planned(chunks, checkpoint=limits).slices
    read = [version for each in slices for version in range(each.input.first, each.input.last + 1)]
    assert read == sorted(set(read))
    assert {chunk.version for chunk in chunks if chunk.files} <= set(read)
    assert sum(each.counts for each in slices) == bool(slices)
