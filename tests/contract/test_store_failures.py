"""A store that is down, refuses, or has no such bucket: source, state and lake name place, cause and remedy, whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from partitions.errors import ProviderError, SourceError, StrandlineError, TargetError
from partitions.path.listing_positions import FromBeginning
from resources.connections.places import Place
from resources.listing import list_above, stat_files
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.table import DeltaLakeTable
from resources.tables.registry import open_table
from resources.watermarks.blobs import open_blobs
from resources.watermarks.log import WatermarkLog
from tests.support.seaweed import Seaweed
from tests.support.writers import entry

pytestmark = pytest.mark.s3

CLOSED = "http://127.0.0.1:1"

CAUSES = {
    "down": (f"no usable answer from {CLOSED} (Connection refused)", "Check the endpoint and that the store runs, or try again later", True),
    "key": (
        "not allowed to list, read or write (HTTP 403, InvalidAccessKeyId: The access key ID you provided does not exist in our records)",
        "Check key, secret and policy, of its connection in platform.yaml or of the AWS_* variables",
        False,
    ),
    "secret": (
        (
            "not allowed to list, read or write (HTTP 403, SignatureDoesNotMatch: The request signature we calculated does not match the"
            " signature you provided. Check your key and signing method)"
        ),
        "Check key, secret and policy, of its connection in platform.yaml or of the AWS_* variables",
        False,
    ),
    "bucket": ("expected a bucket, found none (HTTP 404, NoSuchBucket: The specified bucket does not exist)", "Create it, or correct the name", False),
}  # fmt: skip

SOURCE: dict[str, Callable[[Place], Any]] = {
    "listing": lambda place: list_above(place, FromBeginning(), (".ndjson",)),
}
STATE: dict[str, Callable[[Place], Any]] = {
    "newest": lambda place: WatermarkLog(open_blobs(place)).newest("flow"),
    "intent": lambda place: WatermarkLog(open_blobs(place)).intent("flow", 1),
}
LAKE: dict[str, Callable[[Place], Any]] = {
    "commits": lambda place: DeltaLog(place).commits(None),
    "commit": lambda place: DeltaLog(place).read(0),
    "head": lambda place: DeltaLakeTable(place).head(None, None),
    "units": lambda place: open_table("delta", place).contents.distinct_rows(["a"]),
    "version": lambda place: DeltaLakeTable(place).contents.newest_version(),
}
READS = {**SOURCE, **STATE, **LAKE}


@pytest.fixture(scope="module")
def table(seaweed: Seaweed) -> Iterator[Place]:
    with seaweed.bucket() as bucket:
        place = bucket.child("t")
        write_deltalake(place.url, pa.table({"a": [1]}), storage_options=place.storage_options)
        yield place


def broken(place: Place, how: str) -> Place:
    """The same place, out of reach."""
    connection = place.connection
    assert connection is not None
    return {
        "down": Place(place.url, replace(connection, endpoint=CLOSED)),
        "key": Place(place.url, replace(connection, access_key_id="no-such-key")),
        "secret": Place(place.url, replace(connection, secret_access_key="no-such-secret")),
        "bucket": Place("s3://no-such-bucket/t", connection),
    }[how]


def refused(act: Callable[[Place], Any], place: Place) -> StrandlineError:
    with pytest.raises(StrandlineError) as caught:
        act(place)
    return caught.value


@pytest.mark.parametrize("how", CAUSES)
@pytest.mark.parametrize("reads", READS)
def test_each_failure_names_place_cause_and_remedy_whole(table: Place, reads: str, how: str) -> None:
    place, (cause, remedy, passes) = broken(table, how), CAUSES[how]
    error = refused(READS[reads], place)
    assert str(place) in error.message
    assert error.message.endswith(f": {cause}. {remedy}")
    assert isinstance(
        error,
        SourceError
        if reads in {*SOURCE, "units", "version"}
        else ProviderError
        if reads in STATE
        else TargetError,
    )
    assert error.transient is (passes if reads in {**SOURCE, **STATE} else False)
    shown = error.message + repr(error.__cause__) + repr(place)
    assert "no-such-secret" not in shown
    assert str(place.connection and place.connection.secret_access_key) not in shown


@pytest.mark.parametrize("how", ["down", "key", "secret"])
def test_a_write_of_the_state_that_fails_names_place_cause_and_remedy(table: Place, how: str) -> None:
    place, (cause, remedy, _) = broken(table, how), CAUSES[how]
    error = refused(lambda place: WatermarkLog(open_blobs(place)).append("flow", entry(1), expected=0), place)
    assert error.message.startswith(f"watermark store {place}: cannot write flow/entries/")
    assert error.message.endswith(f": {cause}. {remedy}")


@pytest.mark.parametrize("how", ["down", "key", "secret"])
def test_a_table_that_deltalake_cannot_open_names_place_cause_and_remedy(table: Place, how: str) -> None:
    place, (cause, remedy, _) = broken(table, how), CAUSES[how]
    log = DeltaLog(table)
    log.versions(None)
    log.place = place
    log.exists = lambda: True  # type: ignore[method-assign]  # the store went away between two requests
    error = refused(lambda _: log.table(), place)
    assert error.message == f"table {place}: cannot read its Delta log: {cause}. {remedy}"


@pytest.mark.parametrize("how", ["down", "key", "secret"])
def test_a_look_at_single_files_names_place_and_remedy(table: Place, how: str) -> None:
    place, (_, remedy, _) = broken(table, how), CAUSES[how]
    error = refused(lambda place: stat_files(place, ["a"]), place)  # a HEAD, whose answer has no text
    assert error.message.startswith(f"{place}: ")
    assert error.message.endswith(remedy)


def test_what_a_table_keeps_beside_itself_is_not_blamed_on_the_watermark_store(table: Place) -> None:
    error = refused(
        lambda place: open_blobs(place, "table").put("_strandline/x.json", b""), broken(table, "down")
    )
    assert error.message.startswith(f"table {table.url}: cannot write _strandline/x.json: no usable answer")
