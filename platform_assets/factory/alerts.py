"""The sensor that tells people of dataflows that need them, by one message a look at most (docs/alerts.md)."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Annotated, Any

from dagster import (
    DagsterInstance,
    DefaultSensorStatus,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)
from pydantic import Field, TypeAdapter, ValidationError

from partitions.alerts import TOLD, Alert, Condition, News, Posting, compare, condition_of, dataflow_of
from partitions.dataflow import LATE_POLICIES, Dataflow
from partitions.errors import StrandlineError, in_one_line
from partitions.instants import as_datetime, time_in_words
from partitions.plan import counted, lasting
from partitions.window.work_unit import words
from platform_assets.factory.kinds import definitions_of
from platform_assets.factory.kinds.contract import HasPartitions
from platform_assets.factory.sensors import Clock
from platform_assets.kinds import profile_of
from platform_assets.kinds.profile import FindsLateFiles
from platform_assets.project import Project
from resources.background import in_background
from resources.dagster.run_history import RunHistory, SuccessfulRuns
from resources.kinds.window.unit_ledger import unit_ledger
from resources.platform.platform import Platform
from resources.watermarks.entry import LOADS, Entry
from resources.watermarks.log import WatermarkLog

NAME = "strandline_alerts"

_INTERVAL = 60
_BUDGET, _PATIENCE = 25.0, 15.0
"""Seconds of a look, and of one dataflow that does not answer; the next look goes on where this one stopped. Dagster ends a tick after 60."""

_TEXTS, _LONG, _SHORT = 20, 1000, 100
"""Troubles that a message tells at length, and the characters of those, and of the others."""

_NAMED = 50
"""Dataflows that a text for people names of those that it tells no more of."""

_BAD = ("failed", "blocked", "died")

_WELL, _REMOVED = "well again", "removed from the project"
"""How a trouble is over."""


class LastLoads:
    """When something was loaded last, by dataflow: from look to look only new entries are read."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, str | None]] = {}

    def time(self, log: WatermarkLog, dataflow: str) -> str | None:
        """Return the time of the newest entry that loaded something, or, if none is kept any more, of the oldest entry; None if nothing was ever loaded."""
        read: list[Entry] = []
        seen, time = self._known.get(dataflow, ("", None))
        for entry in log.history(dataflow):
            if entry.id == seen:
                break
            read.append(entry)
            if entry.why in LOADS:
                time = entry.time
                break
        else:
            time = read[-1].time if read and read[-1].previous else None
        if read:
            self._known[dataflow] = read[0].id, time
        return time


@dataclass(frozen=True)
class Look:
    """One look at the dataflows of a project.

    Attributes:
        platform: the resources.
        on: what people are told of.
        instance: Dagster's, which knows runs that died.
        now: of the look.
        well: what looks before have told of Dagster's runs.
        loads: what looks before have told of loads.
    """

    platform: Platform
    on: Sequence[Condition]
    instance: DagsterInstance
    now: datetime
    well: SuccessfulRuns = field(default_factory=SuccessfulRuns)
    loads: LastLoads = field(default_factory=LastLoads)

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

    def broken(self, project: Project) -> list[Alert]:
        """Return the dataflows whose files have errors: nothing runs them, so no run fails."""
        if "failed" not in self.on:
            return []
        errors = {name: "; ".join(map(str, of_file)) for name, of_file in project.broken.items()}
        return [
            Alert(name, "failed", f"its file has errors: {text}\n  strandline validate")
            for name, text in errors.items()
        ]

    def _failed(self, dataflow: Dataflow, entry: Entry | None) -> str | None:
        attempt = RunHistory(self.platform.log, self.instance, self.well).last_ended(dataflow.name, entry)
        if attempt is None or attempt.status not in _BAD:
            return None
        error = attempt.error or {}
        ways_on = error.get("choices") or [f"strandline run {dataflow.name}"]
        choices = "".join(f"\n  {choice}" for choice in ways_on)
        since = time_in_words(attempt.failing_since or attempt.time)
        how = "" if attempt.status == "failed" else f"{attempt.status} "
        return f"{how}since {since}: {error.get('message', 'see its run')}{choices}"

    def _late(self, dataflow: Dataflow, entry: Entry | None) -> str | None:
        profile = profile_of(dataflow)
        if not isinstance(profile, FindsLateFiles) or dataflow.late_files == "ignore":
            return None
        late = profile.late_files(self.platform.log, dataflow, entry, self.now)
        if not late.count:
            return None
        names, more = ", ".join(late.first(3)), "such as " if late.count > 3 else ""
        return f"{counted(late.count, 'late file')}, {more}{names}: {LATE_POLICIES[dataflow.late_files]}\n  strandline late {dataflow.name}"

    def _gaps(self, dataflow: Dataflow, entry: Entry | None) -> str | None:
        if entry is None or not isinstance(definitions_of(dataflow), HasPartitions):
            return None
        ledger = unit_ledger(self.platform, dataflow, self.now)
        gaps = ledger.missing
        if not gaps:
            return None
        unit, first = gaps[0]
        start, end = (as_datetime(ms, ledger.zone).isoformat() for ms in (first.start, first.end))
        of_unit = f"{words(unit.unit)}, " if words(unit.unit) else ""
        return f"{counted(len(gaps), 'gap')} in its ledger, the first: {of_unit}{start} to {end}: {first.why}\n  strandline ledger {dataflow.name}"

    def _stale(self, dataflow: Dataflow, _: Entry | None) -> str | None:
        """By the dataflow's ``freshness``: how long ago something was loaded, whether or not there was anything to load."""
        if dataflow.freshness is None:
            return None
        loaded, limit = self.loads.time(self.platform.log, dataflow.name), dataflow.freshness.fail
        if loaded is None or self.now - datetime.fromisoformat(loaded) <= limit:
            return None
        return (
            f"nothing was loaded since {time_in_words(loaded)}, for longer than {lasting(limit.total_seconds())} (freshness: fail)"
            f"\n  strandline plan {dataflow.name}"
        )


