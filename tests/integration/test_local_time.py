"""Clocks that are put back: APIs, queries, folders and columns without a zone give each row of both passes once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from partitions.local_time import earliest_instant, latest_instant
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.integration.conftest import MakeFeed
from tests.support.api import BY_TIME, SCHEMA, Api, ApiFeed
from tests.support.window_feed import REPLACED, DatabaseTable, instant, on_postgres, watermark

NEW_YORK, BERLIN = ZoneInfo("America/New_York"), ZoneInfo("Europe/Berlin")
BACK = datetime(2026, 11, 1, 6, tzinfo=UTC)
"""When New York goes back to 01:00; Berlin does a week before, at 01:00 UTC."""

NOW = instant("2026-11-02T12:00")
FORM = "%Y-%m-%d %H:%M:%S"
PASSES = [earliest_instant, latest_instant]


def rows_around(change: datetime, every: int = 30, hours: int = 5) -> list[datetime]:
    """A row each so many minutes, some hours before and after."""
    return [change + timedelta(minutes=minute) for minute in range(-hours * 60, hours * 60, every)]


def hourly(grain: str = "hourly", **more: Any) -> dict[str, Any]:
    return watermark("2026-10-31", units=None, window=grain, timezone="America/New_York", **more)


def taken_for(reading: Callable[..., datetime], zone: ZoneInfo) -> Callable[[str], datetime]:
    """What an API takes a local time for that may be one of two instants."""

    def reads(text: str) -> datetime:
        said = datetime.fromisoformat(text)
        return said if said.tzinfo else reading(said, zone)

    return reads


@pytest.mark.parametrize("reading", PASSES)
def test_an_api_that_is_told_local_times_gives_each_row_once_above_a_column(
    tmp_path: Path, engine: SparkEngine, server: Api, reading: Callable[..., datetime]
) -> None:
    change = datetime(2026, 10, 25, 1, tzinfo=UTC)
    source = BY_TIME | {
        "schema": SCHEMA,
        "watermark_param_format": "datetime",
        "watermark_param_timezone": "Europe/Berlin",
    }
    flow = ApiFeed(tmp_path, engine, server, source).flow()
    server.reads = taken_for(reading, BERLIN)
    times = rows_around(change)
    for now in ("2026-10-25T00:20", "2026-10-25T01:35", "2026-10-25T02:30", "2026-10-25T07:00"):
        server.rows = [
            {"id": number, "at": at.isoformat(), "value": 0}
            for number, at in enumerate(times)
            if at <= instant(now)
        ]
        flow.run(now)
    assert flow.ids == list(range(len(times)))


@pytest.mark.parametrize("reading", PASSES)
@pytest.mark.parametrize("grain", ["hourly", "daily"])
def test_an_api_that_is_told_local_times_gives_each_row_of_a_window_once(
    tmp_path: Path, engine: SparkEngine, server: Api, reading: Callable[..., datetime], grain: str
) -> None:
    source = {
        "schema": SCHEMA,
        "params": {"since": f"{{start:{FORM}}}", "until": f"{{end:{FORM}}}"},
        "window_column": "at",
    }
    given = {"watermark": hourly(grain), "target": REPLACED}
    feed = ApiFeed(tmp_path, engine, server, source, given).feed()
    server.reads = taken_for(reading, NEW_YORK)
    times = rows_around(BACK)
    server.rows = [{"id": number, "at": at.isoformat(), "value": 0} for number, at in enumerate(times)]
    for now in ("2026-11-01T05:35", "2026-11-01T06:25", "2026-11-02T12:00"):
        assert feed.run(now=instant(now)).error is None
    assert feed.ids == list(range(len(times)))


LOCALLY = "at AT TIME ZONE 'America/New_York'"


@pytest.mark.parametrize(
    ("grain", "compared", "start", "end"),
    [
        ("hourly", LOCALLY, f"{{start:{FORM}}}", f"{{end:{FORM}}}"),
        ("daily", LOCALLY, f"{{start:{FORM}}}", f"{{end:{FORM}}}"),
        ("hourly", LOCALLY, "{start}", "{end}"),
        ("daily", "at", "{start}", "{end}"),
    ],
)
def test_a_query_with_placeholders_gives_each_row_of_a_window_once(
    tmp_path: Path, engine: SparkEngine, postgres: Postgres, grain: str, compared: str, start: str, end: str
) -> None:
    table = DatabaseTable(postgres)
    query = f"select * from {table.schema}.events where {compared} >= {start} and {compared} < {end}"
    feed = on_postgres(
        tmp_path,
        engine,
        table,
        {"query": query, "window_column": "at"},
        watermark=hourly(grain, partial=True),
    )
    times = rows_around(BACK)
    numbers = list(range(len(times)))
    table.ask(
        "INSERT INTO {s}.events SELECT *, 'a', 0 FROM unnest(%s::bigint[], %s::timestamptz[])", numbers, times
    )
    for now in ("2026-11-01T05:35", "2026-11-01T06:25", "2026-11-02T12:00"):
        assert feed.run(now=instant(now)).error is None
    assert feed.ids == list(range(len(times)))


def test_local_times_are_of_the_second_pass(tmp_path: Path, engine: SparkEngine, postgres: Postgres) -> None:
    table = DatabaseTable(postgres)
    table.ask("ALTER TABLE {s}.events ALTER COLUMN at TYPE timestamp, ADD COLUMN own timestamptz")
    times = rows_around(BACK)
    local = [at.astimezone(NEW_YORK).replace(tzinfo=None) for at in times]
    table.ask(
        "INSERT INTO {s}.events SELECT id, at, 'a', 0, own"
        " FROM unnest(%s::bigint[], %s::timestamp[], %s::timestamptz[]) AS r(id, at, own)",
        list(range(len(times))),
        local,
        times,
    )
    query = f"select id, at, value from {table.schema}.events where own >= {{start}} and own < {{end}}"
    feed = on_postgres(tmp_path, engine, table, {"query": query, "window_column": "at"}, watermark=hourly())
    for now in ("2026-11-01T05:35", "2026-11-01T06:25", "2026-11-02T12:00"):
        assert feed.run(now=instant(now)).error is None
    assert feed.ids == list(range(len(times)))


def test_a_folder_that_both_passes_of_an_hour_share_is_read_by_the_second_one(make_feed: MakeFeed) -> None:
    source = {"path": "./landing/{start:%Y-%m-%dT%H}", "missing": "empty", "extensions": [".ndjson"]}
    feed = make_feed(source=source, watermark=hourly(partial=False), target=REPLACED)
    times = rows_around(BACK)
    for number, at in enumerate(times):
        feed.put(f"{at.astimezone(NEW_YORK):%Y-%m-%dT%H}/{number}.ndjson", number)
    skips = feed.cli("plan", "flow", "--now", (BACK + timedelta(minutes=10)).isoformat()).json[0]["skips"]
    assert [
        skip["what"] for skip in skips if skip["why"].startswith("empty: its folder holds both passes")
    ] == ["[2026-11-01T01:00:00-04:00, 2026-11-01T01:00:00-05:00)"]
    assert feed.run(now=BACK + timedelta(minutes=10)).error is None
    assert feed.ids == [number for number, at in enumerate(times) if at < BACK - timedelta(hours=1)]
    assert feed.run(now=NOW).error is None
    assert feed.ids == list(range(len(times)))
    starts = {row[0] for row in feed.rows("_window_start") if BACK - timedelta(hours=2) < row[0] <= BACK}
    assert starts == {BACK}


def test_local_times_above_a_column_wait_for_the_second_pass(make_feed: MakeFeed) -> None:
    feed = make_feed(
        source={"schema": "id long, at timestamp_ntz"},
        watermark={"type": "column", "columns": ["at"], "timezone": "America/New_York"},
    )
    times = rows_around(BACK)
    for now in (BACK - timedelta(minutes=30), BACK + timedelta(minutes=25), NOW):
        for number, at in enumerate(times):
            if at <= now:
                local = at.astimezone(NEW_YORK).replace(tzinfo=None)
                feed.put(f"{number}.ndjson", {"id": number, "at": local.isoformat()})
        assert feed.run(now=now).error is None
    assert feed.ids == list(range(len(times)))
