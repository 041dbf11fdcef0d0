"""What somebody asks for whatever the cutoffs say, and windows that no column of the source tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.spark.engine import SparkEngine
from scripts.postgres import Postgres
from tests.support.feed import NAME, Feed
from tests.support.window_feed import DatabaseTable, event, instant, on_lake, on_postgres, watermark

A, B = '{"u":"a"}', '{"u":"b"}'
QUERY = "SELECT id, value FROM {schema}.events WHERE at >= {{start}} AND at < {{end}} AND unit = {{unit.u}}"


@pytest.mark.full
def test_forced_windows_are_read_whole_and_lower_no_high(tmp_path: Path, engine: SparkEngine) -> None:
    """Although the target only appends, and although a window is open."""
    made = on_lake(tmp_path / "project", engine, target={"load": "append"})
    made.table.put(
        event(1, "2020-01-01", "a"), event(2, "2020-01-01", "b"), event(3, "2020-01-03T09:00", "a")
    )
    made.table.put(event(4, "2020-01-02T12:00", "a"))
    made.run("2020-01-03T10:00")
    before = made.feed.watermark
    made.table.put(event(1, "2020-01-01", "a", value=1), event(2, "2020-01-01", "b", value=1))
    made.table.put(event(5, "2020-01-03T08:00", "a"), event(6, "2020-01-03T11:00", "a"))
    made.table.drop(4)
    answer = made.feed.cli(
        "run",
        NAME,
        "--now",
        "2020-01-03T10:00",
        "--force",
        "2020-01-01T23:59:00..2020-01-03T00:01:00",
        "--unit",
        A,
    )
    assert (answer.code, answer.json[0]["work_units"]) == (0, 3)
    assert made.rows == [(1, 1), (2, 0), (3, 0), (5, 0)]
    assert made.feed.watermark == before
    assert made.feed.entries[-1].total_rows == 4
    made.run("2020-01-04")
    assert made.rows == [(1, 1), (2, 0), (3, 0), (5, 0), (6, 0)], (
        "the window that was open goes on where it was"
    )
    assert made.run("2020-01-04") == []


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--force", "yesterday"), "expected windows such as 2026-01-03 or 2026-01-01..2026-01-03"),
        (("--force", "b"), "--force: expected a time, such as 2026-01-03"),
        (("--force", "2020-01-02..2020-01-01"), "START before END"),
        (("--force", "2020-01-01..2020-01-02", "--unit", '{"u": "z"}'), "or a unit; "),
        (("--force", "2020-01-01..2020-01-02/z"), "or a unit; "),
    ],
)
def test_what_cannot_be_forced_is_refused(
    tmp_path: Path, engine: SparkEngine, arguments: tuple[str, ...], expected: str
) -> None:
    made = on_lake(tmp_path / "project", engine)
    answer = made.feed.cli("run", NAME, *arguments)
    assert answer.code == 2
    assert expected in answer.error["message"]


def test_a_forced_range_of_no_window_names_those_there_are(tmp_path: Path, engine: SparkEngine) -> None:
    made = on_lake(tmp_path / "project", engine, watermark=watermark("2020-01-01", "2020-01-03"))
    made.table.put(event(1, "2020-01-01"))
    answer = made.feed.cli("run", NAME, "--now", "2020-01-05", "--force", "2019-01-01..2019-02-01")
    assert (answer.code, answer.json[0]["status"]) == (0, "nothing")
    assert (
        "no window intersects the requested range: the windows cover"
        " [2020-01-01T00:00:00+00:00, 2020-01-03T00:00:00+00:00)" in answer.err
    )


@pytest.mark.postgres
class TestWithoutColumns:
    def _feed(self, tmp_path: Path, engine: SparkEngine, database: DatabaseTable, **definition: Any) -> Feed:
        return on_postgres(
            tmp_path / "project",
            engine,
            database,
            {"query": QUERY.format(schema=database.schema)},
            **({"watermark": watermark("2020-01-01")} | definition),
        )

    def _run(self, feed: Feed, now: str) -> None:
        assert feed.run(now=instant(now)).error is None

    def test_rows_carry_their_window_and_unit_and_a_window_is_replaced_as_a_whole(
        self, tmp_path: Path, engine: SparkEngine, postgres: Postgres
    ) -> None:
        database = DatabaseTable(postgres)
        feed = self._feed(tmp_path, engine, database)
        database.put(event(1, "2020-01-01T09:00", "a"), event(2, "2020-01-01T09:00", "b"))
        database.put(event(3, "2020-01-01T09:30", "b"))
        self._run(feed, "2020-01-01T10:00")
        start = instant("2020-01-01")
        assert feed.rows("id", "_unit", "_window_start") == [(1, A, start), (2, B, start), (3, B, start)]
        database.ask("DELETE FROM {s}.events WHERE id = 2")
        database.put(event(4, "2020-01-01T08:00", "a"), event(5, "2020-01-02T08:00", "a"))
        self._run(feed, "2020-01-02T10:00")
        assert [(row[0], row[1]) for row in feed.rows("id", "_unit")] == [(1, A), (3, B), (4, A), (5, A)]
        assert feed.entries[-1].total_rows == 4

    def test_appended_rows_are_read_once_and_what_makes_room_is_read_as_a_whole(
        self, tmp_path: Path, engine: SparkEngine, postgres: Postgres
    ) -> None:
        database = DatabaseTable(postgres)
        feed = self._feed(
            tmp_path, engine, database, target={"load": "append"}, watermark=watermark(units="a")
        )
        database.put(event(1, "2020-01-01T09:00"))
        self._run(feed, "2020-01-01T10:00")
        database.put(event(2, "2020-01-01T08:00"), event(3, "2020-01-01T10:30"))
        self._run(feed, "2020-01-01T11:00")
        assert feed.ids == [1, 3], "row 2 came late, and nothing is read twice"
        feed.decide("rewind", "--to", "1", "--replace")
        self._run(feed, "2020-01-01T11:00")
        assert feed.ids == [1, 2, 3]
        assert (feed.entries[-1].total_rows, feed.entries[-1].replace_until) == (3, None)
