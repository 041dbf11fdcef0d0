"""Listings of a real S3, SeaweedFS: which lists folder by folder, so the same rules are held against both orders."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any
from unittest.mock import patch

import pytest

from partitions.errors import SourceError
from partitions.path.listing_positions import AbovePartitions, AbovePath, FromBeginning
from partitions.path.order import FileKey
from partitions.path.time_template import TimeTemplate
from resources.connections.places import Place
from resources.listing import Budget, Listing, list_above
from resources.listing import pages as listing_pages
from tests.support.proxy import CountingProxy, Record
from tests.support.seaweed import Seaweed
from tests.support.trees import ENDING, put_objects

pytestmark = pytest.mark.s3


def _found(listing: Listing) -> list[str]:
    return [file.path for file in listing.listed.files]


@pytest.fixture(scope="module")
def large(seaweed: Seaweed) -> Iterator[str]:
    """The URL of two partitions of 2,500 and 1,300 files."""
    with seaweed.bucket() as bucket:
        put_objects(bucket, [f"d=1/{number:05}{ENDING}" for number in range(2500)])
        put_objects(bucket, [f"d=2/{number:05}{ENDING}" for number in range(1300)])
        yield bucket.url


@pytest.fixture
def counted(large: str, seaweed: Seaweed, proxy: CountingProxy) -> tuple[Place, Record]:
    """These files, and the requests that go there."""
    return Place(large, seaweed.through(proxy.port)), proxy.record


@pytest.mark.parametrize(("leaf", "calls"), [(True, 3), (False, 4)])
def test_calls_are_the_requests_that_were_made(counted: tuple[Place, Record], leaf: bool, calls: int) -> None:
    place, record = counted
    listing = list_above(place, AbovePath(FileKey("d=1", f"02400{ENDING}"), leaf), (ENDING,))
    assert listing.listed.calls == len(record.lists)
    assert len(listing.listed.files) == 1399
    assert len(record.lists) == calls, (
        "1,399 new files; layout leaf jumps over 1,400 of the 2,401 that are committed"
    )


def test_two_calls_find_up_to_a_thousand_new_files(counted: tuple[Place, Record]) -> None:
    place, record = counted
    listing = list_above(place, AbovePath(FileKey("d=2", f"00299{ENDING}"), leaf=True), (ENDING,))
    assert (len(listing.listed.files), len(record.lists), listing.listed.calls) == (1000, 2, 2)


def test_scope_partition_the_root_s_own_files_are_found_between_closed_days(bucket: Place) -> None:
    days = [f"2026-01-{day}/{number}{ENDING}" for day in range(10, 28) for number in range(5)]
    root = [f"2026-01-15{ENDING}", f"a{ENDING}"]
    place = put_objects(bucket, [*days, *root])
    names = {"": f"2026-01-14{ENDING}", "2026-01-27": f"3{ENDING}"}
    position = AbovePartitions(names, TimeTemplate("%Y-%m-%d"), datetime(2026, 1, 27, tzinfo=UTC))
    with patch.object(listing_pages, "PAGE", 3):
        assert _found(list_above(place, position, (ENDING,))) == [*root, f"2026-01-27/4{ENDING}"]


def test_no_page_is_asked_for_ahead(counted: tuple[Place, Record]) -> None:
    place, record = counted
    listing = list_above(place, FromBeginning(), (ENDING,), budget=Budget(pages=2))
    assert (len(listing.listed.files), listing.complete, len(record.lists)) == (2000, False, 2)


def test_a_listing_that_breaks_off_returns_nothing(counted: tuple[Place, Record]) -> None:
    place, record = counted
    record.break_at = 2
    with pytest.raises(SourceError) as caught:
        list_above(place, FromBeginning(), (ENDING,))
    assert (caught.value.code, caught.value.transient) == ("source_unreachable", True)
    assert len(record.lists) > 2, "it was tried again before"


def test_a_folders_own_key_is_no_file(bucket: Place, seaweed: Seaweed) -> None:
    name = bucket.url.removeprefix("s3://")
    for key in ("a/", "b.json/", "b.json/x.json"):
        seaweed.client().put_object(Bucket=name, Key=key, Body=b"")
    assert _found(list_above(bucket, FromBeginning(), (ENDING,))) == ["b.json/x.json"]


def test_an_empty_prefix_is_no_error(bucket: Place) -> None:
    assert list_above(bucket.child("none"), FromBeginning(), (ENDING,)) == list_above(
        bucket, FromBeginning(), (ENDING,)
    )


def test_a_missing_bucket_is_not_an_empty_one(seaweed: Seaweed) -> None:
    with pytest.raises(SourceError, match="NoSuchBucket") as caught:
        list_above(Place("s3://no-such-bucket/p", seaweed.connection), FromBeginning(), (ENDING,))
    assert (caught.value.code, caught.value.transient) == ("source_missing", False)


@pytest.mark.parametrize("wrong", ["access_key_id", "secret_access_key"])
def test_wrong_credentials_are_told_apart_and_not_shown(bucket: Place, seaweed: Seaweed, wrong: str) -> None:
    values: dict[str, Any] = {wrong: token_hex(20)}
    connection = replace(seaweed.connection, **values)
    with pytest.raises(SourceError, match="HTTP 403") as caught:
        list_above(Place(bucket.url, connection), FromBeginning(), (ENDING,))
    assert (caught.value.code, caught.value.transient) == ("source_denied", False)
    shown = "".join(traceback.format_exception(caught.value)) + repr(connection)
    assert str(connection.access_key_id) not in shown
    assert str(connection.secret_access_key) not in shown
