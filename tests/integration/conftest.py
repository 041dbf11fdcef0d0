"""A dataflow on real parts for every test of the loop."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import stamina

from resources.connections.iceberg_rest import RestCatalogServer
from resources.spark.engine import SparkEngine
from tests.support.feed import Feed
from tests.support.iceberg_rest import rest_catalog
from tests.support.jvmless import jvmless

MakeFeed = Callable[..., Feed]


@pytest.fixture
def make_feed(tmp_path: Path, engine: SparkEngine) -> MakeFeed:
    """A dataflow with these keys beside the usual ones: NDJSON with an ``id``, appended."""

    def make(**definition: Any) -> Feed:
        return Feed(tmp_path / "project", engine, definition)

    return make


def loaded_one_by_one(folder: Path, engine: SparkEngine, count: int) -> Feed:
    """A dataflow that has loaded files ``1.ndjson`` and so on, each with a row of its number, and an entry for each."""
    made = Feed(folder, engine, {"watermark": {"checkpoint": {"interval_files": 1}}})
    for number in range(1, count + 1):
        made.put(f"{number}.ndjson", number)
    made.load()
    return made


@pytest.fixture
def feed(make_feed: MakeFeed) -> Feed:
    """The usual dataflow."""
    return make_feed()


@pytest.fixture(scope="module")
def rest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestCatalogServer]:
    """A server that knows Iceberg tables."""
    with rest_catalog(tmp_path_factory.mktemp("rest")) as server:
        yield server


@pytest.fixture
def in_arrow() -> Iterator[None]:
    """Run the loops of a test with rows in Arrow, without a JVM."""
    with jvmless():
        yield


@pytest.fixture
def at_once() -> Iterator[None]:
    """As many attempts as ever, without the pauses."""
    with stamina.set_testing(True, attempts=7, cap=True):
        yield


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What a run says of the attempts that it makes again."""
    caplog.set_level(logging.WARNING, "resources.retries")
    return caplog
