"""Listings of a store that lists as S3 documents it: whole keys, in the order of their bytes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from partitions.path.hidden import is_hidden_path
from partitions.path.listing_positions import AbovePartitions, AbovePath, FromBeginning, ListingStart
from partitions.path.order import FileKey
from partitions.path.skipped import fault_of_key, skip_warnings
from partitions.path.time_template import TimeTemplate
from resources.connections.places import Place
from resources.listing import Budget, Listing, list_above
from resources.listing import pages as listing_pages
from tests.support.keyed import KeyedS3
from tests.support.scenes import Scene, scenes
from tests.support.trees import ENDING

NO_PATHS = [
    "a//b.json",
    "/lead.json",
    "a/\x01.json",
    "a\nb.json",
    "t\tb.json",
    "a/../b.json",
    "./b.json",
    "d\x7f.json",
    "nul\x00.json",
]
_LARGE = settings(max_examples=60, deadline=None)


def _list(
    place: Place, position: ListingStart, budget: Budget | None = None, resume: str | None = None
) -> Listing:
    return list_above(place, position, (ENDING,), budget=budget, resume=resume)


def _found(listing: Listing) -> list[str]:
    return [file.path for file in listing.listed.files]


def _warnings(listing: Listing) -> list[str]:
    return list(skip_warnings(listing.listed.skipped))


def _names(folder: str, numbers: range) -> list[str]:
    return [f"{folder}/{number:05}{ENDING}" for number in numbers]


@pytest.fixture(scope="class")
def small_pages(keyed_s3: KeyedS3) -> Iterator[KeyedS3]:
    """Three keys a LIST call, so that small trees have many pages."""
    keyed_s3.page = 3
    with patch.object(listing_pages, "PAGE", 3):
        yield keyed_s3
    keyed_s3.page = 1000


class TestTheLaw:
    @given(scene=scenes)
    @_LARGE
    def test_calls_are_the_requests_that_were_made(self, scene: Scene, small_pages: KeyedS3) -> None:
        place = small_pages.hold(scene.tree)
        assert _list(place, scene.position).listed.calls == small_pages.lists

    @given(scene=scenes, pages=st.integers(1, 3))
    @_LARGE
    def test_steps_are_the_whole_listing_once(self, scene: Scene, pages: int, small_pages: KeyedS3) -> None:
        place, found = small_pages.hold(scene.tree), list[str]()
        asks = 2 if any("\ufffd" in path for path in scene.tree) else 1  # such a name is looked at once more
        resume: str | None = ""
        while resume is not None:
            before = resume
            step = _list(place, scene.position, Budget(pages=pages), resume or None)
            found += _found(step)
            resume = step.resume
            assert step.complete == (resume is None)
            assert step.listed.calls <= pages * asks or scene.closes
            assert step.resume is None or step.resume != before, "else it would never end"
        once = found if not scene.closes else set(found)
        assert sorted(once, key=FileKey.of) == scene.expected


class TestItsCost:
    """LIST calls, as the store counts them."""

    @pytest.mark.parametrize("new", [0, 1, 999, 1000])
    def test_leaf_needs_two_calls_for_up_to_a_thousand_files(self, keyed_s3: KeyedS3, new: int) -> None:
        old = [*_names("d=1", range(3000)), *_names("d=2", range(3000))]
        place = keyed_s3.hold(
            [*old, *_names("d=2", range(3000, 3000 + new // 2)), *_names("d=3", range(new - new // 2))]
        )
        listing = _list(place, AbovePath(FileKey.of(old[-1]), leaf=True))
        assert (len(listing.listed.files), keyed_s3.lists, listing.listed.calls) == (new, 2, 2)

    def test_leaf_spends_two_calls_whatever_lies_between(self, keyed_s3: KeyedS3) -> None:
        old = _names("d=1", range(3000))
        place = keyed_s3.hold([*old, *_names("d=1-b", range(400)), *_names("d=2", range(600))])
        listing = _list(place, AbovePath(FileKey.of(old[-1]), leaf=True))
        assert (len(listing.listed.files), keyed_s3.lists) == (1000, 2)

    def test_a_small_partition_costs_one_call(self, keyed_s3: KeyedS3) -> None:
        place = keyed_s3.hold([*_names("d=1", range(5000)), *_names("d=2", range(20))])
        for leaf in (True, False):
            keyed_s3.lists = 0
            _list(place, AbovePath(FileKey("d=2", f"00009{ENDING}"), leaf))
            assert keyed_s3.lists == 1

    def test_mixed_costs_a_call_a_thousand_files_of_the_partition(self, keyed_s3: KeyedS3) -> None:
        place = keyed_s3.hold(
            [*_names("d=1", range(5000)), *_names("d=2", range(2500)), *_names("d=2/e=1", range(1))]
        )
        listing = _list(place, AbovePath(FileKey("d=2", f"02499{ENDING}")))
        assert (_found(listing), keyed_s3.lists) == ([f"d=2/e=1/00000{ENDING}"], 3)

    def test_a_cold_start_lists_only_its_prefixes(self, keyed_s3: KeyedS3) -> None:
        place = keyed_s3.hold([path for day in range(10, 20) for path in _names(f"d={day}", range(1000))])
        listing = _list(place, FromBeginning.within(["d=13", "d=14", "d=99"]))
        assert (len(listing.listed.files), keyed_s3.lists) == (2000, 4), (
            "two pages, one to see the end of d=14, none after"
        )

    def test_hidden_folders_are_jumped_over(self, keyed_s3: KeyedS3) -> None:
        place = keyed_s3.hold([*_names("_delta_log", range(5000)), *_names("a", range(10))])
        assert (len(_list(place, FromBeginning()).listed.files), keyed_s3.lists) == (10, 2)

    def test_leaf_of_scope_partition_jumps_over_committed_files(self, keyed_s3: KeyedS3) -> None:
        place = keyed_s3.hold([*_names("a", range(3000)), *_names("b", range(3000)), *_names("c", range(5))])
        names = {"a": f"02999{ENDING}", "b": f"02990{ENDING}"}
        listing = _list(place, AbovePartitions(names, leaf=True))
        assert (len(listing.listed.files), keyed_s3.lists) == (14, 3)

    def test_what_lies_beside_closed_partitions_is_found_for_one_call_more(self, keyed_s3: KeyedS3) -> None:
        days = [path for day in range(10, 28) for path in _names(f"2026-01-{day}", range(1000))]
        beside = [f"2026-01-15{ENDING}", f"2026-01-15-again/a{ENDING}", f"a{ENDING}"]
        place = keyed_s3.hold([*days, *beside])
        names = {"2026-01-27": f"00998{ENDING}"}
        position = AbovePartitions(names, TimeTemplate("%Y-%m-%d"), datetime(2026, 1, 27, tzinfo=UTC))
        listing = _list(place, position)
        assert _found(listing) == [
            f"2026-01-15{ENDING}",
            f"a{ENDING}",
            f"2026-01-15-again/a{ENDING}",
            f"2026-01-27/00999{ENDING}",
        ]
        assert (keyed_s3.lists, listing.listed.calls) == (5, 5), (
            "a page, what lies beside, the folder that is no day, and two pages from the first open day on"
        )


class TestKeysOfEveryKind:
    def test_paths_are_relative_to_the_places_prefix(self, keyed_s3: KeyedS3) -> None:
        root = keyed_s3.hold(["a b%20/x.json", "a b%20/y.json", "a b%20-/z.json", "a b%20.json"])
        place = root.child("a b%20")
        assert _found(_list(place, FromBeginning())) == ["x.json", "y.json"]
        assert _found(_list(place, AbovePath(FileKey("", "x.json"), leaf=True))) == ["y.json"]

    @pytest.mark.parametrize("key", NO_PATHS)
    def test_a_key_that_is_no_path_is_named_and_passed_over(self, keyed_s3: KeyedS3, key: str) -> None:
        listing = _list(keyed_s3.hold(["a.json", key, "z.json"]), FromBeginning())
        assert _found(listing) == ["a.json", "z.json"]
        (skipped,) = listing.listed.skipped
        assert (skipped.names, skipped.count) == ((key,), 1)

    def test_the_warning_says_what_the_key_has(self, keyed_s3: KeyedS3) -> None:
        place = keyed_s3.hold(["p/a.json", "p//b.json", "p/c\n.json", "p/../d.json"]).child("p")
        assert _warnings(_list(place, FromBeginning())) == [
            'skipped "../d.json": the key has a component . or .., which no path can have. Rename or remove it',
            'skipped "/b.json": the key has a slash at the beginning, which no path can have. Rename or remove it',
            'skipped "c\\n.json": the key has a control character, which no path can have. Rename or remove it',
        ]

    @pytest.mark.parametrize("page", [2, 3, 1000])
    def test_keys_that_are_no_paths_lose_no_others(self, keyed_s3: KeyedS3, page: int) -> None:
        sound = [f"{day}/{number}{ENDING}" for day in "abc" for number in range(4)]
        bad = [f"{day}//{number}{ENDING}" for day in "abcd" for number in range(5)]
        place = keyed_s3.hold([*sound, *bad])
        keyed_s3.page = page
        try:
            with patch.object(listing_pages, "PAGE", page):
                listing = _list(place, FromBeginning())
                step = _list(place, FromBeginning(), Budget(pages=1))
                steps = _found(step)
                while not step.complete:
                    step = _list(place, FromBeginning(), Budget(pages=1), step.resume)
                    steps += _found(step)
                above = _list(place, AbovePath(FileKey.of(sound[5])))
        finally:
            keyed_s3.page = 1000
        assert (_found(listing), steps, _found(above)) == (sound, sound, sound[6:])
        assert listing.listed.skipped[0].count == len(bad)

    def test_folders_of_closed_partitions_may_hold_such_keys_beside_them(self, keyed_s3: KeyedS3) -> None:
        days = [path for day in range(10, 28) for path in _names(f"2026-01-{day}", range(1000))]
        place = keyed_s3.hold([*days, f"a{ENDING}", f"b\x01{ENDING}", f"2026-01-15//a{ENDING}"])
        names = {"2026-01-27": f"00998{ENDING}"}
        position = AbovePartitions(names, TimeTemplate("%Y-%m-%d"), datetime(2026, 1, 27, tzinfo=UTC))
        assert _found(_list(place, position)) == [f"a{ENDING}", f"2026-01-27/00999{ENDING}"]

    @given(
        names=st.lists(st.text(st.sampled_from("ab/.%\\\x00\n\x7f é"), min_size=1, max_size=6), unique=True)
    )
    def test_every_key_is_a_file_or_has_a_warning(self, keyed_s3: KeyedS3, names: list[str]) -> None:
        keys = [f"{name}{ENDING}" for name in names]
        listing = _list(keyed_s3.hold(keys), FromBeginning())
        skipped = {name for each in listing.listed.skipped for name in each.names}
        assert {*_found(listing), *skipped} == set(keys)
        assert set(_found(listing)) == {
            key for key in keys if not fault_of_key(key) and not is_hidden_path(key)
        }

    def test_a_key_that_ends_in_a_slash_is_a_folder_and_no_file(self, keyed_s3: KeyedS3) -> None:
        place = keyed_s3.hold(["a/", "b.json/", "b.json/x.json", "empty.json"], size=0)
        assert _found(_list(place, FromBeginning())) == ["empty.json", "b.json/x.json"]

    def test_the_marker_of_the_prefix_itself_is_no_file(self, keyed_s3: KeyedS3) -> None:
        place = keyed_s3.hold(["p.json/", "p.json/a.json"], size=0).child("p.json")
        assert _found(_list(place, FromBeginning())) == ["a.json"]


def test_the_prefixes_of_another_day_go_on_where_the_listing_stopped(keyed_s3: KeyedS3) -> None:
    """A cold start in steps may take over midnight."""
    place = keyed_s3.hold([path for day in range(1, 5) for path in _names(f"d={day}", range(1000))])
    first = _list(place, FromBeginning.within(["d=1", "d=2", "d=3"]), Budget(pages=2))
    rest = _list(place, FromBeginning.within(["d=2", "d=3", "d=4"]), resume=first.resume)
    assert _found(rest) == [*_names("d=3", range(1000)), *_names("d=4", range(1000))]


def test_a_store_without_order_is_listed_in_full() -> None:
    place = Place("s3://bucket--use1-az4--x-s3")
    store = MemoryStore()
    place.__dict__["_store"] = (None, store)
    for path in (paths := _names("d=1", range(20))):
        store.put(path, b"x")
    listing = _list(place, AbovePath(FileKey.of(paths[9]), leaf=True), Budget(pages=1))
    assert (_found(listing), listing.complete) == (paths[10:], True)
