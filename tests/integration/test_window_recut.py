"""Another zone or window type where only the start of a window tells its rows: each row is there once, whatever dies in between."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed
from tests.support.window_feed import REPLACED, DatabaseTable, event, instant, on_lake, on_postgres, watermark

QUERY = (
    "SELECT id, value, at FROM {schema}.events WHERE at >= {{start}} AND at < {{end}} AND unit = {{unit.u}}"
)


NOW = "2020-01-06T12:00"


def accept(feed: Feed, now: str) -> str:
    return feed.decide("accept", now=now).err


def folders(make_feed: MakeFeed, load: str = "merge_overwrite", **more: Any) -> Feed:
    """Five days of one row each, in folders: only the start of its window tells a row."""
    feed = make_feed(
        source={"path": "./landing/{start:%Y-%m-%d}", "extensions": [".ndjson"]},
        watermark=watermark(to="P0D", units=None, partial=False, **more),
        target=REPLACED if load == "merge_overwrite" else {"load": "append"},
    )
    for day in range(1, 6):
        feed.put(f"2020-01-0{day}/x.ndjson", day)
    return feed


@pytest.mark.full
@pytest.mark.parametrize("load", ["merge_overwrite", "append"])
def test_folders_under_another_zone_are_there_once(make_feed: MakeFeed, load: str) -> None:
    """The first day of the new zone begins within the first one of the old: ten rows became twenty."""
    feed = folders(make_feed, load, checkpoint={"interval_windows": 2})
    assert feed.run(now=instant(NOW)).error is None
    feed.define(watermark={"timezone": "-05:00"})
    told = accept(feed, NOW)
    assert "the table still holds 5 windows of a unit as an earlier definition cut them" in told
    assert "5 of these work units were loaded before; each commit deletes what it reads of them" in told
    assert "a second time" not in told
    feed.put("2020-01-03/y.ndjson", 33)
    outcome = feed.run(now=instant(NOW))
    assert (outcome.error, outcome.work_units, feed.ids) == (None, 5, [1, 2, 3, 4, 5, 33])
    newest = feed.newest
    assert newest is not None
    assert (newest.total_rows, "stale" in newest.state()) == (6, False)
    assert feed.run(now=instant(NOW)).status == "nothing"


@pytest.mark.parametrize(
    ("load", "accepted"),
    [("merge_overwrite", False), ("merge_overwrite", True), ("append", False)],
    ids=["reset", "reset-accept", "append"],
)
def test_a_reset_knows_windows_cut_otherwise(make_feed: MakeFeed, load: str, accepted: bool) -> None:
    feed = folders(make_feed, load)
    assert feed.run(now=instant(NOW)).error is None
    if accepted:
        feed.decide("reset", now=NOW)
    feed.define(watermark={"timezone": "-05:00"})
    told = feed.decide("accept" if accepted else "reset", now=NOW).err
    assert accepted or "each commit deletes what it reads of them, and inserts it again" in told
    assert feed.run(now=instant(NOW)).error is None
    assert feed.ids == [1, 2, 3, 4, 5]
    assert feed.newest is not None
    assert "stale" not in feed.newest.state()


def test_after_a_reset_of_windows_the_table_may_be_removed(make_feed: MakeFeed) -> None:
    feed = folders(make_feed)
    assert feed.run(now=instant(NOW)).error is None
    feed.decide("reset", now=NOW)
    shutil.rmtree(feed.table)
    assert feed.run(now=instant(NOW)).error is None
    assert feed.ids == [1, 2, 3, 4, 5]


def test_an_import_knows_windows_that_were_cut_otherwise(make_feed: MakeFeed) -> None:
    feed = folders(make_feed)
    assert feed.run(now=instant(NOW)).error is None
    export = feed.folder / "export.jsonl"
    export.write_text(feed.cli("state", "export", NAME).out)
    feed.define(watermark={"timezone": "-05:00"})
    accept(feed, NOW)
    assert feed.run(now=instant(NOW)).error is None
    feed.define(watermark={"timezone": "UTC"})
    feed.decide("import", str(export), now=NOW)
    assert feed.run(now=instant(NOW)).error is None
    assert feed.ids == [1, 2, 3, 4, 5]


@pytest.mark.full
@pytest.mark.parametrize("decision", ["import", "rewind", "reset"])
def test_keeping_rows_knows_windows_that_a_reset_had_emptied(make_feed: MakeFeed, decision: str) -> None:
    """The reset has forgotten them, since its first commit would have emptied the table."""
    feed = folders(make_feed)
    assert feed.run(now=instant("2020-01-03T12:00")).error is None
    export = feed.folder / "export.jsonl"
    export.write_text(feed.cli("state", "export", NAME).out)
    assert feed.run(now=instant(NOW)).error is None
    feed.decide("reset", "--replace", now=NOW)
    feed.define(watermark={"timezone": "-05:00"})
    if decision == "rewind":
        accept(feed, NOW)
    words = {"import": ("import", str(export)), "rewind": ("rewind", "--to", "1"), "reset": ("reset",)}
    feed.decide(*words[decision], now=NOW)
    assert feed.run(now=instant(NOW)).error is None
    assert feed.ids == [1, 2, 3, 4, 5]


@pytest.mark.postgres
class TestQuery:
    def _feed(self, tmp_path: Path, engine: SparkEngine, database: DatabaseTable, **given: Any) -> Feed:
        made = watermark(to="P0D", checkpoint={"interval_windows": 3}) | given
        source = {"query": QUERY.format(schema=database.schema)}
        return on_postgres(tmp_path / "project", engine, database, source, watermark=made)

    @pytest.mark.full
    def test_a_month_is_replaced_by_its_days_in_one_commit_and_back(
        self, tmp_path: Path, engine: SparkEngine, postgres: Postgres
    ) -> None:
        database = DatabaseTable(postgres)
        database.put(*[event(2 * day + unit, f"2020-01-{day:02}T09:00", "ab"[unit]) for day in range(1, 32) for unit in (0, 1)])  # fmt: skip
        feed = self._feed(tmp_path, engine, database, window="monthly")
        now, every = "2020-02-01T12:00", list(range(2, 64))
        assert feed.run(now=instant(now)).error is None
        assert feed.ids == every
        feed.define(watermark=watermark("2020-01-10", to="P0D", window="daily", parallelism=5))
        accept(feed, now)

        def dies(step: Step, line: str) -> None:
            if step is Step.INTENT_PUT:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            feed.run(dies, now=instant(now))
        assert feed.run(now=instant(now)).error is None
        assert feed.ids == every, "what lies before from is read again with the days of its month"
        assert feed.run(now=instant(now)).error is None
        assert feed.ids == every
        assert {row[0].isoformat()[:10] for row in feed.rows("_window_start")} == {
            "2020-01-01", *(f"2020-01-{day}" for day in range(10, 32))
        }  # fmt: skip
        feed.decide("rewind", "--to", "1", "--replace")
        for _ in range(10):
            assert feed.run(now=instant(now)).error is None
            assert feed.ids == every
        assert feed.run(now=instant(now)).status == "nothing"


@pytest.mark.full
def test_what_a_fast_clock_loaded_is_read_again_in_time(tmp_path: Path, engine: SparkEngine) -> None:
    made = on_lake(
        tmp_path / "project", engine, watermark=watermark(to="P0D", units="a"), target={"load": "append"}
    )
    made.table.put(*[event(day, f"2020-01-0{day}") for day in range(1, 6)])
    made.run("2020-01-04")
    made.run("2020-01-20")
    assert made.feed.ids == [1, 2, 3, 4, 5]
    made.table.put(event(50, "2020-01-05T12:00"), event(6, "2020-01-06"))
    answer = made.feed.cli("plan", NAME, "--now", "2020-01-06T12:00")
    assert "was loaded before its end" in answer.json[0]["warnings"][0]
    made.run("2020-01-06T12:00")
    assert made.feed.ids == [1, 2, 3, 4, 5, 50], "what makes room is there once, also under load: append"
    made.run("2020-01-07T12:00")
    assert made.feed.ids == [1, 2, 3, 4, 5, 6, 50]
    assert made.feed.run(now=instant("2020-01-07T12:00")).status == "nothing"
