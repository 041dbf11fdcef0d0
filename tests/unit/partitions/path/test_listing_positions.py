"""Positions answer alike whatever way they are asked: ``is_above`` is the rule, the rest must not contradict it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.path.listing_positions import (
    AbovePartitions,
    AbovePath,
    AtOrBelow,
    FromBeginning,
    KeyRange,
    ListingStart,
)
from partitions.path.order import FileKey, folders_up, is_past, key_before
from partitions.path.time_template import TimeTemplate
from tests.support.trees import leaf_tree, partitions, paths, trees

_TEMPLATE = TimeTemplate("*/d=%Y-%m-%d")
_days = st.integers(1, 9).map(lambda day: f"d=2026-01-0{day}")
_dated = st.builds(
    lambda region, day, name: f"{region}/{day}/{name}",
    st.sampled_from(["eu", "us-1", "us"]),
    _days,
    st.sampled_from(["1.json", "2.json", "3.json"]),
)
_open_partitions = st.builds(
    AbovePartitions,
    st.dictionaries(
        st.builds(lambda region, day: f"{region}/{day}", st.sampled_from(["eu", "us-1"]), _days),
        st.sampled_from(["1.json", "2.json"]),
        max_size=4,
    ),
    st.just(_TEMPLATE),
    st.none() | st.integers(1, 9).map(lambda day: datetime(2026, 1, day, tzinfo=UTC)),
    st.booleans(),
)
_above_path = st.builds(AbovePath, paths.map(FileKey.of))
_above_partitions = st.dictionaries(
    partitions, paths.map(lambda path: FileKey.of(path).name), max_size=3
).map(AbovePartitions)
_sweeps = st.builds(AtOrBelow, _above_path | _above_partitions, st.just(FromBeginning()) | _above_path)
positions = (
    _above_path | st.lists(partitions, max_size=3).map(FromBeginning.within) | _above_partitions | _sweeps
)


@given(positions, paths)
def test_every_folder_of_a_file_that_is_above_may_hold_it(position: ListingStart, path: str) -> None:
    if position.is_above(path):
        assert all(position.may_hold(folder) for folder in ["", *folders_up(FileKey.of(path).partition)])


@given(_open_partitions, _dated)
def test_folders_of_open_partitions_may_hold_what_is_above(position: AbovePartitions, path: str) -> None:
    if position.is_above(path):
        assert all(position.may_hold(folder) for folder in ["", *folders_up(FileKey.of(path).partition)])


@given(positions, paths)
def test_a_file_that_is_above_lies_in_the_span_in_both_orders(position: ListingStart, path: str) -> None:
    def within(after: str, until: str | None) -> bool:
        return is_past(path, after) and (until is None or not is_past(path, until))

    if position.is_above(path) and not _hidden_from_component_order(position, path):
        assert within(*position.span())


@given(positions | _open_partitions, trees() | st.lists(_dated, unique=True))
def test_a_jump_leaves_out_nothing_that_is_above(position: ListingStart, tree: list[str]) -> None:
    for order in (str.encode, lambda path: path.split("/")):
        ordered = sorted(leaf_tree(tree), key=order)
        for index, key in enumerate(ordered):
            target = position.seek(key)
            skipped = [
                path for path in ordered[index + 1 :] if is_past(target, key) and order(path) <= order(target)
            ]
            beside = position.passed_folder(key, target)
            assert not any(
                position.is_above(path)
                for path in skipped
                if not _looked_for_by_itself(position, path, beside)
            )


@given(_above_path | _above_partitions, _above_path, paths)
def test_the_sweep_has_what_is_not_new_from_a_start(
    position: ListingStart, since: AbovePath, path: str
) -> None:
    assert AtOrBelow(position, FromBeginning()).is_above(path) is not position.is_above(path)
    expected = not position.is_above(path) and FileKey.of(path) > since.last
    assert AtOrBelow(position, since).is_above(path) is expected


def test_the_sweep_opens_no_folder_after_the_last_partition_nor_one_before_the_start() -> None:
    position = AtOrBelow(AbovePath(FileKey("d=5", "a")), AbovePath(FileKey("d=3", "")))
    folders = ["d=1", "d=3", "d=4", "d=5", "d=6"]
    assert [folder for folder in folders if position.may_hold(folder)] == ["d=3", "d=4", "d=5"]


def test_above_is_strict() -> None:
    position = AbovePath(FileKey("d=1", "b"))
    assert [path for path in ["d=1/a", "d=1/b", "d=1/c"] if position.is_above(path)] == ["d=1/c"]


def test_a_later_partition_is_above_whatever_its_names() -> None:
    assert AbovePath(FileKey("d=1", "z")).is_above("d=2/a")
    assert AbovePath(FileKey("d=1", "z")).is_above("d=1-b/a")
    assert AbovePath(FileKey("d=1", "z")).is_above("d=1/e=1/a")


def test_a_root_watermark_finds_partitions_and_a_partition_watermark_no_root_files() -> None:
    assert AbovePath(FileKey("", "z")).is_above("a/a")
    assert not AbovePath(FileKey("a", "a")).is_above("z")


def test_an_empty_name_leaves_every_file_of_the_partition_above() -> None:
    assert AbovePath(FileKey.of("d=1/")).is_above("d=1/a")
    assert not AbovePath(FileKey.of("d=1/")).is_above("d=0/a")


def test_an_empty_path_is_below_everything() -> None:
    assert AbovePath(FileKey.of("")).is_above("a")


def test_a_partition_without_an_entry_is_new_unless_it_is_closed() -> None:
    position = AbovePartitions({"eu/d=2026-01-05": "b"}, _TEMPLATE, datetime(2026, 1, 4, tzinfo=UTC))
    assert position.is_above("us/d=2026-01-04/a")
    assert not position.is_above("us/d=2026-01-03/a")
    assert not position.is_above("eu/d=2026-01-05/b")
    assert position.is_above("eu/other/a"), "what the template does not parse never closes"


def test_scope_partition_the_root_is_a_partition_like_any_other_and_never_closes() -> None:
    assert AbovePartitions({}).is_above("a")
    position = AbovePartitions(
        {"": "b", "d=2026-01-05": "b"}, TimeTemplate("d=%Y-%m-%d"), datetime(2026, 1, 5, tzinfo=UTC)
    )
    assert [path for path in ["a", "b", "c", "d=2026-01-04/z"] if position.is_above(path)] == ["c"]


def test_layout_leaf_does_not_jump_at_the_root_where_all_partitions_lie() -> None:
    assert AbovePartitions({"": "z"}, leaf=True).seek("a") == "a"


def test_a_jump_over_closed_partitions_names_the_folder_that_they_lie_in() -> None:
    closed = AbovePartitions({}, TimeTemplate("*/d=%Y-%m-%d"), datetime(2026, 1, 5, tzinfo=UTC))
    key = "eu/d=2026-01-01/a"
    assert closed.passed_folder(key, closed.seek(key)) == "eu"
    assert [
        closed.may_be_jumped(f"eu/{folder}") for folder in ("d=2026-01-03", "d=2026-01-03-again", "x")
    ] == [
        True,
        False,
        False,
    ]
    root = AbovePartitions({}, TimeTemplate("d=%Y-%m-%d"), datetime(2026, 1, 5, tzinfo=UTC))
    assert root.passed_folder("d=2026-01-01/a", root.seek("d=2026-01-01/a")) == ""


@pytest.mark.parametrize("prefixes", [None, [], [""]])
def test_no_prefixes_are_no_filter(prefixes: list[str] | None) -> None:
    assert FromBeginning.within(prefixes).is_above("any/file")


def test_a_prefix_covers_its_partition_and_all_below_it_and_no_neighbour() -> None:
    position = FromBeginning.within(["d=1", "d=1", "d=1/h=2/"])
    assert [
        path for path in ["d=1/a", "d=1/h=1/a", "d=1-b/a", "d=10/a", "d=0/a"] if position.is_above(path)
    ] == ["d=1/a", "d=1/h=1/a"]
    assert position.prefixes == ("d=1",)


def test_a_listing_of_prefixes_jumps_from_one_to_the_next() -> None:
    position = FromBeginning.within(["d=15", "d=12", "d=13"])
    assert position.span() == KeyRange(key_before("d=12"), "d=15/\U0010ffff")
    assert position.seek("d=12/z") == key_before("d=12"), "which is no jump"
    assert position.seek("d=14/a") == key_before("d=15")


def test_prefixes_whose_order_depends_on_the_store_are_found_by_listing_everything() -> None:
    position = FromBeginning.within(["a/x", "a-b/x"])
    assert (position.span(), position.seek("b/y")) == (KeyRange(), "b/y")


def _looked_for_by_itself(position: ListingStart, path: str, folder: str | None) -> bool:
    """Whether a path lies in the folder that a listing looks at beside a jump, or in one of it that is no closed partition."""
    if folder is None or not path.startswith(f"{folder}/" if folder else ""):
        return False
    inner = path[len(folder) :].lstrip("/").partition("/")
    return not inner[1] or not position.may_be_jumped(f"{folder}/{inner[0]}".lstrip("/"))


def _hidden_from_component_order(position: ListingStart, path: str) -> bool:
    """The one thing that a listing folder by folder does not show: see ``resources.listing.objects``."""
    if isinstance(position, AtOrBelow):
        return _hidden_from_component_order(position.since, path)
    if not isinstance(position, AbovePath):
        return False
    return not is_past(path, key_before(position.last.partition)) and path > position.last.path
