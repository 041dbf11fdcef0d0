from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from pydantic import ByteSize

from partitions.errors import ConfigurationError
from partitions.path.adopted import adopted_watermark, upper_bound
from partitions.path.cold_start import earliest_cold_start
from partitions.path.definition import Checkpoint, PartitionFilter, PathWatermark
from partitions.path.listing_positions import AbovePartitions, AbovePath, FromBeginning
from partitions.path.order import FileKey
from partitions.path.plan import PendingFiles, plan
from partitions.path.position_of_state import listing_start
from partitions.path.slices import PathSlice
from partitions.path.source import ListedFiles, SourceFile, in_pair_order
from partitions.path.state import PathState
from partitions.path.time_template import TimeTemplate
from partitions.plan import Plan
from partitions.request import DUE, Due, Forced, LateOnly, Request, WorkUnitSelection
from partitions.sentinels import Watermark
from tests.support.trees import paths

NOW = datetime(2026, 1, 28, 12, tzinfo=UTC)
_MS = int(NOW.timestamp() * 1000)
_DAYS = [f"d=2026-01-{day:02}" for day in (1, 7, 8, 26, 27, 28)]

_checkpoints = st.builds(
    Checkpoint, interval_files=st.integers(1, 5), interval_bytes=st.integers(1, 40).map(ByteSize)
)
_ages = st.integers(0, 5)


def _file(path: str, size: int = 1, age: int = 3600) -> SourceFile:
    return SourceFile(path, size, "v", _MS - age * 1000)


files = st.lists(
    st.builds(_file, paths, st.integers(0, 30), _ages), unique_by=lambda file: file.path, max_size=12
).map(in_pair_order)
dated = st.lists(
    st.builds(
        lambda day, name, size, age: _file(f"{day}/{name}", size, age),
        st.sampled_from(_DAYS),
        st.sampled_from("abc"),
        st.integers(0, 30),
        _ages,
    ),
    unique_by=lambda file: file.path,
    max_size=12,
).map(in_pair_order)
definitions = st.builds(
    PathWatermark,
    type=st.just("path"),
    scope=st.sampled_from(["global", "partition"]),
    checkpoint=_checkpoints,
    settle=st.integers(0, 4).map(lambda seconds: timedelta(seconds=seconds)),
)
closing = st.builds(
    PathWatermark,
    type=st.just("path"),
    scope=st.just("partition"),
    checkpoint=_checkpoints,
    time_template=st.just("d=%Y-%m-%d"),
    close_after=st.integers(0, 30).map(lambda days: timedelta(days=days)),
)


def _plan(
    definition: PathWatermark, found: tuple[SourceFile, ...], state: PathState | None = None
) -> Plan[PathSlice]:
    return plan(definition, state or PathState(), ListedFiles(found), NOW, dataflow="flow", state_number=0)


def _planned(made: Plan[PathSlice]) -> list[SourceFile]:
    return [file for piece in made.slices for file in piece.files]


@given(definitions, files)
def test_slices_hold_due_files_in_order(definition: PathWatermark, found: tuple[SourceFile, ...]) -> None:
    made = _plan(definition, found)
    skipped = {skip.subject for skip in made.skips}
    assert _planned(made) == [file for file in found if file.path not in skipped]
    assert skipped <= {file.path for file in found}


@given(definitions, files)
def test_files_and_bytes_are_hard_limits(definition: PathWatermark, found: tuple[SourceFile, ...]) -> None:
    limits = definition.checkpoint
    for piece in _plan(definition, found).slices:
        assert 1 <= len(piece.files) <= limits.interval_files
        assert (piece.size.bytes or 0) <= limits.interval_bytes or len(piece.files) == 1


@given(definitions, files)
def test_slices_are_as_large_as_the_limits_allow(
    definition: PathWatermark, found: tuple[SourceFile, ...]
) -> None:
    limits = definition.checkpoint
    for piece, following in pairwise(_plan(definition, found).slices):
        full = len(piece.files) == limits.interval_files
        assert full or (piece.size.bytes or 0) + following.files[0].size > limits.interval_bytes


@given(definitions, files)
def test_a_slice_starts_where_one_ends(definition: PathWatermark, found: tuple[SourceFile, ...]) -> None:
    assert all(
        piece.after == following.before for piece, following in pairwise(_plan(definition, found).slices)
    )


@given(definitions | closing, files | dated)
def test_no_slice_is_above_its_state(definition: PathWatermark, found: tuple[SourceFile, ...]) -> None:
    for piece in _plan(definition, found).slices:
        after = listing_start(definition, PathState.of(piece.after), NOW)
        assert not any(after.is_above(file.path) for file in piece.files)


