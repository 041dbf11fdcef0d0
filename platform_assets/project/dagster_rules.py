"""Check that Dagster takes a dataflow's owners, tags, schedule and freshness."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from partitions.dataflow import Dataflow
from platform_assets.project.checked_file import Checked
from platform_assets.project.cron import is_cron

# Dagster refuses these while it loads definitions, and then loads none. Refused here, they break only one file.
_OWNER = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z|]{2,7}|team:.+", re.DOTALL)


_TAG = re.compile(r"([A-Za-z0-9_.-]{1,63}/|dagster/kind/)?[A-Za-z0-9_.-]{1,63}")


_TAG_VALUE = re.compile(r"[A-Za-z0-9_.-]{0,63}")


_SHORTEST = timedelta(minutes=1)


def check_dagster_rules(flow: Checked[Dataflow]) -> None:
    """Add an error for each owner, tag, schedule or freshness that Dagster would refuse."""
    for index, owner in enumerate(_texts(flow.value.get("owners"))):
        if not _OWNER.fullmatch(owner):
            flow.refuse(
                ("owners", index), flow.written_text("owners", index), "an e-mail address or team:NAME"
            )
    tags = flow.value.get("tags")
    for name, value in tags.items() if isinstance(tags, dict) else ():
        if not _TAG.fullmatch(name) or not _TAG_VALUE.fullmatch(str(value)):
            expected = "up to 63 of the letters A-Z and a-z, digits, _ . and - on either side"
            flow.refuse(("tags", name), f"the tag {name}: {flow.written_text('tags', name)}", expected)
    schedule = flow.value.get("schedule")
    if isinstance(schedule, str) and schedule and not is_cron(schedule):
        expected = 'a cron expression of five fields (minute, hour, day, month, weekday) with a time that occurs, such as "0 6 * * *" or "*/15 * * * *"; or a shorthand such as @daily'
        flow.refuse(("schedule",), flow.written_text("schedule"), expected)
    freshness = flow.model.freshness if flow.model else None
    if freshness and min(freshness.fail, freshness.warn or freshness.fail) < _SHORTEST:
        flow.refuse(("freshness",), "less than a minute", "durations of at least PT1M")
    if freshness and freshness.warn and freshness.warn >= freshness.fail:
        flow.refuse(
            ("freshness", "warn"),
            flow.written_text("freshness", "warn"),
            f"less than fail, {flow.written_text('freshness', 'fail')}",
        )


def _texts(value: Any) -> list[str]:
    return [item if isinstance(item, str) else "" for item in value] if isinstance(value, list) else []
