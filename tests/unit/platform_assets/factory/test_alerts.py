"""The sensor of alerts: what it posts, and when."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from dagster import DagsterInstance, DagsterRunStatus, SensorResult, SkipReason, build_sensor_context
from dagster._core.test_utils import create_run_for_test

from partitions.alerts.alert import Alert
from partitions.alerts.changes import REPORTED, AlertChanges
from partitions.alerts.delivery import PAUSE_BETWEEN_MESSAGES
from partitions.errors import DataflowHeld, SourceError, StrandlineError, UpstreamNotLoaded
from partitions.fingerprint import fingerprint
from partitions.sentinels import serialise
from platform_assets.factory.alert_messages import alert_message
from platform_assets.factory.alerts import AlertCursor, alerts_sensor
from platform_assets.platform import build_platform
from platform_assets.project import Project, load_project
from resources.alerts.scan import AlertScan
from resources.dagster.names import DagsterNames
from resources.dagster.run_tags import DATAFLOW_TAG
from resources.notes.last_run import note_attempt, noted_look
from resources.outcome import Outcome
from resources.watermarks.entry import Why, next_entry
from tests.support.webhooks import Receiver, webhook_receiver

FLOW = """\
source: {type: files, path: ./landing, format: ndjson}
watermark: {type: path}
target: {load: append}
freshness: {fail: PT2H}
"""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with webhook_receiver() as running:
        yield running


class Watch:
    """A project with alerts, and its sensor."""

    def __init__(self, folder: Path, receiver: Receiver, on: str = "[failed, late, gaps, stale]") -> None:
        (folder / "dataflows").mkdir(parents=True, exist_ok=True)
        (folder / "landing").mkdir()
        (folder / "platform.yaml").write_text(f"alerts: {{webhook: {{env: HOOK}}, on: {on}}}\n")
        (folder / "dataflows/orders.yaml").write_text(FLOW)
        self.dagster = DagsterInstance.ephemeral()
        self.folder, self.now, self.cursor = folder, 1_700_000_000.0, ""
        self.url = receiver.url
        self.reload()

    def reload(self, url: str | None = None) -> None:
        """Take the project's files as they are, and another address for alerts."""
        self.url = url or self.url
        self.project = load_project(self.folder, environment={"HOOK": self.url})
        self.platform = build_platform(self.project)
        sensor = alerts_sensor(self.project, self.platform, DagsterNames(), lambda: self.now)
        assert sensor is not None
        self.sensor = sensor

    def tick(self, after: float = PAUSE_BETWEEN_MESSAGES) -> str:
        """Look once, so many seconds after the last time."""
        self.now += after
        result = self.sensor(build_sensor_context(instance=self.dagster, cursor=self.cursor or None))
        assert isinstance(result, SensorResult)
        assert isinstance(result.skip_reason, SkipReason)
        self.cursor = result.cursor or ""
        return str(result.skip_reason.skip_message)

    def run(self, error: StrandlineError | None = None, name: str = "orders") -> None:
        note_attempt(self.platform.log, Outcome(name, "run", {}, 0, error=error))

    def load(self, at: float, why: Why = "run") -> None:
        log, flow = self.platform.log, self.project.dataflows["orders"]
        newest = log.newest(flow.name)
        entry = next_entry(
            newest,
            kind="path",
            app_id="a",
            why=why,
            watermark=serialise({"path": "a"}),
            fingerprint=fingerprint(flow),
            time=datetime.fromtimestamp(at, UTC).isoformat(),
        )
        log.append(flow.name, entry, expected=newest.number if newest else 0)


@pytest.fixture
def watch(tmp_path: Path, receiver: Receiver) -> Watch:
    return Watch(tmp_path / "shop", receiver)


