"""Windows that wait for a stream: up to its global watermark, in the zone of its times."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from partitions.dataflow import Dataflow
from partitions.fingerprint import fingerprint
from partitions.lineage import Lineage
from partitions.sentinels import serialise
from partitions.stream.state import StreamState
from resources.connections.places import Place
from resources.kinds.window.stream_completeness import find_waits
from resources.watermarks.blobs import open_blobs
from resources.watermarks.entry import next_entry
from resources.watermarks.log import WatermarkLog
from tests.support.arrow import ArrowTable
from tests.support.ticks import flow_of

READINGS = flow_of(
    name="readings",
    source={"type": "table", "table": "raw/readings"},
    watermark={"type": "stream", "event_time": "at", "split": "device", "timeout": "PT5M"},
    target={"load": "append"},
)


def days_in(zone: str) -> Dataflow:
    time = {"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "watermark"}}
    return flow_of(
        name="days",
        source={"type": "table", "table": READINGS.table, "window_column": "at"},
        watermark={"type": "window", "window": "daily", "definition": [time], "timezone": zone},
        target={"load": "append"},
    )


@pytest.mark.parametrize(
    ("column", "zone", "expected"),
    [
        (pa.timestamp("us", "UTC"), "Asia/Tokyo", datetime(2026, 1, 5, 15, tzinfo=UTC)),
        (pa.timestamp("us"), "UTC", datetime(2026, 1, 5, 15, tzinfo=UTC)),
        (pa.timestamp("us"), "Asia/Tokyo", datetime(2026, 1, 5, 6, tzinfo=UTC)),
        (pa.timestamp("us"), "America/New_York", datetime(2026, 1, 5, 20, tzinfo=UTC)),
    ],
)
def test_times_of_a_stream_without_a_zone_count_in_the_zone_of_the_windows_that_wait(
    tmp_path: Path, column: pa.DataType, zone: str, expected: datetime
) -> None:
    """Rows up to 15:00 are no whole day of Tokyo, though 15:00 in UTC is midnight there."""
    log, folder = WatermarkLog(open_blobs(Place(str(tmp_path / "state")))), tmp_path / "readings"
    state = StreamState(
        value=datetime(2026, 1, 5, 15, tzinfo=UTC), drained=datetime(2026, 1, 5, 15, tzinfo=UTC)
    )
    entry = next_entry(
        None,
        kind="stream",
        app_id="a",
        why="run",
        fingerprint=fingerprint(READINGS),
        watermark=serialise(state.watermark()),
    )
    log.append("readings", entry, expected=0)
    write_deltalake(str(folder), pa.table({"at": pa.array([], column)}))
    days, table = days_in(zone), ArrowTable(Place(str(folder)), ())
    waits = find_waits(
        days, Lineage([READINGS, days]), log, lambda flow: table, datetime(2026, 1, 9, tzinfo=UTC)
    )
    assert waits is not None
    assert waits.reached == expected
