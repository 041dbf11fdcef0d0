"""A watermark log on an object store that is busy, or slow."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from partitions.errors import ProviderError
from resources.connections import places
from resources.connections.places import Place
from resources.watermarks.blobs import open_blobs
from resources.watermarks.log import WatermarkLog
from tests.support.proxy import CountingProxy, Record
from tests.support.seaweed import Seaweed
from tests.support.writers import entry

pytestmark = pytest.mark.s3

FLOW = "flow"


@pytest.fixture
def record(proxy: CountingProxy) -> Iterator[Record]:
    yield proxy.record
    proxy.record.released.set()


@pytest.fixture
def log(seaweed: Seaweed, bucket: Place, proxy: CountingProxy) -> WatermarkLog:
    """Behind the proxy."""
    return WatermarkLog(open_blobs(Place(bucket.url, seaweed.through(proxy.port)).child("state")))


@pytest.fixture
def near(bucket: Place) -> WatermarkLog:
    """The same, past the proxy."""
    return WatermarkLog(open_blobs(bucket.child("state")))


def test_a_store_that_is_busy_for_a_moment_is_not_even_noticed(record: Record, log: WatermarkLog) -> None:
    ours = entry(1)
    record.busy = 2
    assert log.append(FLOW, ours, expected=0) == ours
    record.busy = 2
    assert log.newest(FLOW) == ours
    assert record.busy == 0


def test_a_store_that_stays_busy_is_a_transient_error_never_an_empty_log(
    record: Record, log: WatermarkLog, near: WatermarkLog
) -> None:
    record.busy = 1000
    with pytest.raises(ProviderError) as caught:
        log.newest(FLOW)
    assert caught.value.transient
    with pytest.raises(ProviderError) as caught:
        log.append(FLOW, entry(1), expected=0)
    assert caught.value.transient
    assert near.newest(FLOW) is None


def test_a_busy_store_does_not_hide_that_a_lost_append_is_ours(record: Record, log: WatermarkLog) -> None:
    ours = entry(1)
    record.lose = 1
    assert log.append(FLOW, ours, expected=0) == ours
    record.busy = 3
    assert log.append(FLOW, ours, expected=0) == ours, "and once more"
    assert log.newest(FLOW) == ours


def test_an_append_whose_answer_takes_too_long_is_a_transient_error_and_is_whole(
    record: Record, log: WatermarkLog, near: WatermarkLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(places._CLIENT, "timeout", timedelta(milliseconds=500))
    ours = entry(1)
    record.hold = 1
    with pytest.raises(ProviderError) as caught:
        log.append(FLOW, ours, expected=0)
    assert caught.value.transient
    assert near.newest(FLOW) == ours
    assert log.append(FLOW, ours, expected=0) == ours, "trying again finds it"