@given(definitions, files)
def test_later_plans_are_above_the_state(definition: PathWatermark, found: tuple[SourceFile, ...]) -> None:
    made = _plan(definition, found)
    settling = [skip.subject for skip in made.skips]
    for index, piece in enumerate(made.slices):
        after = listing_start(definition, PathState.of(piece.after), NOW)
        rest = [file.path for later in made.slices[index + 1 :] for file in later.files]
        assert all(map(after.is_above, rest + settling))


@given(definitions, files)
def test_no_young_file_is_planned(definition: PathWatermark, found: tuple[SourceFile, ...]) -> None:
    limit = _MS - definition.settle.total_seconds() * 1000
    assert all(file.modified <= limit or not definition.settle for file in _planned(_plan(definition, found)))


@given(closing, dated)
def test_closing_never_closes_the_newest(definition: PathWatermark, found: tuple[SourceFile, ...]) -> None:
    made = _plan(definition, found)
    assume(made.slices)
    template, kept = TimeTemplate("d=%Y-%m-%d"), made.slices[-1].after
    partitions = {FileKey.of(file.path).partition for file in found}
    assert max(partitions) in kept["paths"]
    for partition in partitions - kept["paths"].keys():
        start = template.time(partition)
        assert start is not None
        assert definition.close_after is not None
        assert template.end(start) + definition.close_after <= NOW


@given(closing, dated, dated)
def test_the_closed_bound_only_rises(
    definition: PathWatermark, first: tuple[SourceFile, ...], second: tuple[SourceFile, ...]
) -> None:
    bound = None
    watermark: Watermark | None = None
    for found in (first, second):
        state = PathState.of(watermark)
        above = listing_start(definition, state, NOW).is_above
        for piece in _plan(definition, tuple(file for file in found if above(file.path)), state).slices:
            watermark = piece.after
            assert bound is None or watermark["closed_before"] >= bound
            bound = watermark["closed_before"]


@given(definitions | closing, files | dated)
def test_two_halves_do_what_the_whole_does(definition: PathWatermark, found: tuple[SourceFile, ...]) -> None:
    for piece in _plan(definition, found).slices:
        halves = piece.halve()
        assert [file for half in halves for file in half.files] == list(piece.files)
        assert (halves[0].before, halves[-1].after) == (piece.before, piece.after)
        assert len(halves) == min(len(piece.files), 2)


def test_a_file_that_settles_keeps_its_partition_open() -> None:
    definition = PathWatermark(
        type="path",
        scope="partition",
        time_template="d=%Y-%m-%d",
        close_after=timedelta(0),
        settle=timedelta(seconds=10),
    )
    found = (_file("d=2026-01-07/a"), _file("d=2026-01-08/a", age=1), _file("d=2026-01-27/a"))
    (piece,) = _plan(definition, found).slices
    assert piece.after["closed_before"] is None


def test_a_file_behind_one_that_settles_waits_too() -> None:
    definition = PathWatermark(type="path", settle=timedelta(seconds=10))
    made = _plan(definition, (_file("a"), _file("b", age=1), _file("c")))
    assert [file.path for file in _planned(made)] == ["a"]
    assert [skip.subject for skip in made.skips] == ["b", "c"]


def test_a_file_of_the_future_is_named_with_how_far_and_what_to_do() -> None:
    definition = PathWatermark(type="path", settle=timedelta(seconds=10))
    made = _plan(definition, (_file("1"), _file("2", age=-3 * 3600), _file("3"), _file("4", age=-86_400)))
    assert [skip.subject for skip in made.skips] == ["2", "3", "4"]
    (warning,) = made.warnings
    assert warning == (
        "2: its modification time lies 3 h in the future (1 more file is like it), so `settle` holds the file back until then, and all new files"
        " after it. Set its time (`touch`) or copy it again, and correct the clock of the machine that writes it"
    )


def test_of_files_of_the_future_the_one_that_holds_back_others_is_named_first() -> None:
    definition = PathWatermark(type="path", scope="partition", settle=timedelta(seconds=10))
    late, released = _file("p/1", age=-7200), _file("p/2", age=-7200)
    state = PathState().after_files(["p/3"])
    pending = PendingFiles(late=(late,), released=(released,))
    made = plan(
        definition,
        state,
        ListedFiles((_file("p/4", age=-7200),)),
        NOW,
        dataflow="f",
        state_number=1,
        pending=pending,
    )
    (warning,) = made.warnings
    assert warning.startswith("p/4: ")
    assert (
        "2 h in the future (2 more files are like it), so `settle` holds the file back until then, and all new files after it in its partition. "
        in warning
    )
    made = plan(definition, state, ListedFiles(()), NOW, dataflow="f", state_number=1, pending=pending)
    (warning,) = made.warnings
    assert warning.startswith("p/1: ")
    assert "(1 more file is like it), so `settle` holds the file back until then. " in warning


