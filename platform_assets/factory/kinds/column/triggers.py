"""The sensors and the schedule of a column watermark (docs/reference/dagster.md).

The sensor of rows requests a run if rows lie above the stored values. The schedule requests one at each of its times: a look-back also reads
rows again that are not above them.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from dagster import DagsterInstance, RunRequest, ScheduleDefinition, SensorDefinition

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from platform_assets.factory.dagster_names import run_request
from platform_assets.factory.schedules import build_schedule
from platform_assets.factory.sensors import Clock, NoWork, SensorShell, Tick, Work, digest
from platform_assets.factory.upstream import upstream_sensor
from resources.kinds.column.look import ColumnLook
from resources.kinds.column.opening import column_look
from resources.platform.platform import Platform
from resources.watermarks.entry import Entry

_INTERVAL = 60
"""Seconds: each tick asks the source."""


def rows_sensor(
    dataflow: Dataflow, platform: Platform, job: Any, clock: Clock = time.time
) -> SensorDefinition:
    """Return a sensor that looks above the stored values and requests runs of ``job``."""

    def look(tick: Tick) -> NoWork | Work:
        entry = platform.log.newest(dataflow.name)
        column = column_look(platform, dataflow)
        if not _is_due(column, entry, tick.now):
            return NoWork("no row is above the watermark")
        return Work(
            entry,
            digest(entry.watermark if entry else None, column.contents()),
            lambda attempt: [run_request(dataflow, f"{dataflow.name}:{attempt}")],
        )

    description = f"Finds rows of {dataflow.name} above its watermark, and asks for a run."
    return SensorShell("rows", description, _INTERVAL, clock).build(dataflow, platform, job, look)


def _is_due(look: ColumnLook, entry: Entry | None, now: datetime) -> bool:
    """Whether a run has rows to read, or has to say that the source was set back: a run that fails is seen, and a look is not."""
    try:
        return look.has_new_rows(entry, now)
    except NeedsDecision:
        return True


def column_upstream_sensor(
    dataflow: Dataflow, platform: Platform, job: Any, clock: Clock = time.time
) -> SensorDefinition:
    """Return a sensor that requests a run of ``job`` when an upstream table has changed and rows are due, also those of a look-back."""

    def due(tick: Tick) -> NoWork | Work:
        plan = platform.plan(dataflow, tick.now)
        if not plan.slices:
            return NoWork(plan.why)
        entry = platform.log.newest(dataflow.name)
        return Work(
            entry,
            "",
            lambda attempt: [run_request(dataflow, f"{dataflow.name}:{attempt}")],
        )

    return upstream_sensor(dataflow, platform, job, due, clock)


def column_schedule(dataflow: Dataflow, platform: Platform, job: Any) -> ScheduleDefinition:
    """Return a schedule that requests a run at each of its times, unless one is under way."""

    def requests(_: DagsterInstance, now: datetime) -> RunRequest:
        return run_request(dataflow, f"{dataflow.name}:{now.isoformat()}")

    description = f"Asks for a run of {dataflow.name}."
    return build_schedule(dataflow, platform, job, dataflow.column.timezone, description, requests)
