"""Windows that wait for a column watermark: up to its value, less its look-back."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from partitions.dataflow import Dataflow
from partitions.errors import PlanError
from partitions.fingerprint import fingerprint
from partitions.instants import as_datetime
from partitions.sentinels import serialise
from partitions.window.plan import plan
from partitions.window.state import WindowState
from resources.connections.places import Place
from resources.kinds.window.column_completeness import find_column_bound
from resources.kinds.window.columns import WindowColumns
from resources.kinds.window.planning import WindowPlanning
from resources.kinds.window.sources import QueriedWindows
from resources.kinds.window.stream_completeness import Waits
from resources.sources.table import TableRows
from resources.tables.contract.commits import Version
from resources.watermarks.blobs import open_blobs
from resources.watermarks.entry import next_entry
from resources.watermarks.expiry import carry_expired
from resources.watermarks.log import WatermarkLog
from tests.support.arrow import ArrowTable
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


def loaded(log: WatermarkLog, value: Any, name: str = "rows", of: Dataflow | None = None) -> None:
    """The dataflow has read its column up to a value."""
    made_by = fingerprint(of or maker(name))
    entry = next_entry(
        None, kind="column", app_id="a", why="run", fingerprint=made_by, watermark=serialise({"at": value})
    )
    log.append(name, entry, expected=0)


def test_days_below_a_retention_are_not_loaded_from_what_it_has_left(log: WatermarkLog) -> None:
    upper = serialise({"at": datetime(2026, 1, 3, tzinfo=UTC)})
    entry = next_entry(
        None,
        kind="column",
        app_id="a",
        why="run",
        fingerprint=fingerprint(maker()),
        watermark=serialise({"at": NOW}),
    )
    log.append(
        "rows", entry.model_copy(update={"expiry": carry_expired(None, 1, entry.id, upper)}), expected=0
    )
    keeping = maker().model_copy(
        update={
            "target": DAYS.target.model_validate(
                {"load": "append", "retention": {"column": "at", "keep": "P2D"}}
            )
        }
    )
    for rows, limit in ((maker(), 3), (keeping, 7)):
        waits = find_column_bound(DAYS, [rows], log, _no_table, NOW)
        assert [f"{at:%d}" for at in planned(DAYS, waits)] == [f"{day:02}" for day in range(limit, 9)]


def planned(reader: Dataflow, waits: Waits) -> list[datetime]:
    """Return the days that a plan loads."""
    found = plan(
        reader.window.up_to(waits.reached),
        WindowState(),
        ("{}",),
        NOW,
        dataflow="days",
        state_number=0,
        upstream=waits.tables(UTC),
    )
    starts = (work.start for slice_ in found.slices for work in slice_.works if work.start is not None)
    return [as_datetime(start) for start in starts]


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
    loaded(log, value, of=maker(**watermark))
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


def test_nothing_is_complete_while_a_changed_definition_is_not_accepted(log: WatermarkLog) -> None:
    loaded(log, NOW)
    bound = find_column_bound(DAYS, [maker(columns=["seen"])], log, _no_table, NOW)
    assert (bound.reached, bound.in_words) == (
        None,
        "the definition of rows has changed since it was loaded: `strandline run rows` shows what to do",
    )


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


class _Reset(TableRows):
    """The table of rows; while its version is looked up, the dataflow that loads it is reset."""

    log: WatermarkLog

    def version(self) -> Version:
        found = super().version()
        newest = self.log.newest("rows")
        if newest is not None and newest.why == "run":
            reset = next_entry(newest, why="reset", watermark="{}", fingerprint=newest.fingerprint)
            self.log.append("rows", reset, expected=newest.number)
        return found


@pytest.mark.parametrize("source_of", [TableRows, _Reset])
def test_no_day_is_planned_from_a_state_that_a_reset_has_lowered_meanwhile(
    tmp_path: Path, log: WatermarkLog, source_of: type[TableRows]
) -> None:
    """The day would be read from a table that may lack its rows, and never again."""
    loaded(log, datetime(2026, 1, 3, tzinfo=UTC))
    folder = str(tmp_path / "rows")
    write_deltalake(folder, pa.table({"at": pa.array([], pa.timestamp("us", "UTC"))}))
    source = source_of(ArrowTable(Place(folder), ()), cast("Any", DAYS.source), DAYS.zone)
    vars(source)["log"] = log
    planning = WindowPlanning(
        DAYS,
        QueriedWindows(DAYS, source),
        WindowColumns.of(DAYS),
        lambda: ("{}",),
        awaited=lambda state, now: find_column_bound(DAYS, [maker()], log, _no_table, now),
    )
    slices = planning.plan(None, NOW).slices
    assert [slice_.version for slice_ in slices] == ([0] if source_of is TableRows else [])
