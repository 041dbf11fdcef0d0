"""Which commits and files go into one slice, what is passed over, and what stops a run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.errors import NeedsDecision
from partitions.log_position import LogPosition
from partitions.offset.commits import Commit, LogTail, SnapshotFiles
from partitions.offset.definition import CommitCheckpoint, OffsetWatermark
from partitions.offset.plan import plan
from partitions.offset.slices import CommitRange, OffsetSlice, SnapshotRange, cut_commits
from partitions.offset.state import OffsetState, SnapshotProgress
from partitions.plan import Plan
from partitions.sources.table import OnChange

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TABLE = "t-1"


def at(version: int) -> LogPosition:
    return LogPosition(TABLE, version, f"id{version}")


def commit(version: int, files: int = 1, size: int = 1, changes: str | None = None) -> Commit:
    return Commit(at(version), files, size, changes=changes)


def planned(
    tail: LogTail, state: OffsetState | None = None, on_change: OnChange = "stop", **keys: Any
) -> Plan[OffsetSlice]:
    definition = OffsetWatermark.model_validate({"type": "offset"} | keys)
    return plan(
        definition,
        on_change,
        state or OffsetState(at(0)),
        tail,
        NOW,
        dataflow="flow",
        table="bronze/t",
        state_number=7,
    )


def read_versions(slices: tuple[OffsetSlice, ...]) -> list[list[int]]:
    return [
        [part.position.version for part in slice_.input.commits]
        for slice_ in slices
        if isinstance(slice_.input, CommitRange)
    ]


def read_files(slices: tuple[OffsetSlice, ...]) -> list[tuple[int, int]]:
    return [(part.start, part.end) for slice_ in slices if isinstance(part := slice_.input, SnapshotRange)]


def test_a_slice_ends_before_the_commit_that_would_exceed_a_limit() -> None:
    commits = (commit(1), commit(2), commit(3, files=5), commit(4, size=90), commit(5, size=20))
    tail = LogTail(at(5), commits=commits)
    assert read_versions(planned(tail, checkpoint={"commits": 2}).slices) == [[1, 2], [3, 4], [5]]
    assert read_versions(planned(tail, checkpoint={"files": 3}).slices) == [[1, 2], [3], [4, 5]]
    assert read_versions(planned(tail, checkpoint={"bytes": 100}).slices) == [[1, 2, 3, 4], [5]]


def test_a_commit_larger_than_a_slice_is_read_alone_and_whole() -> None:
    tail = LogTail(at(2), commits=(commit(1, files=9), commit(2)))
    assert read_versions(planned(tail, checkpoint={"files": 2}).slices) == [[1], [2]]


def test_commits_without_rows_join_the_slice_before_them_and_alone_are_nothing_new() -> None:
    tail = LogTail(at(3), commits=(commit(1), commit(2, files=0), commit(3, files=0)))
    assert read_versions(planned(tail, checkpoint={"commits": 1}).slices) == [[1, 2, 3]]
    nothing = planned(LogTail(at(1), commits=(commit(1, files=0),)))
    assert (nothing.slices, nothing.why) == ((), "table bronze/t has no new commit")


def test_many_commits_without_rows_move_the_position() -> None:
    commits = tuple(commit(version, files=0) for version in range(1, 4))
    slices = planned(LogTail(at(3), commits=commits), checkpoint={"commits": 3}).slices
    assert [(slice_.reads_nothing, OffsetState.of(slice_.upper).position) for slice_ in slices] == [
        (True, at(3))
    ]


def test_a_first_read_is_cut_between_files_and_commits_follow_it() -> None:
    tail = LogTail(at(6), None, (commit(6),), SnapshotFiles(at(5), (3, 3, 3, 9, 1)))
    slices = planned(tail, OffsetState(), checkpoint={"bytes": 6}).slices
    assert read_files(slices) == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert read_versions(slices) == [[6]]
    states = [OffsetState.of(slice_.upper) for slice_ in slices]
    assert [state.snapshot for state in states] == [
        SnapshotProgress(5, 2, 5),
        SnapshotProgress(5, 3, 5),
        SnapshotProgress(5, 4, 5),
        None,
        None,
    ]
    assert [state.position for state in states] == [at(5)] * 4 + [at(6)]


def test_a_first_read_goes_on_after_its_last_file() -> None:
    state = OffsetState(at(5), SnapshotProgress(5, 3, 5))
    slices = planned(LogTail(at(5), snapshot=SnapshotFiles(at(5), (1, 1, 1, 1, 1))), state).slices
    assert read_files(slices) == [(3, 5)]
    assert OffsetState.of(slices[-1].upper) == OffsetState(at(5))


def test_a_start_behind_all_commits_is_recorded_once() -> None:
    slices = planned(LogTail(at(9), at(9)), OffsetState()).slices
    assert [(slice_.reads_nothing, slice_.upper) for slice_ in slices] == [
        (True, OffsetState(at(9)).watermark())
    ]
    assert planned(LogTail(at(9)), OffsetState(at(9))).slices == ()


def test_a_commit_that_changes_rows_stops_a_load_that_appends_before_anything_is_read() -> None:
    tail = LogTail(at(2), commits=(commit(1), commit(2, changes="version 2 (UPDATE) updates 3 rows")))
    with pytest.raises(NeedsDecision) as stopped:
        planned(tail)
    assert stopped.value.code == "source_changed"
    assert "version 2 (UPDATE) updates 3 rows. Nothing behind the position was read" in stopped.value.message
    assert stopped.value.choices == (
        "strandline state accept flow --reason TEXT",
        "strandline state reset flow --replace --reason TEXT",
    )


def test_accepted_changes_are_passed_over_and_named_and_later_ones_stop() -> None:
    commits = (commit(1), commit(2, changes="an update"), commit(3))
    state = OffsetState(at(0), accepted=at(2))
    (slice_,) = planned(LogTail(at(3), commits=commits), state).slices
    assert [(part.position.version, part.files) for part in slice_.input.commits] == [(1, 1), (2, 0), (3, 1)]  # type: ignore[union-attr]
    assert slice_.passes_over == ("an update",)
    assert OffsetState.of(slice_.upper) == OffsetState(at(3))
    with pytest.raises(NeedsDecision, match="a delete"):
        planned(LogTail(at(4), commits=(*commits, commit(4, changes="a delete"))), state)


def test_skipped_changes_move_the_position_without_rows() -> None:
    tail = LogTail(at(1), commits=(commit(1, changes="an update"),))
    plan_ = planned(tail, on_change="skip")
    assert [(slice_.reads_nothing, slice_.passes_over) for slice_ in plan_.slices] == [(True, ("an update",))]
    assert plan_.warnings == ("an update; it is passed over (source.on_change: skip)",)


def test_a_run_makes_at_most_max_slices_and_says_how_many_wait() -> None:
    tail = LogTail(at(3), commits=(commit(1), commit(2), commit(3)))
    plan_ = planned(tail, checkpoint={"commits": 1}, max_slices=2)
    assert read_versions(plan_.slices) == [[1], [2]]
    assert [(skip.subject, skip.why) for skip in plan_.skips] == [
        ("1 slice", "a run makes at most 2 (max_slices)")
    ]


COMMITS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 50), st.sampled_from([None, None, "a change"])), max_size=30
)


@given(
    COMMITS,
    st.integers(1, 5),
    st.integers(1, 6),
    st.integers(1, 80),
    st.lists(st.integers(0, 60), max_size=12),
)
def test_each_commit_and_file_is_in_exactly_one_slice_in_order(
    sizes: list[tuple[int, int, str | None]], commits: int, files: int, size: int, snapshot: list[int]
) -> None:
    logged = tuple(
        commit(version, count, length if count else 0, changes)
        for version, (count, length, changes) in enumerate(sizes, 6)
    )
    tail = LogTail(
        at(5 + len(logged)), None, logged, SnapshotFiles(at(5), tuple(snapshot)) if snapshot else None
    )
    state = OffsetState() if snapshot else OffsetState(at(5))
    limits = {"commits": commits, "files": files, "bytes": size}
    slices = planned(tail, state, "skip", checkpoint=limits, max_slices=1000).slices
    ranges = read_files(slices)
    assert [index for start, end in ranges for index in range(start, end)] == list(range(len(snapshot)))
    versions = [version for part in read_versions(slices) for version in part]
    assert versions == list(range(6, 6 + len(versions)))
    unread = [part for part in logged if part.position.version not in versions]
    assert not any(part.files or part.changes for part in unread)
    assert len(unread) < commits
    before = state
    for slice_ in slices:
        assert OffsetState.of(slice_.before) == before
        after = OffsetState.of(slice_.upper)
        assert after.covers(before)
        assert after != before
        before = after
        if isinstance(slice_.input, CommitRange):
            with_rows = [part for part in slice_.input.commits if part.files]
            fits = len(with_rows) <= commits and slice_.input.files <= files and slice_.input.bytes <= size
            assert fits or len(with_rows) == 1


@given(COMMITS)
def test_halves_read_the_same_commits(sizes: list[tuple[int, int, str | None]]) -> None:
    logged = tuple(
        commit(version, count, length, changes) for version, (count, length, changes) in enumerate(sizes, 1)
    )
    for slice_ in planned(LogTail(at(len(logged)), commits=logged), on_change="skip").slices:
        halves = slice_.halve()
        assert [part for half in halves for part in half.input.commits] == list(slice_.input.commits)  # type: ignore[union-attr]
        assert halves[-1].upper == slice_.upper
        assert halves[0].before == slice_.before


def test_the_offered_way_out_fits_where_a_dataflow_begins() -> None:
    tail = LogTail(at(1), commits=(commit(1, changes="an update"),))
    definition = OffsetWatermark(type="offset")

    def stopped(state: OffsetState, *, begins_with_snapshot: bool) -> NeedsDecision:
        with pytest.raises(NeedsDecision) as error:
            plan(
                definition,
                "stop",
                state,
                tail,
                NOW,
                dataflow="flow",
                table="bronze/t",
                state_number=0,
                begins_with_snapshot=begins_with_snapshot,
            )
        return error.value

    first = stopped(OffsetState(), begins_with_snapshot=False)
    assert (first.choices, "source.from: snapshot" in first.message) == ((), True)
    later = stopped(OffsetState(at(0)), begins_with_snapshot=False)
    assert later.choices == ("strandline state accept flow --reason TEXT",)


def test_numbers_rise_within_a_slice_even_if_those_of_the_log_do_not() -> None:
    commits = tuple(
        Commit(LogPosition("t", version, id_, is_snapshot=True), 1, 1, changes="rows")
        for version, id_ in ((3, "1"), (3, "2"), (3, "3"), (4, "4"))
    )
    ranges = list(cut_commits(CommitCheckpoint(), None, commits))
    assert [[commit.position.id for commit in part.commits] for part in ranges] == [["1"], ["2"], ["3", "4"]]


@pytest.mark.parametrize("on_change", ["stop", "skip", "apply", "keep"])
def test_commits_that_were_accepted_as_unreadable_are_passed_over_and_those_between_are_read(
    on_change: OnChange,
) -> None:
    state = OffsetState(at(0), unreadable=(at(1), at(3)))
    tail = LogTail(at(4), commits=tuple(commit(v, changes="gone" if v == 3 else None) for v in (1, 2, 3, 4)))
    result = planned(tail, state, on_change)
    (slice_,) = result.slices
    assert isinstance(slice_.input, CommitRange)
    assert [part.files for part in slice_.input.commits] == [0, 1, 0, 1]
    assert [warning.partition(";")[0] for warning in result.warnings] == [
        "version 1, whose files are gone",
        "gone",
    ]
    assert OffsetState.of(slice_.upper) == OffsetState(at(4))


def test_a_first_read_that_may_not_be_cut_is_one_slice() -> None:
    tail = LogTail(at(1), snapshot=SnapshotFiles(at(1), (5, 5, 5)))
    definition = OffsetWatermark.model_validate({"type": "offset", "checkpoint": {"files": 1}})
    result = plan(
        definition,
        "stop",
        OffsetState(),
        tail,
        NOW,
        dataflow="flow",
        table="bronze/t",
        state_number=0,
        cuts_snapshot=False,
    )
    assert read_files(result.slices) == [(0, 3)]