def test_a_failing_dataflow_is_told_once_and_once_when_well(watch: Watch, receiver: Receiver) -> None:
    watch.tick()
    assert receiver.taken == []
    for _ in range(3):
        watch.run(StrandlineError("the source is away", choices=["strandline doctor"]))
        watch.tick()
    (told,) = receiver.taken
    assert (told["project"], told["ended"]) == ("shop", [])
    (alert,) = told["began"]
    assert (alert["dataflow"], alert["condition"]) == ("orders", "failed")
    assert re.fullmatch(
        r"since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC: the source is away\n  strandline doctor", alert["text"]
    )
    watch.run()
    watch.tick()
    watch.tick()
    assert [each["ended"] for each in receiver.taken[1:]] == [
        [{"dataflow": "orders", "condition": "failed", "how": "well again"}]
    ]


def test_a_run_in_flight_tells_no_recovery_and_hides_no_failure(watch: Watch, receiver: Receiver) -> None:
    def in_flight() -> None:
        tags = {DATAFLOW_TAG: "orders"}
        create_run_for_test(watch.dagster, "load_orders", tags=tags, status=DagsterRunStatus.STARTED)

    watch.run(StrandlineError("the source is away"))
    in_flight()
    watch.tick()
    (told,) = receiver.taken
    assert [alert["condition"] for alert in told["began"]] == ["failed"]
    in_flight()
    assert "0 began, 0 ended, 1 reported and still open" in watch.tick()
    assert len(receiver.taken) == 1


def test_what_was_not_told_is_not_counted_as_told(watch: Watch, receiver: Receiver) -> None:
    receiver.status = 503
    watch.run(StrandlineError("the source is away"))
    assert "1 began, 0 ended, 0 reported and still open" in watch.tick()


def test_a_dataflow_without_load_beyond_its_freshness_is_stale(watch: Watch, receiver: Receiver) -> None:
    watch.load(watch.now)
    watch.tick()
    assert receiver.taken == []
    watch.now += 2 * 3600 + 1
    watch.tick()
    (alert,) = receiver.taken[0]["began"]
    assert (alert["condition"], alert["text"]) == (
        "stale",
        "nothing was loaded since 2023-11-14 22:13:20 UTC, for longer than 2 h (freshness: fail)\n  strandline plan orders",
    )
    watch.load(watch.now)
    watch.tick()
    assert receiver.taken[1]["ended"] == [{"dataflow": "orders", "condition": "stale", "how": "well again"}]


def test_a_dataflow_stays_stale_whatever_loads_nothing(watch: Watch, receiver: Receiver) -> None:
    watch.load(at=watch.now)
    for number in range(120):
        watch.load(watch.now + number, why="abandon")
    watch.tick(3 * 3600)
    assert [alert["condition"] for post in receiver.taken for alert in post["began"]] == ["stale"]
    watch.load(watch.now, why="abandon")
    watch.tick()
    assert [post["ended"] for post in receiver.taken] == [[]]
    watch.load(watch.now)
    watch.tick()
    assert len(receiver.taken[-1]["ended"]) == 1


def test_what_is_not_asked_for_any_more_is_not_well(watch: Watch, receiver: Receiver) -> None:
    watch.run(StrandlineError("the source is away"))
    watch.tick()
    (watch.folder / "platform.yaml").write_text("alerts: {webhook: {env: HOOK}, on: [late]}\n")
    watch.reload()
    watch.tick()
    assert [post["ended"] for post in receiver.taken] == [[]]


def test_what_is_not_asked_for_is_not_told(tmp_path: Path, receiver: Receiver) -> None:
    watch = Watch(tmp_path, receiver, on="[late]")
    watch.run(StrandlineError("the source is away"))
    watch.tick()
    assert receiver.taken == []


def test_a_refused_message_is_posted_again_and_hides_its_address(watch: Watch, receiver: Receiver) -> None:
    watch.run(StrandlineError("the source is away"))
    receiver.status = 500
    said = [watch.tick(60) for _ in range(20)]
    assert receiver.asked == 5  # after 0, 1, 3, 7 and 15 minutes
    assert "refused the message with status 500; the next message may be posted in 1 min" in said[0]
    assert not any("secretpath" in text for text in said)
    receiver.status = 200
    for _ in range(20):
        watch.tick(60)
    assert [alert["dataflow"] for told in receiver.taken for alert in told["began"]] == ["orders"]


