"""The alerts sensor: at most one message a scan about dataflows that need people."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Annotated, cast

from dagster import (
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)
from pydantic import Field, TypeAdapter, ValidationError

from partitions.alerts.alert import Condition, condition_of, dataflow_of
from partitions.alerts.changes import REPORTED, AlertChanges, compare_alerts
from partitions.alerts.conditions import broken_file_alert
from partitions.alerts.delivery import DeliveryState
from partitions.errors import StrandlineError, shorten_to_line
from partitions.plan import format_duration, pluralize
from platform_assets.factory.alert_messages import alert_message
from platform_assets.factory.default_status import default_sensor_status
from platform_assets.factory.ticks import Clock
from platform_assets.project import Project
from platform_assets.project.alert_settings import AlertSettings
from platform_assets.project.references import Reference
from resources.alerts.last_loads import LastLoads
from resources.alerts.scan import AlertScan, AlertScanner
from resources.dagster.names import DagsterNames
from resources.dagster.run_history import SuccessfulRuns
from resources.platform.platform import Platform

_INTERVAL = 60

_Receiver = str | Reference
"""The address of a webhook, or the variable that holds it."""


@dataclass(frozen=True)
class AlertCursor:
    """The state that a scan leaves for the next one.

    Attributes:
        states: the states of alerts by their keys.
        resume: the dataflow that the next scan begins with; "" is the first.
        delivery: the outcome of the last message to ``alerts.webhook``.
        route_deliveries: the outcome of the last message to each other address, by its reference.
    """

    states: Mapping[str, str] = field(default_factory=dict)
    resume: str = ""
    delivery: DeliveryState = field(default_factory=DeliveryState)
    route_deliveries: Mapping[str, DeliveryState] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str | None) -> AlertCursor:
        """Return the cursor in a text; an empty one if it cannot be read, so that all alerts are sent again."""
        try:
            stored = _STORED.validate_json(text or "{}")
        except ValidationError:
            return cls()
        states = {key: state for state, keys in stored.keys_by_state.items() for key in keys}
        return cls(states, stored.resume, stored.delivery, stored.route_deliveries)

    def write(self) -> str:
        """Return JSON text with each state once: Dagster keeps a copy for every tick."""
        keys: dict[str, list[str]] = {}
        for key, state in self.states.items():
            keys.setdefault(state, []).append(key)
        stored = _StoredCursor(keys, self.resume, self.delivery, self.route_deliveries)
        return json.dumps(_STORED.dump_python(stored, mode="json", by_alias=True))


_Key = Annotated[str, Field(pattern="^[^:]+:[^:]+$")]
"""``dataflow:condition``."""


@dataclass(frozen=True)
class _StoredCursor:
    """A cursor in the form that Dagster stores, with the keys grouped by state."""

    keys_by_state: Annotated[Mapping[str, Sequence[_Key]], Field(alias="known")] = field(default_factory=dict)
    resume: str = ""
    delivery: Annotated[DeliveryState, Field(alias="posting")] = field(default_factory=DeliveryState)
    route_deliveries: Annotated[Mapping[str, DeliveryState], Field(alias="routes")] = field(
        default_factory=dict
    )


_STORED = TypeAdapter(_StoredCursor)


def alerts_sensor(
    project: Project, platform: Platform, names: DagsterNames, clock: Clock = time.time
) -> SensorDefinition | None:
    """Return the alerts sensor; None if the project has no ``alerts``, or its settings have errors.

    Args:
        project: a loaded project.
        platform: its resources.
        names: its names in Dagster.
        clock: returns epoch seconds.
    """
    settings = project.settings.alerts if project.valid_settings else None
    if settings is None:
        return None
    conditions, flows = settings.on, sorted(project.dataflows.values(), key=lambda flow: flow.name)
    scanner, successful, loads = AlertScanner(), SuccessfulRuns(names.tags), LastLoads()
    reports_failures = "failed" in conditions

    @sensor(
        name=names.shared("alerts"),
        minimum_interval_seconds=_INTERVAL,
        default_status=default_sensor_status(),
        description=f"Sends one message when a dataflow needs you, and one when the problem ends: {', '.join(conditions)}.",
    )
    def tick(context: SensorEvaluationContext) -> SensorResult:
        cursor, seconds = AlertCursor.read(context.cursor), clock()
        now = datetime.fromtimestamp(seconds, UTC)
        if reports_failures:
            successful.drop_changed(context.instance, project.dataflows)
        evaluation = AlertScan(platform, conditions, context.instance, now, settings.after, successful, loads)
        result = scanner.scan(evaluation, flows, cursor.resume, context.log.warning)
        # A file with errors has no definition to evaluate further.
        broken = [
            broken_file_alert(name, list(map(str, file_errors)))
            for name, file_errors in project.broken.items()
        ]
        previous_states = {
            key: state for key, state in cursor.states.items() if condition_of(key) in conditions
        }
        names = {*project.dataflows, *project.broken}
        removed = {key for key in previous_states if dataflow_of(key) not in names}
        alerts = [*(broken if reports_failures else ()), *result.alerts]
        changes = compare_alerts(previous_states, alerts, result.judged | removed)
        states, deliveries, problems = _deliver_all(project, settings, changes, seconds, cursor)
        lines = [_summary(changes, states, result.count + len(broken)), *problems]
        for problem in problems:
            context.log.warning(problem)
        main, *routes = deliveries.items()
        new_cursor = AlertCursor(
            states, result.next_dataflow, main[1], {repr(receiver): delivery for receiver, delivery in routes}
        )
        return SensorResult(skip_reason=SkipReason("; ".join(lines)), cursor=new_cursor.write())

    return tick


def _deliver_all(
    project: Project, settings: AlertSettings, changes: AlertChanges, seconds: float, cursor: AlertCursor
) -> tuple[Mapping[str, str], Mapping[_Receiver, DeliveryState], Sequence[str]]:
    """Post to each receiver its changes, all at the same time: Dagster ends a tick after a minute.

    Args:
        project: the project with the addresses.
        settings: the receivers and their routes.
        changes: the changes of a scan.
        seconds: the time of the scan, epoch seconds.
        cursor: the outcome of the last messages.

    Returns:
        the states of the alerts, the outcome of the last message to each receiver, that of
        ``alerts.webhook`` first, and why messages were not sent.
    """
    deliveries: dict[_Receiver, DeliveryState] = {
        receiver: cursor.route_deliveries.get(repr(receiver), DeliveryState())
        for receiver in settings.receivers
    }
    deliveries[settings.webhook] = cursor.delivery

    def receiver_of(key: str) -> _Receiver:
        # The key is an alert's, so its last part is a condition.
        condition = cast("Condition", condition_of(key))
        return settings.receiver(condition, project.dataflows.get(dataflow_of(key)))

    parts = changes.by_receiver(receiver_of)
    states, problems = dict(changes.reported), list[str]()
    with ThreadPoolExecutor(max(1, len(parts))) as threads:
        results = {
            receiver: threads.submit(_deliver, project, receiver, part, seconds, deliveries[receiver])
            for receiver, part in parts.items()
        }
    for receiver, result in results.items():
        deliveries[receiver], problem = result.result()
        if problem:
            states |= parts[receiver].unreported
            problems.append(problem)
    return states, deliveries, problems


def _deliver(
    project: Project, receiver: _Receiver, changes: AlertChanges, seconds: float, last_delivery: DeliveryState
) -> tuple[DeliveryState, str]:
    """Post changes to one receiver if a message may be posted now.

    An address that is down, or accepts messages too slowly to answer, must not get the same message each
    minute.

    Returns:
        the outcome of the last message, and why nothing was sent, or "".
    """
    delivery, problem = last_delivery, "not sent yet"
    if not last_delivery.remaining_pause(seconds):
        problem = _post(project, receiver, changes, seconds)
        delivery = last_delivery.after(seconds, is_accepted=not problem)
    if not problem:
        return delivery, ""
    wait = format_duration(delivery.remaining_pause(seconds))
    return delivery, f"{problem}; the next message may be posted in {wait}"


def _post(project: Project, receiver: _Receiver, changes: AlertChanges, seconds: float) -> str:
    """Post a message; return why it was not accepted, or "". ``seconds`` are epoch seconds."""
    try:
        webhook = project.webhook(receiver)
        webhook.post(alert_message(changes, webhook.host, project, datetime.fromtimestamp(seconds, UTC)))
    except StrandlineError as error:
        return shorten_to_line(error.message)
    return ""


def _summary(changes: AlertChanges, states: Mapping[str, str], count: int) -> str:
    reported = sum(1 for state in states.values() if state == REPORTED)
    return f"{pluralize(count, 'dataflow')} checked: {len(changes.began)} began, {len(changes.ended)} ended, {reported} reported and still open"
