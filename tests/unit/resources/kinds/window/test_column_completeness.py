"""Windows that wait for a column watermark: up to its value, less its look-back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from partitions.dataflow import Dataflow
from partitions.errors import PlanError
from partitions.sentinels import serialise
from resources.connections.places import Place
from resources.kinds.window.column_completeness import find_column_bound
from resources.watermarks.blobs import open_blobs
from resources.watermarks.entry import next_entry
from resources.watermarks.log import WatermarkLog
from tests.support.ticks import flow_of

NOW = datetime(2026, 1, 9, 12, tzinfo=UTC)
DAYS = flow_of(
    name="days",
    source={"type": "table", "table": "bronze/rows", "window_column": "at"},
    watermark={
        "type": "window",
        "window": "daily",
        "definition": [{"name": "d", "type": "datetime", "range": {"from": "2026-01-01", "to": "upstream"}}],
    },
    target={"load": "append"},
)


def _no_table(_: Dataflow) -> Any:
    """The entries record no commit, so no table is looked at."""


def maker(name: str = "rows", **watermark: Any) -> Dataflow:
    return flow_of(
        name=name,
        source={"type": "table", "table": "raw/rows"},
        watermark={"type": "column", "columns": ["at"], **watermark},
        target={"load": "append"} if not watermark.get("backward") else {"load": "merge_overwrite", "replace_by_watermark": True},
    )  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> WatermarkLog:
    return WatermarkLog(open_blobs(Place(str(tmp_path))))


def loaded(log: WatermarkLog, value: Any, name: str = "rows") -> None:
    """The dataflow has read its column up to a value."""
    entry = next_entry(
        None, kind="column", app_id="a", why="run", fingerprint="f", watermark=serialise({"at": value})
    )
    log.append(name, entry, expected=0)


def reached(log: WatermarkLog, *makers: Dataflow) -> datetime | None:
    return find_column_bound(DAYS, makers, log, _no_table, NOW).reached


@pytest.mark.parametrize(
    ("value", "watermark", "expected"),
    [
        (datetime(2026, 1, 5, 7, tzinfo=UTC), {}, datetime(2026, 1, 5, 7, tzinfo=UTC)),
        (datetime(2026, 1, 5, 7), {"timezone": "+02:00"}, datetime(2026, 1, 5, 7, tzinfo=UTC)),  # noqa: DTZ001
        (date(2026, 1, 5), {}, datetime(2026, 1, 5, tzinfo=UTC)),
        (
            datetime(2026, 1, 5, 7, tzinfo=UTC),
            {"backward": {"days": 2}},
            datetime(2026, 1, 3, 7, tzinfo=UTC),
        ),
    ],
)
def test_windows_below_the_value_less_its_look_back_are_complete(
    log: WatermarkLog, value: Any, watermark: dict[str, Any], expected: datetime
) -> None:
    loaded(log, value)
    assert reached(log, maker(**watermark)) == expected


def test_of_several_dataflows_the_lowest_counts_and_none_counts_before_all_have_a_value(
    log: WatermarkLog,
) -> None:
    first, second = maker(), maker("others")
    loaded(log, NOW - timedelta(days=1))
    assert reached(log, first, second) is None
    bound = find_column_bound(DAYS, (first, second), log, _no_table, NOW)
    assert bound.in_words == "others has no watermark yet"
    loaded(log, NOW - timedelta(days=3), "others")
    assert reached(log, first, second) == NOW - timedelta(days=3)


def test_a_value_that_is_no_time_is_refused(log: WatermarkLog) -> None:
    loaded(log, 7)
    with pytest.raises(PlanError, match="whose watermark is a time, found at of rows, which is 7"):
        reached(log, maker())


@pytest.mark.parametrize(
    ("value", "zone", "expected"),
    [
        (datetime(2026, 1, 5, 15), "Asia/Tokyo", datetime(2026, 1, 5, 6, tzinfo=UTC)),  # noqa: DTZ001
        (datetime(2026, 1, 5, 15), "America/New_York", datetime(2026, 1, 5, 20, tzinfo=UTC)),  # noqa: DTZ001
        (date(2026, 1, 5), "Asia/Tokyo", datetime(2026, 1, 4, 15, tzinfo=UTC)),
        (datetime(2026, 1, 5, 15, tzinfo=UTC), "Asia/Tokyo", datetime(2026, 1, 5, 15, tzinfo=UTC)),
    ],
)
def test_a_value_without_a_zone_counts_in_the_zone_of_the_windows_that_wait(
    log: WatermarkLog, value: Any, zone: str, expected: datetime
) -> None:
    """Rows up to 15:00 are no whole day of Tokyo, though 15:00 in UTC is midnight there."""
    loaded(log, value)
    watermark = DAYS.window.model_copy(update={"timezone": zone})
    days = DAYS.model_copy(update={"watermark": watermark})
    assert find_column_bound(days, [maker()], log, _no_table, NOW).reached == expected
