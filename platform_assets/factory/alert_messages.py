"""The message of an alert scan: in Slack's form for Slack, otherwise plain JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from partitions.alerts.alert import Alert, condition_of, dataflow_of
from partitions.alerts.changes import AlertChanges
from partitions.spelling import first_few
from platform_assets.project import Project

_TEXTS, _LONG, _SHORT = 20, 1000, 100
"""The most alerts with a long text in a message, the length of a long text, and that of a short one."""

_NAMED = 50
"""The most dataflows that a message names where it gives no texts."""

_WELL, _REMOVED = "well again", "removed from the project"
"""The two ways in which an alert ends."""


def alert_message(changes: AlertChanges, host: str, project: Project, now: datetime) -> dict[str, Any]:
    """Return the message to post to a host."""
    began = [(alert, project.hide(alert.text)) for alert in changes.began]
    existing = {*project.dataflows, *project.broken}
    endings = {key: _WELL if dataflow_of(key) in existing else _REMOVED for key in changes.ended}
    if host == "hooks.slack.com":
        return {"text": "\n".join(map(_escape_for_slack, _lines(project.folder.name, began, endings)))}
    ended = [
        {"dataflow": dataflow_of(key), "condition": condition_of(key), "how": how}
        for key, how in endings.items()
    ]
    return {
        "project": project.folder.name,
        "time": now.isoformat(),
        "began": [
            {"dataflow": alert.dataflow, "condition": alert.condition, "text": _shorten(text, number)}
            for number, (alert, text) in enumerate(began)
        ],
        "ended": ended,
    }


def _lines(project: str, began: Sequence[tuple[Alert, str]], endings: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of a message in Slack's form, which takes 40,000 characters."""
    for number, (alert, text) in enumerate(began[:_TEXTS]):
        yield f":red_circle: *{alert.dataflow}* ({project}) {alert.condition}: {_shorten(text, number)}"
    more = [f"{alert.dataflow} {alert.condition}" for alert, _ in began[_TEXTS:]]
    if more:
        yield f":red_circle: and {len(more)} more ({project}): {first_few(more, _NAMED)}"
    if len(endings) <= _TEXTS:
        yield from (
            f":large_green_circle: *{dataflow_of(key)}* ({project}) {condition_of(key)}: {how}"
            for key, how in endings.items()
        )
    else:
        for how_over in (_WELL, _REMOVED):
            keys = [key.replace(":", " ") for key, how in endings.items() if how == how_over]
            if keys:
                yield f":large_green_circle: {how_over} ({project}): {len(keys)}: {first_few(keys, _NAMED)}"


def _shorten(text: str, number: int) -> str:
    longest = _LONG if number < _TEXTS else _SHORT
    return text if len(text) <= longest else f"{text[:longest]} …"


def _escape_for_slack(line: str) -> str:
    """Escape the characters of Slack's markup: an error may hold `<!channel>`."""
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
