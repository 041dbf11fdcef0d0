"""Alerts on the real thing: runs, the sweep and the ledger make what is told (docs/how-to/alerts.md)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import pytest
from dagster import DagsterInstance, build_sensor_context

from partitions.alerts.delivery import PAUSE_BETWEEN_MESSAGES
from platform_assets.factory.alerts import alerts_sensor
from platform_assets.project import load_project
from resources.dagster.names import DagsterNames
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, Feed


class Told:
    """An address that keeps what is posted to it."""

    def __init__(self) -> None:
        self.posts: list[Any] = []
        posts = self.posts

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                posts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()
        self.cursor: str | None = None
        self.now = datetime.now(UTC)

    def look(self, feed: Feed) -> list[tuple[str, str]]:
        """One look of the sensor, minutes after the last one; what it told: ``began`` or ``ended``, and the condition."""
        self.now += timedelta(seconds=PAUSE_BETWEEN_MESSAGES)
        before = len(self.posts)
        (feed.folder / "platform.yaml").write_text(
            "state: ./state\nlake: ./lake\nalerts: {webhook: {env: HOOK}}\n"
        )
        url = f"http://127.0.0.1:{self.server.server_port}/hook"
        project = load_project(feed.folder, environment={"HOOK": url})
        assert project.errors == []
        sensor = alerts_sensor(project, feed.platform, DagsterNames(), self.now.timestamp)
        assert sensor is not None
        with DagsterInstance.ephemeral() as instance:
            result: Any = sensor(build_sensor_context(instance=instance, cursor=self.cursor))
        self.cursor = result.cursor
        return [
            (what, alert["condition"])
            for post in self.posts[before:]
            for what in ("began", "ended")
            for alert in post[what]
        ]


@pytest.fixture
def told() -> Iterator[Told]:
    made = Told()
    yield made
    made.server.shutdown()
    made.server.server_close()


def test_a_late_file_is_told_once_and_again_when_it_is_loaded(make_feed: MakeFeed, told: Told) -> None:
    feed = make_feed(late_files="alert")
    feed.put("2.ndjson", 2)
    feed.load()
    feed.put("1.ndjson", 1)
    assert told.look(feed) == []  # no sweep has seen it yet
    assert feed.cli("late", NAME).json["late"] == ["1.ndjson"]
    assert [told.look(feed) for _ in range(3)] == [[], [("began", "late")], []]
    assert told.posts[0]["began"][0]["text"] == (
        "1 late file, 1.ndjson: waiting for your decision; late_files: ingest loads late files, quarantine sets them aside"
        f"\n  strandline late {NAME}"
    )
    feed.define(late_files="ingest")
    assert feed.cli("late", NAME).json["ingested"] == 1
    assert feed.ids == [1, 2]
    assert told.look(feed) == [("ended", "late")]


def test_files_in_quarantine_are_told_until_none_is_left(make_feed: MakeFeed, told: Told) -> None:
    feed = make_feed(on_bad_file="quarantine")
    feed.put("1.ndjson", 1)
    feed.put_text("2.ndjson", '{"id": "no number"}\n')
    feed.put("3.ndjson", 3)
    feed.load()
    assert [told.look(feed) for _ in range(2)] == [[("began", "quarantined")], []]
    assert "1 file in quarantine, 2.ndjson: line 1" in told.posts[0]["began"][0]["text"]
    feed.put("2.ndjson", 2)
    feed.command("files", "release", NAME, "2.ndjson")
    feed.load()
    assert told.look(feed) == [("ended", "quarantined")]
    assert feed.ids == [1, 2, 3]


def test_bad_records_are_told_until_their_file_is_repaired(make_feed: MakeFeed, told: Told) -> None:
    feed = make_feed(max_bad_records=1)
    feed.put_text("1.ndjson", '{"id": 1}\n{"id": "no number"}\n')
    feed.load()
    assert [told.look(feed) for _ in range(2)] == [[("began", "bad_records")], []]
    assert "1 record did not parse, and is in table bronze/flow" in told.posts[0]["began"][0]["text"]
    feed.put("1.ndjson", 1, 2)
    feed.decide("rewind", "--to", "0", "--replace")
    feed.load()
    assert feed.ids == [1, 2]
    assert told.look(feed) == [("ended", "bad_records")]


def test_an_expected_folder_without_a_file_is_a_gap_until_one_comes(make_feed: MakeFeed, told: Told) -> None:
    feed = make_feed(
        watermark={"type": "path", "expected": "yearly", "time_template": "y=%Y"}, late_files="alert"
    )
    for year in (2021, 2023, 2025):
        feed.put(f"y={year}/1.ndjson", year)
    feed.load()
    assert [told.look(feed) for _ in range(3)] == [[], [("began", "gaps")], []]
    assert told.posts[0]["began"][0]["text"].startswith(
        "2 partitions without a file (expected: yearly), the first: 2022-01-01 00:00:00 UTC to 2023-01-01 00:00:00 UTC"
    )
    for year in (2022, 2024):
        feed.put(f"y={year}/1.ndjson", year)
    assert feed.cli("late", NAME).code == 0  # the files wait for a decision, and are there
    assert ("ended", "gaps") in told.look(feed)


def test_a_missing_folder_of_a_window_is_a_gap_until_it_is_loaded(make_feed: MakeFeed, told: Told) -> None:
    feed = make_feed(
        source={"path": "./landing/{start:%Y-%m-%d}"},
        watermark={
            "type": "window",
            "definition": [
                {"name": "day", "type": "datetime", "range": {"from": "2024-01-01", "to": "2024-01-04"}}
            ],
            "window": "daily",
            "partial": False,
        },
        target={"load": "merge_overwrite", "replace_by_watermark": True},
    )
    for day in (1, 3):
        feed.put(f"2024-01-0{day}/x.ndjson", day)
    feed.run()
    assert feed.ids == [1, 3]
    assert [told.look(feed) for _ in range(3)] == [[("began", "failed")], [("began", "gaps")], []]
    feed.put("2024-01-02/x.ndjson", 2)
    feed.run()
    assert feed.ids == [1, 2, 3]
    assert sorted(told.look(feed)) == [("ended", "failed"), ("ended", "gaps")]
