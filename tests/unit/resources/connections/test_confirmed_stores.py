"""A page that answers everything is no store: neither an empty listing nor the end of a long one counts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partitions.errors import ProviderError, SourceUnreachable
from partitions.path.listing_positions import FromBeginning
from resources.connections.confirmed_stores import ABSENT_KEY
from resources.connections.places import Place, S3Connection
from resources.listing import list_above
from resources.watermarks.blobs.objects import ObjectBlobs
from tests.support.http import QuietHandler, Server, serving
from tests.support.keyed import KeyedS3

LOGIN = b"<html><body>Sign in</body></html>"


class Portal(Server):
    """Answers all requests, from the second page of a listing on or always, by a login page.

    Attributes:
        keys: keys of a first page that a store gave; none: there is no store.
        heads: the status of a HEAD.
    """

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.keys: list[str] = []
        self.heads = 200
        self.place = Place(
            "s3://land", S3Connection(f"http://127.0.0.1:{self.port}", "us-east-1", "key", "secret")
        )


class _Handler(QuietHandler):
    server: Portal

    def do_GET(self) -> None:  # noqa: N802  http.server's name
        """Answer with the store's first page, or with the login page."""
        if not self.server.keys or "continuation-token" in self.path:
            self.answer(200, {"Content-Type": "text/html"}, LOGIN)
            return
        items = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>1</Size></Contents>"
            for key in self.server.keys
        )
        head = "<IsTruncated>true</IsTruncated><NextContinuationToken>next</NextContinuationToken>"
        self.answer(200, {}, f"<ListBucketResult>{head}{items}</ListBucketResult>".encode())

    def do_HEAD(self) -> None:  # noqa: N802  http.server's name
        """Answer as the portal does for each key."""
        self.answer(self.server.heads, {"Content-Length": str(len(LOGIN))})


@pytest.fixture
def portal() -> Iterator[Portal]:
    with serving(Portal()) as running:
        yield running


def listed(place: Place) -> list[str]:
    return [file.path for file in list_above(place, FromBeginning(), (".ndjson",)).listed.files]


def test_a_page_that_answers_everything_is_no_source_without_files(portal: Portal) -> None:
    with pytest.raises(SourceUnreachable) as caught:
        listed(portal.place)
    assert caught.value.message == (
        f"s3://land: no usable answer from http://127.0.0.1:{portal.port} (expected an object store, found something "
        "that claims to have every key: a login page, a proxy, or the port of a console). "
        "Check the endpoint and that the store runs, or try again later"
    )


def test_a_page_instead_of_the_second_page_of_a_listing_does_not_end_it(portal: Portal) -> None:
    portal.keys = [f"{number:04}.ndjson" for number in range(1000)]
    with pytest.raises(SourceUnreachable, match="claims to have every key"):
        listed(portal.place)


def test_a_page_that_answers_everything_is_no_state_without_entries(portal: Portal) -> None:
    blobs = ObjectBlobs(portal.place)
    with pytest.raises(ProviderError, match="claims to have every key"):
        blobs.first_names("flow/log", 1)
    with pytest.raises(ProviderError, match="claims to have every key"):
        blobs.folders("")


def test_a_page_that_answers_everything_is_no_folder_without_contents(portal: Portal) -> None:
    with pytest.raises(OSError, match="claims to have every key"):
        portal.place.store.list_with_delimiter()


@pytest.mark.parametrize("status", [404, 403])
def test_an_empty_listing_counts_if_the_store_lacks_a_key_or_does_not_tell(
    portal: Portal, status: int
) -> None:
    portal.heads = status
    assert listed(portal.place) == []


def test_an_empty_bucket_is_empty(keyed_s3: KeyedS3) -> None:
    assert listed(keyed_s3.hold([])) == []
    assert ABSENT_KEY not in keyed_s3.sizes


@pytest.mark.parametrize("count", [1, 999, 1000, 2000])
def test_a_listing_of_any_length_is_listed_to_its_end(keyed_s3: KeyedS3, count: int) -> None:
    keys = [f"{number:04}.ndjson" for number in range(count)]
    assert listed(keyed_s3.hold(keys)) == keys