@pytest.mark.parametrize(
    ("settle", "tracking", "ahead", "warned"),
    [
        (10, "watermark", 61, True),
        (10, "watermark", 60, False),  # clocks differ, and files come while a listing goes on
        (0, "watermark", 7200, False),  # nothing waits
        (10, "set", 61, True),
    ],
)
def test_only_an_unexplained_time_is_future(settle: int, tracking: str, ahead: int, warned: bool) -> None:
    definition = PathWatermark(type="path", settle=timedelta(seconds=settle), tracking=tracking)
    made = _plan(definition, (_file("1", age=-ahead), _file("2")))
    assert [warning.partition(": ")[0] for warning in made.warnings] == ["1"] * warned
    assert all("after it" not in warning for warning in made.warnings) or tracking == "watermark"


def test_scope_partition_waits_in_the_settling_partition_only() -> None:
    definition = PathWatermark(type="path", scope="partition", settle=timedelta(seconds=10))
    made = _plan(definition, (_file("p/a", age=1), _file("p/b"), _file("q/a")))
    assert [file.path for file in _planned(made)] == ["q/a"]


def test_a_filter_narrows_the_cold_start_only() -> None:
    definition = PathWatermark(
        type="path", partition_filter=PartitionFilter(prefix_template="d=%Y-%m-%d", lookback=1)
    )
    assert listing_start(definition, PathState(), NOW) == FromBeginning(("d=2026-01-27", "d=2026-01-28"))
    assert isinstance(listing_start(definition, PathState().after_files(["d=2020-01-01/a"]), NOW), AbovePath)


def test_a_cold_start_with_a_filter_closes_what_is_older_than_its_oldest_prefix() -> None:
    definition = PathWatermark(
        type="path",
        scope="partition",
        partition_filter=PartitionFilter(prefix_template="d=%Y-%m-%d", lookback=1),
    )
    (piece,) = _plan(definition, (_file("d=2026-01-28/a"),)).slices
    assert piece.after["closed_before"] == datetime(2026, 1, 27, tzinfo=UTC)
    following = listing_start(definition, PathState.of(piece.after), NOW)
    assert isinstance(following, AbovePartitions)
    assert not following.is_above("d=2026-01-26/a")


def test_a_filter_that_reaches_the_leaves_implies_layout_leaf() -> None:
    definition = PathWatermark(
        type="path", partition_filter=PartitionFilter(prefix_template="d=%Y-%m-%d", lookback=1)
    )
    leaf, deeper = (
        listing_start(definition, PathState().after_files([path]), NOW)
        for path in ("d=2026-01-27/a", "d=2026-01-27/h=1/a")
    )
    assert isinstance(leaf, AbovePath)
    assert leaf.leaf
    assert isinstance(deeper, AbovePath)
    assert not deeper.leaf


@pytest.mark.parametrize(("scope", "warned"), [("global", True), ("partition", False)])
def test_root_files_beside_a_partition_are_warned_of_globally(scope: str, warned: bool) -> None:
    definition = PathWatermark.model_validate({"type": "path", "scope": scope})
    state = PathState().after_files(["d=1/001"])
    made = plan(definition, state, ListedFiles((), root_files=True), NOW, dataflow="flow", state_number=1)
    assert ("root_level_files_ignored" in made.warnings) is warned


def test_root_files_of_scope_partition_are_planned_and_reported() -> None:
    definition = PathWatermark(
        type="path", scope="partition", time_template="d=%Y-%m-%d", close_after=timedelta(0)
    )
    found = (_file("001"), _file("d=2026-01-07/001"), _file("d=2026-01-27/001"))
    made = plan(
        definition, PathState(), ListedFiles(found, root_files=True), NOW, dataflow="flow", state_number=0
    )
    assert [file.path for file in _planned(made)] == ["001", "d=2026-01-07/001", "d=2026-01-27/001"]
    assert made.skips == ()
    assert made.warnings == ("1 partition does not fit the time template and never closes: the root",)
    assert made.slices[-1].after == {
        "paths": {"": "001", "d=2026-01-27": "001"},
        "closed_before": datetime(2026, 1, 27, tzinfo=UTC),
    }


def test_scope_partition_a_filtered_cold_start_leaves_the_root_to_the_next_listing() -> None:
    definition = PathWatermark(
        type="path",
        scope="partition",
        partition_filter=PartitionFilter(prefix_template="d=%Y-%m-%d", lookback=1),
    )
    assert not listing_start(definition, PathState(), NOW).is_above("001")
    (piece,) = _plan(definition, (_file("d=2026-01-28/a"),)).slices
    assert listing_start(definition, PathState.of(piece.after), NOW).is_above("001")


