"""What holds for a listing wherever files lie: in a folder, in a store that lists keys as S3 documents it, and in one that lists folder by folder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from partitions.path.listing_positions import AbovePath, FromBeginning
from partitions.path.order import FileKey
from resources.connections.places import Place
from resources.listing import Budget, Listing, list_above
from resources.listing import pages as listing_pages
from tests.support.keyed import KeyedS3
from tests.support.scenes import Scene, scenes
from tests.support.seaweed import Seaweed
from tests.support.trees import ENDING, put_objects, write_files

ODD = (
    "sp ace/a b",
    "uni é/日本😀",
    "nfd/e\u0301",
    "pct/a%20b%",
    "t/14:00:00",
    "glob/*?[]{}",
    "plus/a+b&c",
    "quote/'\"<>",
    "k=v/k=a=b",
)
OF_FOLDERS, OF_KEYS = ("line/a\nb", "back/a\\b", "-/--"), ("~#|^`/;,@!$()",)


@dataclass(frozen=True)
class Store:
    """Where files lie.

    Attributes:
        hold: makes a new place with these files.
        names: of files that it may have.
        calls: for ten thousand files of one partition.
        least: the calls of a step that has no time.
        odd_token: one with which no listing goes on.
        by_folder: whether it lists folder by folder what it is asked for by key.
        closes_once: whether steps find nothing twice where partitions are closed, too.
    """

    hold: Callable[[Iterable[str]], Place]
    names: tuple[str, ...]
    calls: int = 0
    least: int = 0
    odd_token: str = "/a.json"
    by_folder: bool = False
    closes_once: bool = False


@pytest.fixture(
    scope="module", params=["folder", "keys", pytest.param("folder by folder", marks=pytest.mark.s3)]
)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with ExitStack() as running:
        match request.param:
            case "folder":
                hold = lambda paths: write_files(tmp_path_factory.mktemp("tree"), paths)  # noqa: E731
                yield Store(
                    hold, (*ODD, *OF_FOLDERS), calls=2, least=3, odd_token='["", "a.json"]', closes_once=True
                )
            case "keys":
                keyed: KeyedS3 = request.getfixturevalue("keyed_s3")
                yield Store(keyed.hold, (*ODD, *OF_FOLDERS[1:], *OF_KEYS), calls=10, least=1)
            case _:
                seaweed: Seaweed = request.getfixturevalue("seaweed")
                bucket, numbers = running.enter_context(seaweed.bucket()), count()
                hold_ = lambda paths: put_objects(bucket.child(f"a b%20é-{next(numbers)}"), paths)  # noqa: E731
                yield Store(hold_, (*ODD, *OF_KEYS), by_folder=True)


@pytest.fixture
def small_pages(store: Store, keyed_s3: KeyedS3) -> Iterator[Store]:
    """Three keys a LIST call, so that small trees have many pages and are jumped in."""
    keyed_s3.page = 3
    with patch.object(listing_pages, "PAGE", 3):
        yield store
    keyed_s3.page = 1000


def _paths(listing: Listing) -> list[str]:
    return [file.path for file in listing.listed.files]


_FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@given(scene=scenes)
@_FEW
def test_a_listing_has_what_is_above_in_pair_order(scene: Scene, small_pages: Store) -> None:
    assume(scene.shows_folder_by_folder or not small_pages.by_folder)
    listing = list_above(small_pages.hold(scene.tree), scene.position, (ENDING,))
    assert _paths(listing) == scene.expected


@given(scene=scenes, pages=st.integers(1, 4))
@_FEW
def test_steps_are_the_whole_listing_and_each_gets_on(scene: Scene, pages: int, small_pages: Store) -> None:
    assume(scene.shows_folder_by_folder or not small_pages.by_folder)
    place, found, resume = small_pages.hold(scene.tree), list[str](), ""
    while True:
        step = list_above(place, scene.position, (ENDING,), budget=Budget(pages=pages), resume=resume or None)
        found += _paths(step)
        assert step.complete == (step.resume is None)
        if step.resume is None:
            break
        assert step.resume != resume, "else it would never end"
        resume = step.resume
    once = found if small_pages.closes_once or not scene.closes else set(found)
    assert sorted(once, key=FileKey.of) == scene.expected


def test_names_of_every_kind_are_returned_and_accepted_as_they_are(store: Store) -> None:
    paths = sorted((name + ENDING for name in store.names), key=FileKey.of)
    place = store.hold(paths)
    assert _paths(list_above(place, FromBeginning(), (ENDING,))) == paths
    for number, path in enumerate(paths, 1):
        assert _paths(list_above(place, AbovePath(FileKey.of(path)), (ENDING,))) == paths[number:]


@pytest.mark.parametrize("store", ["folder", "keys"], indirect=True)
def test_ten_thousand_files_of_one_partition(store: Store) -> None:
    paths = [f"d=1/{number:05}{ENDING}" for number in range(10_000)]
    listing = list_above(store.hold(paths), FromBeginning(), (ENDING,))
    assert (_paths(listing), listing.listed.calls) == (paths, store.calls)


@pytest.mark.parametrize("store", ["folder", "keys"], indirect=True)
def test_seconds_are_by_the_given_clock_and_each_step_gets_on(store: Store) -> None:
    place = store.hold([f"d={folder}/{number:04}{ENDING}" for folder in range(5) for number in range(800)])
    ticks = count()
    budget = Budget(seconds=2, clock=lambda: float(next(ticks)))
    first = list_above(place, FromBeginning(), (ENDING,), budget=budget)
    assert (first.complete, first.listed.calls) == (False, 2)
    stuck = list_above(place, FromBeginning(), (ENDING,), budget=Budget(seconds=0), resume=first.resume)
    assert (stuck.complete, stuck.listed.calls) == (False, store.least)
    assert stuck.resume not in (None, first.resume)


def test_a_token_that_does_not_read_starts_anew(store: Store) -> None:
    place = store.hold([f"a{ENDING}"])
    assert _paths(list_above(place, FromBeginning(), (ENDING,), resume=store.odd_token)) == [f"a{ENDING}"]


def test_a_place_without_files_is_no_error(store: Store) -> None:
    assert _paths(list_above(store.hold([]), FromBeginning(), (ENDING,))) == []
