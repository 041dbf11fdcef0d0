"""A dataflow on real parts for every test of the loop."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from resources.spark import SparkEngine
from tests.support.feed import Feed

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
