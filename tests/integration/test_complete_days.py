"""Days over the table of a stream, each loaded once, when the global watermark says that it is complete (docs/reference/streams.md)."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from dagster import AssetKey, DagsterInstance, SensorResult, build_sensor_context
from deltalake import DeltaTable

from platform_assets.build import build_definitions
from platform_assets.project import load_project
from resources.dagster.run_options import RunOptions
from tests.integration.conftest import MakeFeed
from tests.support.feed import NOW, Feed
from tests.support.streams import Stream, definition

pytestmark = pytest.mark.usefixtures("engine")

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
DAY = 24 * 60
"""Minutes."""


@pytest.fixture
def stream(make_feed: MakeFeed) -> Stream:
    """A stream of readings, and days of its table."""
    feed = make_feed(**definition())
    days = {"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "watermark"}}
    flow = {
        "layer": "gold",
        "source": {"type": "table", "table": "silver/readings", "window_column": "ts"},
        "watermark": {"type": "window", "definition": [days], "window": "daily"},
        "target": {"load": "append"},
    }
    (feed.folder / "dataflows/days.yaml").write_text(yaml.safe_dump(flow))
    return Stream(feed)


def loaded(feed: Feed) -> list[int]:
    days = DeltaTable(str(feed.folder / "lake/gold/days"))
    return sorted(days.to_pyarrow_table().column("id").to_pylist())


def test_a_day_is_requested_once_when_the_global_watermark_ends_it(stream: Stream) -> None:
    project = load_project(stream.feed.folder)
    definitions = build_definitions(project, stream.feed.platform, RunOptions(now=NOW))
    with DagsterInstance.ephemeral() as instance:

        def asked() -> list[Any]:
            sensor = definitions.resolve_sensor_def("days_windows")
            found = sensor(build_sensor_context(instance))
            assert isinstance(found, SensorResult)
            return list(found.run_requests or ())

        assert asked() == []
        stream.append((1, "a", 600), (2, "b", 610))
        stream.feed.load()
        assert asked() == []
        stream.append((3, "a", DAY + 4), (4, "b", DAY + 9))
        stream.feed.load()
        # a stands at 23:59
        assert asked() == []
        stream.append((5, "a", DAY + 5))
        stream.feed.load()
        (request,) = asked()
        assert request.partition_key == "2026-01-01"
        result = definitions.resolve_job_def("load_days").execute_in_process(
            instance=instance, run_config=QUIET, partition_key=request.partition_key, tags=request.tags
        )
        assert result.success
        assert loaded(stream.feed) == [1, 2]
        assert instance.get_materialized_partitions(AssetKey(["gold", "days"])) == {"2026-01-01"}
        assert asked() == []
    (plan,) = stream.feed.cli("plan", "days").json
    assert (plan["due"], plan["why"]) == (
        False,
        "no work unit is due; flow is complete up to 2026-01-02T00:00:00+00:00",
    )


def test_without_a_watermark_no_day_is_due_and_removals_complete_days(stream: Stream) -> None:
    (plan,) = stream.feed.cli("plan", "days").json
    assert plan["due"] is False
    assert plan["why"].endswith("flow has no global watermark yet")
    stream.append((1, "a", 600), (2, "b", 2 * DAY))
    stream.feed.load()
    stream.feed.cli("splits", "remove", "flow", "a", "--reason", "broken", "--yes")
    # row 1 is below the global watermark, and still waits for an epoch
    assert stream.feed.cli("plan", "days").json[0]["due"] is False
    stream.append((3, "b", 2 * DAY + 1))
    stream.feed.load()
    assert stream.feed.cli("run", "days").json[0]["rows"] == 1
    assert loaded(stream.feed) == [1]
    (ledger,) = stream.feed.cli("ledger", "days").json
    assert ledger["complete_up_to"] == "2026-01-02T00:00:00+00:00"


@pytest.mark.full
def test_no_day_is_due_over_a_set_back_table_before_it_is_loaded_again(stream: Stream) -> None:
    for number, at in enumerate((600, 700, DAY + 10)):
        stream.append((2 * number, "a", at), (2 * number + 1, "b", at + 1))
        stream.feed.load()
    table = DeltaTable(str(stream.feed.table))
    table.restore(table.version() - 1)
    (plan,) = stream.feed.cli("plan", "days").json
    assert plan["due"] is False
    assert "the table of flow is older than its state" in plan["why"]
    assert stream.feed.cli("run", "days").json[0]["status"] == "nothing"
    stream.feed.decide("adopt")
    stream.feed.load()
    stream.feed.command("run", "days")
    assert loaded(stream.feed) == [0, 1, 2, 3]
