"""The message of a scan: Slack's form to Slack, else plain JSON (docs/how-to/alerts.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from partitions.alerts.alert import Alert, condition_of, dataflow_of
from partitions.alerts.changes import AlertChanges
from platform_assets.project import Project

_TEXTS, _LONG, _SHORT = 20, 1000, 100
"""Alerts that a message tells at length, and the characters of those, and of the others."""

_NAMED = 50
"""Dataflows that a text for people names of those that it tells no more of."""

_WELL, _REMOVED = "well again", "removed from the project"
"""How an alert is over."""


def message(changes: AlertChanges, host: str, project: Project, now: datetime) -> dict[str, Any]:
    """Return what is posted to a host."""
    began = [(alert, project.hide(alert.text)) for alert in changes.began]
    existing = {*project.dataflows, *project.broken}
    over = {key: _WELL if dataflow_of(key) in existing else _REMOVED for key in changes.ended}
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
        for how_over in (_WELL, _REMOVED):
            keys = [key.replace(":", " ") for key, how in over.items() if how == how_over]
            if keys:
                yield f":large_green_circle: {how_over} ({project}): {len(keys)}: {_some(keys)}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _cut(text: str, number: int) -> str:
    most = _LONG if number < _TEXTS else _SHORT
    return text if len(text) <= most else f"{text[:most]} …"


def _for_slack(line: str) -> str:
    """Escape what Slack reads as more than text: an error may hold `<!channel>`."""
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