def test_an_address_that_never_confirms_does_not_get_it_each_minute(
    watch: Watch, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resources.connections.webhook._ANSWER", 0.2)
    watch.run(StrandlineError("the source is away"))
    receiver.holds_back.clear()
    said = [watch.tick(60) for _ in range(10)]
    assert "did not accept the message: it accepted the message and did not answer within" in said[0]
    assert receiver.asked == 4  # after 0, 1, 3 and 7 minutes
    receiver.holds_back.set()


def test_why_an_address_did_not_take_a_message_is_said_in_words(watch: Watch) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound, and nobody listens
        closed = f"http://127.0.0.1:{held.getsockname()[1]}/secretpath"
        watch.run(StrandlineError("the source is away"))
        said = []
        for url in (closed, "http://nobody.invalid/secretpath"):
            watch.reload(url)
            said.append(watch.tick(3600))
    assert "127.0.0.1 did not accept the message: nothing listens there" in said[0]
    assert "nobody.invalid did not accept the message: no host has this name" in said[1]
    assert not any("secretpath" in text for text in said)


def test_empty_alerts_are_refused(tmp_path: Path) -> None:
    (tmp_path / "platform.yaml").write_text("alerts:\n")
    (error,) = load_project(tmp_path, environment={}).errors
    assert "alerts: found nothing, expected webhook (and optionally on), or no alerts key" in str(error)


def test_what_lasts_minutes_is_told_together_or_not_at_all(watch: Watch, receiver: Receiver) -> None:
    for number in range(60):  # an hour of a dataflow that fails every other minute
        watch.run(StrandlineError("the source is away") if number % 2 == 0 else None)
        watch.tick(60)
    assert 0 < len(receiver.taken) <= 12
    told = [(bool(post["began"]), bool(post["ended"])) for post in receiver.taken]
    assert all(before != after for before, after in pairwise(told))


def test_dagster_is_asked_once_for_all_that_were_well(
    tmp_path: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = Watch(tmp_path / "shop", receiver)
    for name in ("customers", "visits"):
        (watch.folder / f"dataflows/{name}.yaml").write_text(FLOW)
    watch.reload()
    questions: list[Any] = []
    ask = watch.dagster.get_run_records

    def asked(*arguments: Any, **more: Any) -> Any:
        questions.append(arguments)
        return ask(*arguments, **more)

    monkeypatch.setattr(watch.dagster, "get_run_records", asked)
    create_run_for_test(watch.dagster, status=DagsterRunStatus.SUCCESS, tags={DATAFLOW_TAG: "visits"})
    watch.tick()
    assert len(questions) == 3
    watch.tick()
    watch.tick()
    assert len(questions) == 5 + 2  # the run of visits began within the last minutes
    create_run_for_test(watch.dagster, status=DagsterRunStatus.FAILURE, tags={DATAFLOW_TAG: "customers"})
    watch.tick()
    assert [alert["dataflow"] for told in receiver.taken for alert in told["began"]] == ["customers"]


def test_a_clock_that_was_put_back_keeps_no_message(watch: Watch, receiver: Receiver) -> None:
    watch.run(StrandlineError("the source is away"))
    watch.tick()
    watch.run()
    watch.now -= 86_400
    watch.tick(0)
    assert [bool(post["ended"]) for post in receiver.taken] == [False, True]


def test_a_broken_file_is_told_as_a_failure(tmp_path: Path, receiver: Receiver) -> None:
    folder = tmp_path / "shop"
    (folder / "dataflows").mkdir(parents=True)
    (folder / "dataflows/broken.yaml").write_text("source: 7\n")
    watch = Watch(folder, receiver, on="[failed]")
    assert watch.tick().startswith("2 dataflows checked: 1 began")
    watch.tick()
    ((alert,),) = [post["began"] for post in receiver.taken]
    assert (alert["dataflow"], alert["condition"]) == ("broken", "failed")
    assert "strandline validate" in alert["text"]


def test_a_broken_file_ends_no_trouble(watch: Watch, receiver: Receiver) -> None:
    watch.load(at=watch.now)
    watch.tick(3 * 3600)
    (watch.folder / "dataflows/orders.yaml").write_text("source: 7\n")
    watch.reload()
    watch.tick()
    told = [
        (what, each["condition"])
        for post in receiver.taken
        for what in ("began", "ended")
        for each in post[what]
    ]
    assert told == [("began", "stale"), ("began", "failed")]


def test_a_dataflow_whose_look_hangs_keeps_no_other_waiting_and_stays_as_it_was(
    watch: Watch, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    (watch.folder / "dataflows/hangs.yaml").write_text(FLOW)
    (watch.folder / "dataflows/zebra.yaml").write_text(FLOW)
    again = Event()
    watch.reload()
    answer = AlertScan.verdicts

    def found(scan: AlertScan, dataflow: Any) -> Any:
        if dataflow.name == "hangs":
            assert again.wait(60)
        return answer(scan, dataflow)

    monkeypatch.setattr(AlertScan, "verdicts", found)
    monkeypatch.setattr("resources.alerts.scan._DATAFLOW_SECONDS", 0.2)
    watch.run(StrandlineError("the source is away"), "zebra")
    assert watch.tick().startswith("3 dataflows checked: 1 began")
    assert [alert["dataflow"] for alert in receiver.taken[0]["began"]] == ["zebra"]
    again.set()


def test_a_dataflow_that_cannot_be_judged_keeps_nobody_from_being_told_of_the_others(
    watch: Watch, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    (watch.folder / "dataflows/odd.yaml").write_text(FLOW)
    watch.reload()
    answer = AlertScan.verdicts

    def found(scan: AlertScan, dataflow: Any) -> Any:
        if dataflow.name == "odd":
            raise RuntimeError("nobody has thought of this")
        return answer(scan, dataflow)

    monkeypatch.setattr(AlertScan, "verdicts", found)
    watch.run(StrandlineError("the source is away"))
    watch.tick()
    assert [alert["dataflow"] for alert in receiver.taken[0]["began"]] == ["orders"]


@pytest.mark.parametrize("error", [SourceError("no password"), RuntimeError("nobody has thought of this")])
def test_a_condition_that_cannot_be_judged_hides_no_other_and_stays_as_it_was(
    watch: Watch, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def gaps(*_: object) -> Alert:
        return Alert("orders", "gaps", "a gap")

    def fails(*_: object) -> None:
        raise error

    monkeypatch.setattr(AlertScan, "_gaps_alert", gaps)
    watch.tick()
    watch.tick()
    monkeypatch.setattr(AlertScan, "_gaps_alert", fails)
    watch.run(StrandlineError("the source is away"))
    assert "1 began, 0 ended, 2 reported and still open" in watch.tick()
    assert [[alert["condition"] for alert in sent["began"]] for sent in receiver.taken] == [
        ["gaps"],
        ["failed"],
    ]


def test_looks_that_do_not_count_yet_end_no_failure_of_a_run(watch: Watch, receiver: Receiver) -> None:
    def look() -> bool:
        raise SourceError("no password")

    watch.run(StrandlineError("the target is away"))
    watch.tick()
    for _ in range(3):
        with pytest.raises(SourceError):
            noted_look(watch.platform.log, "orders", look, bool)
        watch.tick()
    assert [(len(sent["began"]), len(sent["ended"])) for sent in receiver.taken] == [(1, 0)]


@pytest.mark.parametrize("undecided", [DataflowHeld("another run"), UpstreamNotLoaded("above")])
def test_a_run_that_was_held_or_skipped_ends_no_failure_and_begins_none(
    watch: Watch, receiver: Receiver, undecided: StrandlineError
) -> None:
    watch.run(undecided)
    watch.tick()
    assert receiver.taken == []
    watch.run(StrandlineError("the source is away"))
    watch.tick()
    watch.run(undecided)
    watch.tick()
    assert [(len(sent["began"]), len(sent["ended"])) for sent in receiver.taken] == [(1, 0)]


def test_a_state_that_cannot_be_read_at_two_scans_is_a_failure_until_it_can(
    watch: Watch, receiver: Receiver
) -> None:
    (watch.folder / "dataflows/visits.yaml").write_text(FLOW)
    watch.load(at=watch.now)
    watch.reload()
    state = watch.folder / ".strandline/state"
    state.rename(state.with_name("away"))
    state.write_text("a file, not a folder")
    watch.tick()
    assert receiver.taken == []
    watch.tick()
    (sent,) = receiver.taken
    assert [(alert["dataflow"], alert["condition"]) for alert in sent["began"]] == [
        ("orders", "failed"),
        ("visits", "failed"),
    ]
    assert sent["began"][0]["text"].startswith("its state cannot be read: watermark store ")
    state.unlink()
    state.with_name("away").rename(state)
    watch.tick()
    assert [ended["how"] for ended in receiver.taken[1]["ended"]] == ["well again", "well again"]


def test_a_thousand_failures_are_one_message_that_slack_takes(watch: Watch) -> None:
    began = tuple(Alert(f"flow_{number:04d}", "failed", "x" * 5000) for number in range(1000))
    ended = tuple(f"flow_{number:04d}:late" for number in range(1000))
    said = alert_message(AlertChanges(began, ended, {}), "hooks.slack.com", watch.project, datetime.now(UTC))[
        "text"
    ]
    assert len(said) < 40_000
    assert "and 980 more (shop): flow_0020 failed, flow_0021 failed" in said
    assert "removed from the project (shop): 1000: flow_0000 late, flow_0001 late" in said
    told = alert_message(AlertChanges(began, ended, {}), "elsewhere", watch.project, datetime.now(UTC))
    assert (len(told["began"]), len(told["ended"])) == (1000, 1000)
    assert len(json.dumps(told)) < 400_000
    cursor = AlertCursor({alert.key: REPORTED for alert in began})
    assert AlertCursor.read(cursor.write()) == cursor
    assert len(cursor.write()) < 25_000


def test_slack_takes_an_error_as_plain_text(watch: Watch) -> None:
    changes = AlertChanges((Alert("orders", "failed", "<!channel> a & b"),), (), {})
    said = alert_message(changes, "hooks.slack.com", watch.project, datetime.now(UTC))
    assert said == {"text": ":red_circle: *orders* (shop) failed: &lt;!channel&gt; a &amp; b"}


def test_slack_gets_slack_s_form(watch: Watch) -> None:
    changes = AlertChanges((Alert("orders", "failed", "why"),), ("orders:late",), {})
    said = alert_message(changes, "hooks.slack.com", watch.project, datetime.now(UTC))
    assert said == {
        "text": ":red_circle: *orders* (shop) failed: why\n:large_green_circle: *orders* (shop) late: well again"
    }


def test_a_removed_dataflow_is_not_told_as_well_again(watch: Watch, receiver: Receiver) -> None:
    watch.run(StrandlineError("the source is away"))
    watch.tick()
    (watch.folder / "dataflows/orders.yaml").unlink()
    watch.reload()
    watch.tick()
    assert receiver.taken[1]["ended"] == [
        {"dataflow": "orders", "condition": "failed", "how": "removed from the project"}
    ]


def test_a_project_without_alerts_has_no_such_sensor(tmp_path: Path) -> None:
    (tmp_path / "dataflows").mkdir()
    project: Project = load_project(tmp_path, environment={})
    assert alerts_sensor(project, build_platform(project), DagsterNames()) is None


def test_an_address_in_plain_text_is_refused_and_not_shown(tmp_path: Path) -> None:
    (tmp_path / "platform.yaml").write_text(
        "alerts: {webhook: 'https://hooks.slack.com/services/secretpath'}\n"
    )
    (error,) = load_project(tmp_path, environment={}).errors
    assert "{env: NAME}" in str(error)
    assert "secretpath" not in str(error)