@pytest.mark.parametrize(
    "fields",
    [
        {"close_after": "P1D"},
        {"scope": "partition", "close_after": "P1D"},
        {"time_template": "d=%Y"},
        {"scope": "partition", "time_template": "h=%H"},
        {"scope": "partition", "partition_filter": {"prefix_template": "h=%H", "lookback": 1}},
        {"partition_filter": {"prefix_template": "*/d=%Y", "lookback": 1}},
        {"settle": "-PT1S"},
        {"checkpoint": {"interval_files": 0}},
        {"unknown": 1},
    ],
)
def test_a_definition_that_contradicts_itself_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        PathWatermark.model_validate({"type": "path"} | fields)


def test_a_breach_of_layout_leaf_is_said_at_a_cold_start() -> None:
    definition = PathWatermark(type="path", layout="leaf")
    made = _plan(definition, (_file("d=1/001"), _file("d=1/e=1/001")))
    assert any("d=1 holds files and folders" in warning for warning in made.warnings)


@given(definitions | closing, files | dated, files | dated)
def test_a_covering_watermark_is_below_nothing_that_was_loaded_and_never_falls(
    definition: PathWatermark, found: tuple[SourceFile, ...], more: tuple[SourceFile, ...]
) -> None:
    states = [PathState.of(piece.after) for piece in _plan(definition, found).slices] or [PathState()]
    known = [file.path for file in more]
    made = PathState.of(upper_bound(definition, states[-1], known))
    above = listing_start(definition, made, NOW).is_above if made.status == "active" else lambda path: False
    assert not any(map(above, known))
    assert made.covers(states[-1], definition.template)


@given(definitions | closing, files | dated)
def test_loaded_files_tell_their_runs_mark(definition: PathWatermark, found: tuple[SourceFile, ...]) -> None:
    never = definition.model_copy(update={"close_after": None})
    made = _plan(never, found)
    assume(made.slices)
    assert adopted_watermark(never, [file.path for file in _planned(made)]) == made.slices[-1].after


def test_a_filtered_cold_start_leaves_what_lies_before() -> None:
    definition = PathWatermark(
        type="path",
        scope="partition",
        partition_filter=PartitionFilter(prefix_template="d=%Y-%m-%d", lookback=1),
    )
    assert adopted_watermark(
        definition, ["001", "d=2026-01-27/001", "d=2026-01-28/001", "d=2026-01-28/002"]
    ) == {
        "paths": {"": "001", "d=2026-01-27": "001", "d=2026-01-28": "002"},
        "closed_before": datetime(2026, 1, 27, tzinfo=UTC),
    }


@pytest.mark.parametrize(
    ("scope", "template", "paths", "began"),
    [
        ("global", "d=%Y-%m-%d", ["001", "d=2026-01-28/b", "d=2026-01-27/h=09/b"], {"path": "d=2026-01-27/"}),
        ("global", "d=%m-%d", ["d=01-28/b", "d=01-27/b"], {"path": "d=01-27/"}),
        ("partition", "d=%Y-%m-%d", ["001", "d=2026-01-27/b"], {"paths": {}, "closed_before": datetime(2026, 1, 27, tzinfo=UTC)}),
        ("global", "d=%Y-%m-%d", ["001", "region=eu/001"], None),
        ("partition", "d=%Y-%m-%d", ["001"], None),
    ],
)  # fmt: skip
def test_loaded_files_tell_the_prefix_that_a_filtered_cold_start_began_with(
    scope: str, template: str, paths: list[str], began: object
) -> None:
    chosen = PartitionFilter(prefix_template=template, lookback=1)
    definition = PathWatermark(type="path", scope=scope, partition_filter=chosen)
    assert earliest_cold_start(definition, paths) == began


def test_loaded_files_tell_no_cold_start_where_no_filter_has_narrowed_it() -> None:
    assert earliest_cold_start(PathWatermark(type="path"), ["d=1/a"]) is None


def test_only_late_files_are_planned_when_only_they_are_asked_for() -> None:
    late, released, new = _file("p/1"), _file("p/2"), _file("p/4")
    definition, state = PathWatermark(type="path"), PathState().after_files(["p/3"])
    pending = PendingFiles(late=(late,), released=(released,))

    def planned(request: Request) -> list[list[SourceFile]]:
        found = ListedFiles((new,))
        made = plan(
            definition, state, found, NOW, dataflow="f", state_number=1, pending=pending, request=request
        )
        return [list(slice_.files) for slice_ in made.slices]

    assert planned(DUE) == [[late], [released], [new]]
    assert planned(LateOnly()) == [[late]]


@pytest.mark.parametrize("request_", [Forced(), Due(WorkUnitSelection())])
def test_files_have_no_windows_to_ask_for(request_: Request) -> None:
    with pytest.raises(
        ConfigurationError, match="dataflow f: expected a watermark of type window, found path"
    ):
        plan(
            PathWatermark(type="path"),
            PathState(),
            ListedFiles(()),
            NOW,
            dataflow="f",
            state_number=0,
            request=request_,
        )
