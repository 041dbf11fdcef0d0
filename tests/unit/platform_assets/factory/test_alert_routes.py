"""Routes of alerts: which address gets what, and what becomes of the others if one of them is down."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from dagster import DagsterInstance, SensorResult, build_sensor_context

from partitions.alerts.delivery import PAUSE_BETWEEN_MESSAGES
from partitions.errors import StrandlineError
from platform_assets.factory.alerts import alerts_sensor
from platform_assets.platform import build_platform
from platform_assets.project import Project, load_project
from resources.dagster.names import DagsterNames
from resources.notes.last_run import note_attempt
from resources.outcome import Outcome
from tests.support.webhooks import Receiver, webhook_receiver

FLOW = """\
source: {type: files, path: ./landing, format: ndjson}
watermark: {type: path}
target: {load: append}
"""
ROUTES = """\
alerts:
  webhook: {env: REST}
  routes:
    - {tags: {tier: critical}, on: [failed], webhook: {env: PAGER}}
    - {owner: "team:sales", webhook: {env: SALES}}
    - {owner: ann@shop.example, webhook: {env: SALES}}
"""
OWNERS = {
    "orders": 'owners: ["team:sales"]\ntags: {tier: critical}\n',
    "visits": 'owners: ["team:web", "team:sales"]\n',
    "returns": "owners: [ann@shop.example]\n",
    "stock": "tags: {tier: low}\n",
}


class Routed:
    """A project of four dataflows with routes to three addresses."""

    def __init__(self, folder: Path, receivers: dict[str, Receiver]) -> None:
        (folder / "dataflows").mkdir(parents=True)
        (folder / "platform.yaml").write_text(ROUTES)
        for name, text in OWNERS.items():
            (folder / f"dataflows/{name}.yaml").write_text(FLOW + text)
        self.folder, self.receivers, self.now, self.cursor = folder, receivers, 1_700_000_000.0, ""
        self.dagster = DagsterInstance.ephemeral()

    def load(self) -> Project:
        urls = {name: receiver.url for name, receiver in self.receivers.items()}
        return load_project(self.folder, environment=urls)

    def run(self, *names: str, error: StrandlineError | None = None) -> None:
        for name in names:
            note_attempt(build_platform(self.load()).log, Outcome(name, "run", {}, 0, error=error))

    def look(self) -> dict[str, list[tuple[str, str]]]:
        """Look once, five minutes later; return what each address got: dataflow, and began or ended."""
        self.now += PAUSE_BETWEEN_MESSAGES
        before = {name: len(receiver.taken) for name, receiver in self.receivers.items()}
        project = self.load()
        sensor = alerts_sensor(project, build_platform(project), DagsterNames(), lambda: self.now)
        assert sensor is not None
        result = sensor(build_sensor_context(instance=self.dagster, cursor=self.cursor or None))
        assert isinstance(result, SensorResult)
        self.cursor = result.cursor or ""
        told = {
            name: [
                (alert["dataflow"], what)
                for message in receiver.taken[before[name] :]
                for what in ("began", "ended")
                for alert in message[what]
            ]
            for name, receiver in self.receivers.items()
        }
        return {name: sorted(alerts) for name, alerts in told.items() if alerts}


@pytest.fixture
def routed(tmp_path: Path) -> Iterator[Routed]:
    with ExitStack() as stack:
        receivers = {name: stack.enter_context(webhook_receiver()) for name in ("REST", "PAGER", "SALES")}
        yield Routed(tmp_path / "shop", receivers)


def test_the_first_route_that_takes_an_alert_gets_it_and_the_webhook_gets_the_rest(routed: Routed) -> None:
    assert routed.load().errors == []
    routed.run(*OWNERS, error=StrandlineError("the source is away"))
    assert routed.look() == {
        "PAGER": [("orders", "began")],
        "SALES": [("returns", "began"), ("visits", "began")],
        "REST": [("stock", "began")],
    }
    assert len(routed.receivers["SALES"].taken) == 1, "two routes to one address make one message"
    assert routed.look() == {}
    routed.run("orders", "stock")
    assert routed.look() == {"PAGER": [("orders", "ended")], "REST": [("stock", "ended")]}


def test_an_address_that_is_down_delays_no_other_and_gets_its_alerts_later(routed: Routed) -> None:
    routed.receivers["PAGER"].status = 500
    routed.run("orders", "visits", error=StrandlineError("the source is away"))
    assert routed.look() == {"SALES": [("visits", "began")]}
    routed.run("stock", error=StrandlineError("the source is away"))
    assert routed.look() == {"REST": [("stock", "began")]}
    routed.receivers["PAGER"].status = 200
    assert routed.look() == {"PAGER": [("orders", "began")]}
    assert routed.look() == {}


def test_a_file_with_errors_and_a_removed_one_are_told_at_the_webhook(routed: Routed) -> None:
    (routed.folder / "dataflows/visits.yaml").write_text(FLOW + 'owners: ["team:sales"]\nodd: 1\n')
    assert routed.look() == {"REST": [("visits", "began")]}
    (routed.folder / "dataflows/visits.yaml").unlink()
    assert routed.look() == {"REST": [("visits", "ended")]}


@pytest.mark.parametrize(
    ("route", "error"),
    [
        (
            '{owner: "team:sale", webhook: {env: A}}',
            (
                "alerts.routes.0.owner: found team:sale, expected an owner of a dataflow (ann@shop.example, team:sales, "
                "team:web) (did you mean team:sales?)"
            ),
        ),
        (
            "{tags: {tier: top}, webhook: {env: A}}",
            "alerts.routes.0.tags.tier: found tier: top, expected a tag of a dataflow (tier: critical, tier: low)",
        ),
        (
            "{webhook: {env: A}}",
            "found none of them, expected owner, tags or on (alerts.webhook takes all other alerts)",
        ),
        (
            "{on: [late], webhook: {env: A}}",
            "found late, expected each condition of a route among those of alerts.on (failed)",
        ),
        (
            '{owner: "team:sales", webhook: "http://x"}',
            "alerts.routes.0.webhook: found a secret in plain text",
        ),
        ('{owner: "team:sales"}', "alerts.routes.0.webhook: found nothing, expected text or {env: NAME}"),
    ],
)
def test_a_route_that_takes_nothing_or_goes_nowhere_is_refused(
    routed: Routed, route: str, error: str
) -> None:
    settings = f"alerts:\n  webhook: {{env: REST}}\n  routes:\n    - {route}\n  on: [failed]\n"
    (routed.folder / "platform.yaml").write_text(settings)
    assert [error for line in routed.load().errors if error in str(line)] == [error], routed.load().errors


def test_an_owner_is_not_refused_while_a_file_cannot_be_read(routed: Routed) -> None:
    (routed.folder / "dataflows/returns.yaml").write_text("source: [\n")
    assert [error.file for error in routed.load().errors] == ["dataflows/returns.yaml"]
