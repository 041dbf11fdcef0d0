"""The sensor of alerts: what it posts, and when."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from dagster import DagsterInstance, SensorResult, SkipReason, build_sensor_context

from partitions.alerts import Alert, News
from partitions.errors import StrandlineError
from partitions.sentinels import serialise
from platform_assets.factory.alerts import alerts_sensor, message
from platform_assets.platform import build_platform
from platform_assets.project import Project, load_project
from resources.attempts import note_attempt
from resources.loop.outcome import Outcome
from resources.watermarks.entry import following

FLOW = """\
source: {type: files, path: ./landing, format: ndjson}
watermark: {type: path}
target: {load: append}
freshness: {fail: PT2H}
"""


class Receiver:
    """An address that takes JSON, and keeps it."""

    def __init__(self) -> None:
        self.taken: list[Any] = []
        self.status = 200
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.status == 200:
                    receiver.taken.append(json.loads(body))
                self.send_response(receiver.status)
                self.end_headers()

            def log_message(self, *_: Any) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/T00/secretpath"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    yield made
    made.server.shutdown()
    made.server.server_close()


class Watch:
    """A project with alerts, and its sensor."""

    def __init__(self, folder: Path, receiver: Receiver, on: str = "[failed, late, gaps, stale]") -> None:
        (folder / "dataflows").mkdir(parents=True)
        (folder / "landing").mkdir()
        (folder / "platform.yaml").write_text(f"alerts: {{webhook: {{env: HOOK}}, on: {on}}}\n")
        (folder / "dataflows/orders.yaml").write_text(FLOW)
        self.project = load_project(folder, environment={"HOOK": receiver.url})
        assert self.project.errors == []
        self.platform = build_platform(self.project)
        self.now, self.cursor = 1_700_000_000.0, ""
        sensor = alerts_sensor(self.project, self.platform, lambda: self.now)
        assert sensor is not None
        self.sensor = sensor

    def tick(self) -> str:
        with DagsterInstance.ephemeral() as instance:
            result = self.sensor(build_sensor_context(instance=instance, cursor=self.cursor or None))
        assert isinstance(result, SensorResult)
        assert isinstance(result.skip_reason, SkipReason)
        self.cursor = result.cursor or ""
        return str(result.skip_reason.skip_message)

    def run(self, error: StrandlineError | None = None) -> None:
        note_attempt(self.platform.log, Outcome("orders", "run", {}, 0, error=error))

    def load(self, at: float) -> None:
        log, flow = self.platform.log, self.project.dataflows["orders"]
        newest = log.newest(flow.name)
        entry = following(
            newest,
            kind="path",
            app_id="a",
            why="run",
            watermark=serialise({"path": "a"}),
            fingerprint=flow.fingerprint,
            time=datetime.fromtimestamp(at, UTC).isoformat(),
        )
        log.append(flow.name, entry, expected=newest.number if newest else 0)


@pytest.fixture
def watch(tmp_path: Path, receiver: Receiver) -> Watch:
    return Watch(tmp_path / "shop", receiver)


def test_a_failing_dataflow_is_told_once_with_what_to_do_and_once_more_when_it_is_well_again(
    watch: Watch, receiver: Receiver
) -> None:
    watch.tick()
    assert receiver.taken == []
    for _ in range(3):
        watch.run(StrandlineError("the source is away", choices=["strandline doctor"]))
        watch.tick()
    (told,) = receiver.taken
    assert (told["project"], told["ended"]) == ("shop", [])
    (alert,) = told["began"]
    assert (alert["dataflow"], alert["condition"]) == ("orders", "failed")
    assert "the source is away\n  strandline doctor" in alert["text"]
    watch.run()
    watch.tick()
    watch.tick()
    assert [each["ended"] for each in receiver.taken[1:]] == [[{"dataflow": "orders", "condition": "failed"}]]


def test_a_dataflow_that_has_loaded_nothing_for_longer_than_its_freshness_is_stale(
    watch: Watch, receiver: Receiver
) -> None:
    watch.load(watch.now)
    watch.tick()
    assert receiver.taken == []
    watch.now += 2 * 3600 + 1
    watch.tick()
    assert [alert["condition"] for alert in receiver.taken[0]["began"]] == ["stale"]
    watch.load(watch.now)
    watch.tick()
    assert receiver.taken[1]["ended"] == [{"dataflow": "orders", "condition": "stale"}]


def test_what_is_not_asked_for_is_not_told(tmp_path: Path, receiver: Receiver) -> None:
    watch = Watch(tmp_path, receiver, on="[late]")
    watch.run(StrandlineError("the source is away"))
    watch.tick()
    assert receiver.taken == []


def test_a_message_that_was_not_taken_fails_the_tick_without_the_address_and_is_posted_by_the_next(
    watch: Watch, receiver: Receiver
) -> None:
    watch.run(StrandlineError("the source is away"))
    receiver.status = 500
    with pytest.raises(StrandlineError, match="refused the message with status 500") as refused:
        watch.tick()
    assert "secretpath" not in str(refused.value)
    receiver.status = 200
    watch.tick()
    assert len(receiver.taken) == 1


def test_slack_gets_slack_s_form(watch: Watch) -> None:
    news = News((Alert("orders", "failed", "why"),), ("visits:late",), {})
    said = message(news, "hooks.slack.com", watch.project, datetime.now(UTC))
    assert said == {
        "text": ":red_circle: *orders* failed: why\n:large_green_circle: *visits* late: well again"
    }


def test_a_project_without_alerts_has_no_such_sensor(tmp_path: Path) -> None:
    (tmp_path / "dataflows").mkdir()
    project: Project = load_project(tmp_path, environment={})
    assert alerts_sensor(project, build_platform(project)) is None


def test_an_address_in_plain_text_is_refused_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "platform.yaml").write_text(
        "alerts: {webhook: 'https://hooks.slack.com/services/secretpath'}\n"
    )
    (error,) = load_project(tmp_path, environment={}).errors
    assert "{env: NAME}" in str(error)
    assert "secretpath" not in str(error)
