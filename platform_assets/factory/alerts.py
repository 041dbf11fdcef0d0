"""The sensor that tells people of dataflows that need them, by one message a look at most (docs/alerts.md)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from dagster import (
    DagsterInstance,
    DefaultSensorStatus,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from partitions.alerts import TOLD, Alert, Condition, News, compare, dataflow_of
from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.plan import counted
from partitions.window.ledger import GROWS
from platform_assets.cli.attempts import Attempts
from platform_assets.factory.sensors import Clock
from platform_assets.kinds import profile_of
from platform_assets.kinds.definitions import HasPartitions
from platform_assets.kinds.profile import FindsLateFiles
from platform_assets.project import Project
from resources.platform import Platform
from resources.watermarks.entry import LOADS, Entry

NAME = "strandline_alerts"

_INTERVAL = 60
_BUDGET = 40.0
"""Seconds of a look; the next one goes on where this one stopped. Dagster ends a tick after 60."""

_FAR = 100
"""The most entries to read in search of the newest that loaded something."""

_BAD = ("failed", "blocked", "died")


@dataclass(frozen=True)
class Look:
    """One look at the dataflows of a project.

    Attributes:
        platform: the resources.
        on: what people are told of.
        instance: Dagster's, which knows runs that died.
        now: of the look.
    """

    platform: Platform
    on: Sequence[Condition]
    instance: DagsterInstance
    now: datetime

    def found(self, dataflow: Dataflow) -> Iterator[Alert]:
        """Yield what is wrong with a dataflow.

        Raises:
            StrandlineError: if its log, or what else must be asked, does not answer.
        """
        entry = self.platform.log.newest(dataflow.name)
        judges: Mapping[Condition, Callable[[Dataflow, Entry | None], str | None]] = {
            "failed": self._failed,
            "late": self._late,
            "gaps": self._gaps,
            "stale": self._stale,
        }
        for condition in self.on:
            text = judges[condition](dataflow, entry)
            if text is not None:
                yield Alert(dataflow.name, condition, text)

    def _failed(self, dataflow: Dataflow, entry: Entry | None) -> str | None:
        attempt = Attempts(self.platform.log, self.instance).last(dataflow.name, entry)
        if attempt is None or attempt.status not in _BAD:
            return None
        error = attempt.error or {}
        choices = "".join(f"\n  {choice}" for choice in error.get("choices", ()))
        since = attempt.failing_since or attempt.time
        return f"{attempt.status} since {since}: {error.get('message', 'see its run')}{choices}"

    def _late(self, dataflow: Dataflow, entry: Entry | None) -> str | None:
        profile = profile_of(dataflow)
        if not isinstance(profile, FindsLateFiles) or dataflow.late_files == "ignore":
            return None
        late = profile.late_files(self.platform.log, dataflow, entry, self.now)
        if not late.count:
            return None
        return f"{counted(late.count, 'late file')}, such as {', '.join(late.first(3))} (late_files: {dataflow.late_files})"

    def _gaps(self, dataflow: Dataflow, entry: Entry | None) -> str | None:
        if entry is None or not isinstance(profile_of(dataflow).definitions(), HasPartitions):
            return None
        gaps = [
            gap
            for unit in self.platform.ledger(dataflow, self.now).units
            for gap in unit.gaps
            if gap.why != GROWS
        ]
        if not gaps:
            return None
        return f"{counted(len(gaps), 'gap')} in its ledger, the first: {gaps[0].why}\n  strandline ledger {dataflow.name}"

    def _stale(self, dataflow: Dataflow, _: Entry | None) -> str | None:
        """By the dataflow's ``freshness``: how long ago something was loaded, whether or not there was anything to load."""
        if dataflow.freshness is None:
            return None
        history = self.platform.log.history(dataflow.name, _FAR)
        loaded = next((entry for entry in history if entry.why in LOADS), None)
        if loaded is None or self.now - datetime.fromisoformat(loaded.time) <= dataflow.freshness.fail:
            return None
        return f"nothing was loaded since {loaded.time}\n  strandline plan {dataflow.name}"


@dataclass(frozen=True)
class Cursor:
    """What a look leaves for the next one.

    Attributes:
        known: by key, what is known of an alert.
        resume: the dataflow that the next look begins with; "" is the first.
    """

    known: Mapping[str, str] = field(default_factory=dict)
    resume: str = ""

    @classmethod
    def read(cls, text: str | None) -> Cursor:
        """Return the cursor of a text; an empty one if it does not parse: what is wrong is then told again."""
        try:
            return cls(**json.loads(text or "{}"))
        except (ValueError, TypeError):
            return cls()

    def write(self) -> str:
        """Return JSON text."""
        return json.dumps({"known": self.known, "resume": self.resume})


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

    @sensor(
        name=NAME,
        minimum_interval_seconds=_INTERVAL,
        default_status=DefaultSensorStatus.RUNNING,
        description=f"Tells of dataflows that need you, once, and once more when they are well again: {', '.join(on)}.",
    )
    def tick(context: SensorEvaluationContext) -> SensorResult:
        cursor, now = Cursor.read(context.cursor), datetime.fromtimestamp(clock(), UTC)
        begun = time.monotonic()
        look, found, judged = Look(platform, on, context.instance, now), list[Alert](), list[str]()
        left = [flow for flow in flows if flow.name >= cursor.resume]
        while left and time.monotonic() - begun < _BUDGET:
            flow = left.pop(0)
            with suppress(StrandlineError):  # what cannot be judged now stays as it is known
                found += look.found(flow)
                judged.append(flow.name)
        gone = set(map(dataflow_of, cursor.known)) - {*project.dataflows, *project.broken}
        found = [alert for alert in found if alert.dataflow in judged]
        news = compare(cursor.known, found, {*judged, *gone})
        if news.any:
            webhook = project.webhook()
            webhook.post(message(news, webhook.host, project, now))
        after = Cursor(news.known, left[0].name if left else "")
        return SensorResult(skip_reason=SkipReason(_said(news, len(judged))), cursor=after.write())

    return tick


def message(news: News, host: str, project: Project, now: datetime) -> dict[str, Any]:
    """Return what is posted: Slack's form to Slack, else plain JSON (docs/alerts.md)."""
    began = [(alert, project.hide(alert.text)) for alert in news.began]
    if host == "hooks.slack.com":
        lines = [f":red_circle: *{alert.dataflow}* {alert.condition}: {text}" for alert, text in began]
        lines += [f":large_green_circle: *{key.replace(':', '* ')}: well again" for key in news.ended]
        return {"text": "\n".join(lines)}
    ended = [dict(zip(("dataflow", "condition"), key.split(":"), strict=True)) for key in news.ended]
    return {
        "project": project.folder.name,
        "time": now.isoformat(),
        "began": [
            {"dataflow": alert.dataflow, "condition": alert.condition, "text": text} for alert, text in began
        ],
        "ended": ended,
    }


def _said(news: News, judged: int) -> str:
    told = sum(1 for state in news.known.values() if state == TOLD)
    return f"{counted(judged, 'dataflow')} looked at: {len(news.began)} began, {len(news.ended)} ended, {told} told and not over"