class Judge:
    """Looks at one dataflow after another, each in a thread of its own: one that does not answer must not keep all others waiting."""

    def __init__(self) -> None:
        self._waits: dict[str, Future[list[Alert]]] = {}

    def found(self, look: Look, dataflow: Dataflow, say: Callable[[str], None]) -> list[Alert] | None:
        """Return what is wrong with a dataflow; None if that cannot be said now, and ``say`` gets what no source has said."""
        if (before := self._waits.get(dataflow.name)) is not None and not before.done():
            return None
        answer = in_background(lambda: list(look.found(dataflow)), f"strandline-alerts-{dataflow.name}")
        wait([answer], _PATIENCE)
        if not answer.done():
            self._waits[dataflow.name] = answer
            return None
        try:
            return answer.result()
        except StrandlineError:
            return None
        except Exception as error:  # noqa: BLE001 - of one dataflow: people are told of the others
            say(f"{dataflow.name} cannot be judged: {type(error).__name__}: {in_one_line(str(error))}")
            return None


@dataclass(frozen=True)
class Cursor:
    """What a look leaves for the next one.

    Attributes:
        known: by key, what is known of an alert.
        resume: the dataflow that the next look begins with; "" is the first.
        posting: how the last message went.
    """

    known: Mapping[str, str] = field(default_factory=dict)
    resume: str = ""
    posting: Posting = field(default_factory=Posting)

    @classmethod
    def read(cls, text: str | None) -> Cursor:
        """Return the cursor of a text; an empty one if the text is none: what is wrong is then told again."""
        try:
            stored = _STORED.validate_json(text or "{}")
        except ValidationError:
            return cls()
        known = {key: state for state, keys in stored.known.items() for key in keys}
        return cls(known, stored.resume, stored.posting)

    def write(self) -> str:
        """Return JSON text, with each state once: every tick keeps a copy."""
        known: dict[str, list[str]] = {}
        for key, state in self.known.items():
            known.setdefault(state, []).append(key)
        return json.dumps(asdict(_Stored(known, self.resume, self.posting)))


