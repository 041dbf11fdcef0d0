"""kill -9 at every step of the protocol, for every way of loading an Iceberg table: rows once, watermark right (docs/iceberg.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.integration.test_crash_matrix import STEPS, WAYS, Way, crash_cell, slow
from tests.support.crash_runner import WRITING
from tests.support.feed import Feed

Make = Callable[[Way, str], Feed]


@pytest.fixture
def make(tmp_path: Path, engine: SparkEngine) -> Make:
    def made(way: Way, step: str) -> Feed:
        feed = Feed(tmp_path / "project", engine, {"watermark": way.watermark, **way.more} | slow(step))
        return feed.define(target={"format": "iceberg"})

    return made


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("append", WRITING),
        ("append", Step.WRITTEN),
        ("upsert", WRITING),
        ("windows", Step.WRITTEN),
    ],
)
def test_a_killed_run_into_iceberg_is_finished_by_the_next(make: Make, name: str, step: str) -> None:
    crash_cell(make, name, step)


@pytest.mark.full
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", WAYS)
def test_matrix_of_iceberg(make: Make, name: str, step: str) -> None:
    crash_cell(make, name, step)
