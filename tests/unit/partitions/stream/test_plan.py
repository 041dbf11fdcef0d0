"""Which versions go into one epoch, which epoch counts for idleness, and which splits a plan names."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from partitions.path.definition import Checkpoint
from partitions.path.source import SourceFile, in_pair_order
from partitions.plan import Plan, Skip
from partitions.stream.definition import StreamWatermark
from partitions.stream.inputs import Files, VersionChunk, Versions, cut_files, cut_versions
from partitions.stream.plan import plan
from partitions.stream.slices import EpochSlice
from partitions.stream.state import Segment, Split, StreamState

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def planned(chunks: list[VersionChunk], state: StreamState | None = None, **keys: Any) -> Plan[EpochSlice]:
    declared = {"type": "stream", "event_time": "ts", "split": "d", "timeout": 5} | keys
    definition = StreamWatermark.model_validate(declared)
    inputs = cut_versions(definition.checkpoint, "t", chunks, None)
    return plan(definition, state or StreamState(), inputs, NOW, dataflow="flow", state_number=7)


def versions(slice_: EpochSlice) -> tuple[int, int]:
    given = slice_.input
    assert isinstance(given, Versions)
    return given.first, given.last


def test_an_epoch_has_at_most_so_many_files_and_no_version_is_cut() -> None:
    chunks = [VersionChunk(0, 2, 1), VersionChunk(1, 2, 1), VersionChunk(2, 9, 1), VersionChunk(3, 1, 1)]
    slices = planned(chunks, checkpoint={"interval_files": 4}).slices
    assert [(each.number, *versions(each)) for each in slices] == [
        (8, 0, 1),
        (9, 2, 2),
        (10, 3, 3),
    ]
    assert [each.counts for each in slices] == [False, False, True]


def test_versions_that_append_nothing_go_along_and_are_no_epoch_alone() -> None:
    (only,) = planned([VersionChunk(3, 0, 0), VersionChunk(4, 1, 1), VersionChunk(5, 0, 0)]).slices
    assert versions(only) == (3, 5)
    assert planned([VersionChunk(3, 0, 0)]).slices == ()


def test_input_that_waits_makes_no_split_idle() -> None:
    definition = StreamWatermark.model_validate(
        {"type": "stream", "event_time": "ts", "split": "d", "timeout": 5}
    )
    inputs = cut_versions(definition.checkpoint, "t", [VersionChunk(0, 1, 1)], None)
    waits = [Skip("b.json", "settles")]
    found = plan(definition, StreamState(), inputs, NOW, dataflow="flow", state_number=0, held_back=waits)
    assert [each.counts for each in found.slices] == [False]
    assert found.skips == (Skip("b.json", "settles"),)


def files_of(paths: Sequence[str], most: int, split: Sequence[str], before: Any) -> list[list[str]]:
    files = in_pair_order([SourceFile(path, 1, "v", 0) for path in paths])
    made = cut_files(Checkpoint(interval_files=most), before, files, split)
    assert all(isinstance(each, Files) for each in made)
    return [[str(path) for path in each.keys] for each in made]


def test_folders_that_name_the_split_take_turns() -> None:
    paths = [f"d={split}/{number}" for split in "abc" for number in range(4 if split == "a" else 2)]
    by_partition: dict[str, Any] = {"paths": {}, "closed_before": None}
    assert files_of(paths, 3, ["d"], by_partition) == [
        ["d=a/0", "d=b/0", "d=c/0"],
        ["d=a/1", "d=b/1", "d=c/1"],
        ["d=a/2", "d=a/3"],
    ]
    # one path alone tells no folders apart, and other folders name no split
    assert files_of(paths, 4, ["d"], {"path": None})[0] == ["d=a/0", "d=a/1", "d=a/2", "d=a/3"]
    assert files_of(paths, 4, ["other"], by_partition)[0] == ["d=a/0", "d=a/1", "d=a/2", "d=a/3"]


def test_the_files_of_epochs_move_the_watermark_of_each_folder() -> None:
    files = [SourceFile(path, 1, "v", 0) for path in ("d=a/1", "d=a/2", "d=b/1")]
    first, second = cut_files(
        Checkpoint(interval_files=2), {"paths": {"d=b": "0"}, "closed_before": None}, files, ["d"]
    )
    assert isinstance(first, Files)
    assert isinstance(second, Files)
    assert first.position == {"path": {"paths": {"d=a": "1", "d=b": "1"}, "closed_before": None}}
    assert second.position == {"path": {"paths": {"d=a": "2", "d=b": "1"}, "closed_before": None}}
    assert second.was_read(second.position)
    assert not second.was_read(first.position)


def test_an_epoch_ends_before_a_file_that_is_bad() -> None:
    files = [SourceFile(path, 1, "v", 0) for path in ("1", "2", "3")]
    (made,) = cut_files(Checkpoint(), {"path": None}, files, [])
    before = made.up_to("3")
    assert before is not None
    assert (before.keys, before.position) == (["1", "2"], {"path": {"path": "2"}})
    assert made.up_to("1") is None


def test_a_run_that_leaves_epochs_for_the_next_one_makes_no_split_idle() -> None:
    found = planned(
        [VersionChunk(0, 1, 1), VersionChunk(1, 1, 1), VersionChunk(2, 1, 1)],
        checkpoint={"interval_files": 1},
        max_slices=2,
    )
    assert [each.counts for each in found.slices] == [False, False]
    assert [skip.subject for skip in found.skips] == ["1 epoch"]


def test_awaited_and_idle_splits_are_skips() -> None:
    state = StreamState({"a": Split(10, 0), "b": Split(10, 5), "c": Split(None, 1)}, 10)
    found = planned([], state, splits=["a", "c", "d"])
    assert [(skip.subject, skip.why.partition(":")[0]) for skip in found.skips] == [
        ("split c", "awaited"),
        ("split d", "awaited"),
        ("split b", "idle"),
    ]


@given(
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=20),
    st.integers(1, 6),
    st.integers(1, 9),
)
def test_epochs_cover_all_versions_with_files_once_and_in_order(
    sizes: list[tuple[int, int]], most_files: int, most_bytes: int
) -> None:
    chunks = [VersionChunk(version, files, size) for version, (files, size) in enumerate(sizes)]
    limits = {"interval_files": most_files, "interval_bytes": most_bytes}
    slices = planned(chunks, checkpoint=limits).slices
    read = [version for each in slices for version in range(versions(each)[0], versions(each)[1] + 1)]
    assert read == sorted(set(read))
    assert {chunk.version for chunk in chunks if chunk.files} <= set(read)
    assert sum(each.counts for each in slices) == bool(slices)


def test_while_rows_wait_the_slowest_split_that_is_awake_is_a_skip() -> None:
    buffer = (Segment("6", 4, 30, 50),)
    splits = {"a": Split(30), "b": Split(40), "c": Split(10, idle=9)}
    (idle, slowest) = planned([], StreamState(splits, 30, buffer)).skips
    assert (idle.subject, slowest.subject) == ("split c", "split a")
    assert slowest.why == "the slowest: rows from 30 on wait for it"
    # nothing waits
    assert [skip.subject for skip in planned([], StreamState(splits, 30)).skips] == ["split c"]
    # a flush has raised the global watermark above the split, and it does not rise until the split passes it
    (_, behind) = planned([], StreamState(splits, 35, buffer, drained=35)).skips
    assert (behind.subject, behind.why) == ("split a", "the slowest: rows from 35 on wait for it")
