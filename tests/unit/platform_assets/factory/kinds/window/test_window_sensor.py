"""The sensor of windows requests due windows at once, and unfinished ones after a pause that doubles."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from dagster import DagsterInstance

from platform_assets.factory.jobs import dataflow_job
from platform_assets.factory.kinds.window.run_requests import window_sensor
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.watermarks.entry import Entry
from tests.support.ticks import Ticker, flow_of, requested_run, ticks

HOURLY = {
    "type": "window",
    "definition": [{"name": "day", "type": "datetime", "range": {"from": "2024-01-01", "to": "-"}}],
    "window": "hourly",
    "partial": False,
}


@pytest.fixture
def ticker(tmp_path: Path) -> Iterator[Ticker]:
    """Hourly windows of folders; ten minutes past three o'clock."""
    flow = flow_of(
        source={
            "type": "files",
            "path": "landing/{start:%Y-%m-%dT%H}",
            "format": "ndjson",
            "schema": "id long",
        },
        watermark=HOURLY,
        target={"load": "merge_overwrite", "replace_by_watermark": True},
    )
    with DagsterInstance.ephemeral() as instance:
        ticker = Ticker(
            tmp_path,
            instance,
            flow,
            lambda flow, platform, names, now: window_sensor(
                flow,
                platform,
                names,
                dataflow_job(flow, names),
                WindowAssetPartitions.of(flow.name, flow.window),
                now,
            ),
        )
        ticker.now = datetime(2024, 1, 1, 3, 10, tzinfo=UTC).timestamp()
        yield ticker


def abandon(ticker: Ticker) -> Entry:
    return ticker.commit(why="abandon", kind="window")


def test_abandoned_windows_are_asked_for_after_a_doubling_pause(ticker: Ticker) -> None:
    keys = ticks(ticker, 40, lambda: abandon(ticker))
    assert (len(keys), len(set(keys))) == (6, 6)  # at once, and 1, 3, 7, 15 and 31 minutes later


def test_a_window_that_becomes_due_meanwhile_is_tried_at_once_and_the_pause_grows_on(ticker: Ticker) -> None:
    ticks(ticker, 45, lambda: abandon(ticker))
    assert isinstance(ticker.tick(), str)
    ticker.now = datetime(2024, 1, 1, 4, 0, 1, tzinfo=UTC).timestamp()
    requested_run(ticker.tick())
    abandon(ticker)
    ticker.now += 3599
    assert ticker.tick() == "attempt 7 did not commit; the next one is in 1 s"
