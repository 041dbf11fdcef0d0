"""The sensor and the schedule of a column watermark (docs/dagster.md).

The sensor requests a run if rows lie above the stored values. The schedule requests one at each of its times: a look-back also reads
rows again that are not above them.
"""

from __future__ import annotations

import time
from datetime import UTC
from typing import Any

from dagster import (
    DefaultScheduleStatus,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SensorDefinition,
    SkipReason,
    schedule,
)

from partitions.dataflow import Dataflow
from platform_assets.factory.in_flight import in_flight
from platform_assets.factory.keys import run_request
from platform_assets.factory.sensors import Clock, NoWork, SensorShell, Tick, Work, digest
from resources.platform import Platform

_INTERVAL = 60
"""Seconds: each tick asks the source."""


def rows_sensor(
    dataflow: Dataflow, platform: Platform, job: Any, clock: Clock = time.time
) -> SensorDefinition:
    """Return a sensor that looks above the stored values and requests runs of ``job``."""

    def look(tick: Tick) -> NoWork | Work:
        entry = platform.log.newest(dataflow.name)
        if not platform.column_kind(dataflow).has_new_rows(entry, tick.now):
            return NoWork("no row is above the watermark")
        return Work(
            entry,
            digest(entry.watermark if entry else None),
            lambda attempt: [run_request(dataflow, f"{dataflow.name}:{attempt}")],
        )

    description = f"Finds rows of {dataflow.name} above its watermark, and asks for a run."
    return SensorShell("rows", description, _INTERVAL, clock).build(dataflow, platform, job, look)


def column_schedule(dataflow: Dataflow, platform: Platform, job: Any) -> ScheduleDefinition:
    """Return a schedule that requests a run at each of its times, unless one is under way."""

    @schedule(
        name=f"{dataflow.name}_schedule",
        job=job,
        cron_schedule=dataflow.schedule or "",
        execution_timezone=dataflow.column.timezone,
        default_status=DefaultScheduleStatus.RUNNING,
        description=f"Asks for a run of {dataflow.name}.",
    )
    def due(context: ScheduleEvaluationContext) -> Any:
        now = context.scheduled_execution_time.astimezone(UTC)
        busy = in_flight(context.instance, platform.log, dataflow.name, now.timestamp())
        if busy is not None:
            return SkipReason(busy.reason)
        return run_request(dataflow, f"{dataflow.name}:{now.isoformat()}")

    return due
