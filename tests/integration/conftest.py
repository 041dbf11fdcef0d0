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


@pytest.fixture
def feed(make_feed: MakeFeed) -> Feed:
    """The usual dataflow."""
    return make_feed()