@dataclass(frozen=True)
class _Stored:
    """A cursor as Dagster keeps it, with the keys by state."""

    known: Mapping[str, Sequence[Annotated[str, Field(pattern="^[^:]+:[^:]+$")]]] = field(
        default_factory=dict
    )
    resume: str = ""
    posting: Posting = field(default_factory=Posting)


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
    judge, well, loads = Judge(), SuccessfulRuns(), LastLoads()

    @sensor(
        name=NAME,
        minimum_interval_seconds=_INTERVAL,
        default_status=DefaultSensorStatus.RUNNING,
        description=f"Tells of dataflows that need you, once, and once more when they are well again: {', '.join(on)}.",
    )
    def tick(context: SensorEvaluationContext) -> SensorResult:
        cursor, seconds = Cursor.read(context.cursor), clock()
        begun, now = time.monotonic(), datetime.fromtimestamp(seconds, UTC)
        if "failed" in on:
            well.look(context.instance, project.dataflows)
        look = Look(platform, on, context.instance, now, well, loads)
        before = {key: state for key, state in cursor.known.items() if condition_of(key) in on}
        found, judged = look.broken(project), set[str]()  # of a file with errors nothing else can be judged
        left = [flow for flow in flows if flow.name >= cursor.resume]
        looked_at = len(left) + len(project.broken)
        while left and time.monotonic() - begun < _BUDGET:
            flow = left.pop(0)
            alerts = judge.found(look, flow, context.log.warning)
            if alerts is not None:  # what cannot be judged now stays as it is known
                found += alerts
                judged.add(flow.name)
        gone = set(map(dataflow_of, before)) - {*project.dataflows, *project.broken}
        news = compare(before, found, judged | gone)
        posting, told, why = cursor.posting, False, "not told yet"
        if news.any and not posting.rest(seconds):
            posting, why = _post(project, news, seconds, posting)
            told = not why
        known = news.known if told or not news.any else news.untold
        said = [_said(news, known, looked_at - len(left))]
        if news.any and not told:
            said.append(f"{why}; the next message may be posted in {lasting(posting.rest(seconds))}")
            context.log.warning(said[-1])
        after = Cursor(known, left[0].name if left else "", posting)
        return SensorResult(skip_reason=SkipReason("; ".join(said)), cursor=after.write())

    return tick


def _post(project: Project, news: News, now: float, before: Posting) -> tuple[Posting, str]:
    """Post a message at a time, epoch seconds; return how that went, and why it was not taken, or "".

    An address that is down, or takes messages too slowly to say so, must not get the same one each minute.
    """
    try:
        webhook = project.webhook()
        webhook.post(message(news, webhook.host, project, datetime.fromtimestamp(now, UTC)))
    except StrandlineError as error:
        return Posting(now, before.refused + 1), in_one_line(error.message)
    return Posting(now), ""


def message(news: News, host: str, project: Project, now: datetime) -> dict[str, Any]:
    """Return what is posted: Slack's form to Slack, else plain JSON (docs/alerts.md)."""
    began = [(alert, project.hide(alert.text)) for alert in news.began]
    here = {*project.dataflows, *project.broken}
    over = {key: _WELL if dataflow_of(key) in here else _REMOVED for key in news.ended}
    if host == "hooks.slack.com":
        return {"text": "\n".join(map(_for_slack, _lines(project.folder.name, began, over)))}
    ended = [
        {"dataflow": dataflow_of(key), "condition": condition_of(key), "how": how}
        for key, how in over.items()
    ]
    return {
        "project": project.folder.name,
        "time": now.isoformat(),
        "began": [
            {"dataflow": alert.dataflow, "condition": alert.condition, "text": _cut(text, number)}
            for number, (alert, text) in enumerate(began)
        ],
        "ended": ended,
    }


def _lines(project: str, began: Sequence[tuple[Alert, str]], over: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a message for people, in Slack's form: it takes 40,000 characters."""
    for number, (alert, text) in enumerate(began[:_TEXTS]):
        yield f":red_circle: *{alert.dataflow}* ({project}) {alert.condition}: {_cut(text, number)}"
    more = [f"{alert.dataflow} {alert.condition}" for alert, _ in began[_TEXTS:]]
    if more:
        yield f":red_circle: and {len(more)} more ({project}): {_some(more)}"
    if len(over) <= _TEXTS:
        yield from (
            f":large_green_circle: *{dataflow_of(key)}* ({project}) {condition_of(key)}: {how}"
            for key, how in over.items()
        )
    else:
        for said in (_WELL, _REMOVED):
            keys = [key.replace(":", " ") for key, how in over.items() if how == said]
            if keys:
                yield f":large_green_circle: {said} ({project}): {len(keys)}: {_some(keys)}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _cut(text: str, number: int) -> str:
    most = _LONG if number < _TEXTS else _SHORT
    return text if len(text) <= most else f"{text[:most]} …"


def _for_slack(line: str) -> str:
    """Escape what Slack reads as more than text: an error may hold `<!channel>`."""
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _said(news: News, known: Mapping[str, str], judged: int) -> str:
    told = sum(1 for state in known.values() if state == TOLD)
    return f"{counted(judged, 'dataflow')} looked at: {len(news.began)} began, {len(news.ended)} ended, {told} told and not over"
