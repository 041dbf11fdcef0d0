"""Parts of a slice: what is loaded, what is passed over and where the watermark stands after each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.path.definition import PathWatermark
from partitions.path.position_of_state import listing_start
from partitions.path.slices import PathSlice, cut_pending_slices, make_slice, watermark_of
from partitions.path.source import SourceFile, in_pair_order
from partitions.path.state import PathState
from tests.support.trees import paths
from tests.unit.partitions.path.test_plan import NOW

GLOBAL = PathWatermark(type="path")
PARTITION = PathWatermark(type="path", scope="partition")
CLOSING = PathWatermark(
    type="path", scope="partition", time_template="d=%Y-%m-%d", close_after=timedelta(days=1)
)


def file(path: str) -> SourceFile:
    return SourceFile(path, 1, "v", 0)


def slice_over(*names: str, definition: PathWatermark = GLOBAL, **changes: Any) -> PathSlice:
    """The first slice of a source, over these files."""
    files = in_pair_order([file(name) for name in names])
    before = watermark_of(definition, PathState())
    made = make_slice(definition, before, files, NOW)
    return PathSlice(**{**made.__dict__, **changes})


@st.composite
def slices(draw: st.DrawFn) -> PathSlice:
    """A slice in either scope, which passes over some of its files."""
    definition = draw(st.sampled_from([GLOBAL, PARTITION]))
    piece = slice_over(
        *draw(st.lists(paths, min_size=1, max_size=8, unique=True)),
        definition=definition,
        replaces=draw(st.booleans()),
        since=draw(st.sampled_from([None, {"path": "a"}])),
    )
    for bad in draw(st.lists(st.sampled_from(piece.files), unique=True)):
        piece = piece.without(bad.path, "bad")
    return piece


def names(piece: PathSlice) -> list[str]:
    return [one.path for one in piece.files]


def aside(piece: PathSlice) -> list[str]:
    return [one.file.path for one in piece.quarantined]


class TestWithout:
    def test_the_file_is_passed_over_with_its_reason_and_the_state_after_it_stays(self) -> None:
        piece = slice_over("a", "b", "c")
        rest = piece.without("c", "torn")
        assert (names(rest), [(one.file.path, one.reason) for one in rest.quarantined]) == (
            ["a", "b"],
            [("c", "torn")],
        )
        assert (rest.after, rest.upper) == ({"path": "c"}, {"path": "c"})

    @given(slices())
    def test_loaded_and_passed_files_are_all_and_none_is_above_the_state(self, piece: PathSlice) -> None:
        assert sorted([*names(piece), *aside(piece)]) == sorted(one.path for one in piece.all_files)
        assert list(piece.all_files) == list(in_pair_order(piece.all_files))
        after = listing_start(piece.definition, PathState.of(piece.after), NOW)
        assert not any(after.is_above(one.path) for one in piece.all_files)

    def test_bytes_are_of_what_is_loaded(self) -> None:
        assert slice_over("a", "b").without("a", "torn").size.bytes == 1

    def test_all_of_it_may_be_passed_over(self) -> None:
        piece = slice_over("a").without("a", "torn")
        assert (names(piece), aside(piece), piece.after) == ([], ["a"], {"path": "a"})


class TestTake:
    @given(slices(), st.integers(1, 8))
    def test_the_watermark_passes_only_files_that_are_taken(self, piece: PathSlice, count: int) -> None:
        if not piece.files:
            return
        taken = piece.take(count)
        assert names(taken) == names(piece)[:count]
        after = listing_start(piece.definition, PathState.of(taken.after), NOW)
        dealt_with = {*names(taken), *aside(taken)}
        assert all(after.is_above(one.path) != (one.path in dealt_with) for one in piece.all_files)
        assert (taken.replaces, taken.since, taken.before) == (piece.replaces, piece.since, piece.before)

    def test_what_is_set_aside_before_the_last_file_goes_with_it(self) -> None:
        piece = slice_over("a", "b", "c", "d").without("a", "torn").without("c", "torn")
        taken = piece.take(1)
        assert (names(taken), aside(taken), taken.after) == (["b"], ["a"], {"path": "b"})

    def test_it_closes_no_partition(self) -> None:
        piece = slice_over("d=2026-01-01/a", "d=2026-01-27/a", definition=CLOSING)
        assert piece.after["closed_before"] is not None
        assert piece.take(1).after == {"paths": {"d=2026-01-01": "a"}, "closed_before": None}


class TestHalve:
    def test_a_slice_that_passes_over_a_file_stays_whole(self) -> None:
        piece = slice_over("a", "b", "c").without("b", "torn")
        assert piece.halve() == (piece,)

    def test_both_halves_keep_why_their_rows_make_room_and_where_the_source_began(self) -> None:
        halves = slice_over("a", "b", "c", replaces=True, since={"path": "0"}).halve()
        assert [names(half) for half in halves] == [["a"], ["b", "c"]]
        assert [(half.replaces, half.since) for half in halves] == [(True, {"path": "0"})] * 2

    @pytest.mark.parametrize("why", ["late", "release"])
    def test_halves_of_files_beside_the_watermark_do_not_move_it(self, why: Any) -> None:
        (piece,) = cut_pending_slices(GLOBAL, {"path": "z"}, [file("a"), file("b")], why)
        halves = piece.halve()
        assert [(names(half), half.before, half.after, half.why, half.lower) for half in halves] == [
            (["a"], {"path": "z"}, {"path": "z"}, why, None),
            (["b"], {"path": "z"}, {"path": "z"}, why, None),
        ]


@pytest.mark.parametrize("why", ["late", "release"])
def test_only_files_beside_the_watermark_say_why_they_are_loaded(why: Any) -> None:
    (piece,) = cut_pending_slices(GLOBAL, {"path": "z"}, [file("a")], why)
    assert piece.describe() == [{"files": ["a"], "reason": why}]
    assert slice_over("a").describe() == [{"files": ["a"]}]
