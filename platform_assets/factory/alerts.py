"""The sensor that tells people of dataflows that need them, by one message a scan at most (docs/how-to/alerts.md)."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Annotated

from dagster import (
    DefaultSensorStatus,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)
from pydantic import Field, TypeAdapter, ValidationError

from partitions.alerts.alert import condition_of, dataflow_of
from partitions.alerts.changes import TOLD, AlertChanges, compare
from partitions.alerts.conditions import broken_file_alert
from partitions.alerts.delivery import DeliveryState
from partitions.errors import StrandlineError, in_one_line
from partitions.plan import counted, lasting
from platform_assets.factory.alert_messages import message
from platform_assets.factory.sensors import Clock
from platform_assets.project import Project
from resources.alerts.last_loads import LastLoads
from resources.alerts.scan import AlertEvaluator, AlertScan
from resources.dagster.run_history import SuccessfulRuns
from resources.platform.platform import Platform

NAME = "strandline_alerts"

_INTERVAL = 60


@dataclass(frozen=True)
class AlertCursor:
    """What a scan leaves for the next one.

    Attributes:
        states: of alerts, by their keys.
        resume: the dataflow that the next scan begins with; "" is the first.
        delivery: how the last message went.
    """

    states: Mapping[str, str] = field(default_factory=dict)
    resume: str = ""
    delivery: DeliveryState = field(default_factory=DeliveryState)

    @classmethod
    def read(cls, text: str | None) -> AlertCursor:
        """Return the cursor of a text; an empty one if the text is none: what is wrong is then reported again."""
        try:
            stored = _STORED.validate_json(text or "{}")
        except ValidationError:
            return cls()
        states = {key: state for state, keys in stored.known.items() for key in keys}
        return cls(states, stored.resume, stored.posting)

    def write(self) -> str:
        """Return JSON text, with each state once: every tick keeps a copy."""
        keys: dict[str, list[str]] = {}
        for key, state in self.states.items():
            keys.setdefault(state, []).append(key)
        return json.dumps(asdict(_Stored(keys, self.resume, self.delivery)))


@dataclass(frozen=True)
class _Stored:
    """A cursor as Dagster keeps it, with the keys by state."""

    known: Mapping[str, Sequence[Annotated[str, Field(pattern="^[^:]+:[^:]+$")]]] = field(
        default_factory=dict
    )
    resume: str = ""
    posting: DeliveryState = field(default_factory=DeliveryState)


_STORED = TypeAdapter(_Stored)


def alerts_sensor(project: Project, platform: Platform, clock: Clock = time.time) -> SensorDefinition | None:
    """Return the sensor; None if the project has no ``alerts``.

    Args:
        project: loaded.
        platform: its resources.
        clock: epoch seconds.
    """
    settings = project.settings.alerts if project.valid_settings else None
    if settings is None:
        return None
    on, flows = settings.on, sorted(project.dataflows.values(), key=lambda flow: flow.name)
    evaluator, successful, loads = AlertEvaluator(), SuccessfulRuns(), LastLoads()
    tells_failures = "failed" in on

    @sensor(
        name=NAME,
        minimum_interval_seconds=_INTERVAL,
        default_status=DefaultSensorStatus.RUNNING,
        description=f"Tells of dataflows that need you, once, and once more when they are well again: {', '.join(on)}.",
    )
    def tick(context: SensorEvaluationContext) -> SensorResult:
        cursor, seconds = AlertCursor.read(context.cursor), clock()
        now = datetime.fromtimestamp(seconds, UTC)
        if tells_failures:
            successful.look(context.instance, project.dataflows)
        scan = AlertScan(platform, on, context.instance, now, successful, loads)
        result = evaluator.run(scan, flows, cursor.resume, context.log.warning)
        # Of a file with errors nothing else can be judged.
        broken = [
            broken_file_alert(name, list(map(str, of_file))) for name, of_file in project.broken.items()
        ]
        before = {key: state for key, state in cursor.states.items() if condition_of(key) in on}
        removed = set(map(dataflow_of, before)) - {*project.dataflows, *project.broken}
        alerts = [*(broken if tells_failures else ()), *result.alerts]
        changes = compare(before, alerts, result.judged | removed)
        states, delivery, problem = _deliver(project, changes, seconds, cursor.delivery)
        lines = [_summary(changes, states, result.count + len(broken))]
        if problem:
            lines.append(problem)
            context.log.warning(problem)
        after = AlertCursor(states, result.resume, delivery)
        return SensorResult(skip_reason=SkipReason("; ".join(lines)), cursor=after.write())

    return tick


def _deliver(
    project: Project, changes: AlertChanges, seconds: float, before: DeliveryState
) -> tuple[Mapping[str, str], DeliveryState, str]:
    """Post what has changed, if a message may be posted now.

    An address that is down, or takes messages too slowly to say so, must not get the same one each minute.

    Args:
        project: with the address.
        changes: of a scan.
        seconds: of the scan, epoch.
        before: how the last message went.

    Returns:
        the states of the alerts, how the last message went, and why people were not told, or "".
    """
    if not changes.any:
        return changes.reported, before, ""
    delivery, problem = before, "not told yet"
    if not before.rest(seconds):
        problem = _post(project, changes, seconds)
        delivery = before.after(seconds, taken=not problem)
    if not problem:
        return changes.reported, delivery, ""
    wait = lasting(delivery.rest(seconds))
    return changes.unreported, delivery, f"{problem}; the next message may be posted in {wait}"


def _post(project: Project, changes: AlertChanges, seconds: float) -> str:
    """Post a message at a time, epoch seconds; return why it was not taken, or ""."""
    try:
        webhook = project.webhook()
        webhook.post(message(changes, webhook.host, project, datetime.fromtimestamp(seconds, UTC)))
    except StrandlineError as error:
        return in_one_line(error.message)
    return ""


def _summary(changes: AlertChanges, states: Mapping[str, str], count: int) -> str:
    reported = sum(1 for state in states.values() if state == TOLD)
    return f"{counted(count, 'dataflow')} looked at: {len(changes.began)} began, {len(changes.ended)} ended, {reported} told and not over"
