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


_SET_BY_OTHERS = (
    ".dagster/",
    "strandline/",
    "dagster/partition",
    "dagster/asset_partition",
    "dagster/backfill",
    "dagster/sensor_name",
    "dagster/schedule_name",
    "dagster/run_key",
)

_OF_LAUNCHERS = ("dagster-k8s/", "dagster-celery/", "dagster-docker/", "dagster-ecs/", "ecs/", "dagster/")
"""The beginnings of tags that mean something to what runs a step, and nothing on an asset."""

_CRON = 'a cron expression of five fields (minute, hour, day, month, weekday) with a time that occurs, such as "0 6 * * *" or "*/15 * * * *"; or a shorthand such as @daily'

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
        if str(name).startswith(_OF_LAUNCHERS) and not str(name).startswith("dagster/kind/"):
            flow.refuse(
                ("tags", name),
                f"the tag {name}",
                "it below op_tags, for each step, or below run_tags, for each run",
            )
        elif not _TAG.fullmatch(name) or not _TAG_VALUE.fullmatch(str(value)):
            expected = "up to 63 of the letters A-Z and a-z, digits, _ . and - on either side"
            flow.refuse(("tags", name), f"the tag {name}: {flow.written_text('tags', name)}", expected)
    _check_run_tags(flow)
    condition = flow.value.get("automation_condition")
    cron = condition.get("on_cron") if isinstance(condition, dict) else None
    if isinstance(cron, str) and cron and not is_cron(cron):
        key = ("automation_condition", "on_cron")
        flow.refuse(key, flow.written_text(*key), _CRON)
    reconcile = flow.value.get("reconcile")
    times: dict[tuple[str, ...], Any] = {("schedule",): flow.value.get("schedule")}
    if isinstance(reconcile, dict):
        times["reconcile", "schedule"] = reconcile.get("schedule")
    for place, schedule in times.items():
        if isinstance(schedule, str) and schedule and not is_cron(schedule):
            flow.refuse(place, flow.written_text(*place), _CRON)
    freshness = flow.model.freshness if flow.model else None
    if freshness and min(freshness.fail, freshness.warn or freshness.fail) < _SHORTEST:
        flow.refuse(("freshness",), "less than a minute", "durations of at least PT1M")
    if freshness and freshness.warn and freshness.warn >= freshness.fail:
        flow.refuse(
            ("freshness", "warn"),
            flow.written_text("freshness", "warn"),
            f"less than fail, {flow.written_text('freshness', 'fail')}",
        )


def _check_run_tags(flow: Checked[Dataflow]) -> None:
    """Refuse tags in ``run_tags`` that Dagster or Strandline sets, by which they find runs."""
    tags = flow.value.get("run_tags")
    for name in tags if isinstance(tags, dict) else ():
        if str(name).startswith(_SET_BY_OTHERS):
            flow.refuse(
                ("run_tags", name),
                f"the tag {name}",
                "a tag of your own: Dagster or Strandline sets this one",
            )


def _texts(value: Any) -> list[str]:
    return [item if isinstance(item, str) else "" for item in value] if isinstance(value, list) else []
