"""A holder on another machine, whose process nobody can see: as long as its lease is renewed, it holds; then it is finished."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from partitions.errors import DataflowHeld
from resources.loop import lease
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from resources.watermarks import holder
from tests.integration.conftest import MakeFeed
from tests.support.crash_runner import crash
from tests.support.feed import Feed
from tests.support.gates import Gate, gate

pytestmark = pytest.mark.without_jvm


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signs come often, and nobody looks for long."""
    monkeypatch.setattr(lease, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(lease, "PATIENCE_SECONDS", 3.0)


@contextmanager
def elsewhere() -> Iterator[None]:
    """Who begins a run in here is on another machine."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holder, "_host", lambda: "another/boot/space")
        yield


@pytest.fixture
def at(tmp_path: Path, engine: SparkEngine) -> Iterator[Gate]:
    with gate(tmp_path / "gate", engine) as made:
        yield made


@pytest.mark.needs_spark
def test_a_run_elsewhere_that_goes_on_is_not_disturbed(make_feed: MakeFeed, at: Gate) -> None:
    feed = make_feed(sql=at.sql)
    feed.put("a.ndjson", 1, 2)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(feed.run)
        at.wait()
        with elsewhere():
            second = feed.run()
        at.open()
        assert first.result(120).error is None
    assert isinstance(second.error, DataflowHeld)
    assert (feed.ids, second.rows) == ([1, 2], 0)


@pytest.mark.needs_spark
def test_one_that_died_elsewhere_is_finished_once_no_sign_comes(feed: Feed) -> None:
    feed.put("a.ndjson", 1)
    crash(feed, Step.WRITTEN)
    assert list((feed.state / "leases").iterdir())
    with elsewhere():
        assert feed.load().status == "recovered"
    assert feed.ids == [1]
    assert not list((feed.state / "leases").iterdir()), "what the dead one left is cleared away"


def test_a_lease_ends_with_its_slice(feed: Feed) -> None:
    feed.put("a.ndjson", 1)
    feed.load()
    assert not list((feed.state / "leases").iterdir())
