"""The sensors and the schedule of a column watermark (docs/reference/dagster.md).

The sensor of rows requests a run if rows lie above the stored values. The schedule requests one at each of
its times: a look-back also reads rows again that do not lie above them.
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
"""Seconds between ticks; each one queries the source."""


def rows_sensor(
    dataflow: Dataflow, platform: Platform, job: Any, clock: Clock = time.time
) -> SensorDefinition:
    """Return a sensor that checks for rows above the stored values and requests runs of ``job``."""

    def find_work(tick: Tick) -> NoWork | Work:
        entry = platform.log.newest(dataflow.name)
        column = column_look(platform, dataflow)
        if not _is_due(column, entry, tick.now):
            return NoWork("no row is above the watermark")
        return Work(
            entry,
            digest(entry.watermark if entry else None, column.contents()),
            lambda attempt: [run_request(dataflow, f"{dataflow.name}:{attempt}")],
        )

    description = f"Requests a run when rows of {dataflow.name} lie above its watermark."
    return SensorShell("rows", description, _INTERVAL, clock).build(dataflow, platform, job, find_work)


def _is_due(look: ColumnLook, entry: Entry | None, now: datetime) -> bool:
    """Return whether a run has rows to read, or must fail because the source was set back.

    People see a run that fails, but not a check that does.
    """
    try:
        return look.has_new_rows(entry, now)
    except NeedsDecision:
        return True


def column_upstream_sensor(
    dataflow: Dataflow, platform: Platform, job: Any, clock: Clock = time.time
) -> SensorDefinition:
    """Return a sensor that requests a run of ``job`` when an upstream table has changed and rows are due.

    Rows of a look-back count as due.
    """

    def find_due_work(tick: Tick) -> NoWork | Work:
        plan = platform.plan(dataflow, tick.now)
        if not plan.slices:
            return NoWork(plan.why)
        entry = platform.log.newest(dataflow.name)
        return Work(
            entry,
            "",
            lambda attempt: [run_request(dataflow, f"{dataflow.name}:{attempt}")],
        )

    return upstream_sensor(dataflow, platform, job, find_due_work, clock)


def column_schedule(dataflow: Dataflow, platform: Platform, job: Any) -> ScheduleDefinition:
    """Return a schedule that requests a run at each of its times, unless one is in flight."""

    def requests(_: DagsterInstance, now: datetime) -> RunRequest:
        return run_request(dataflow, f"{dataflow.name}:{now.isoformat()}")

    description = f"Requests a run of {dataflow.name}."
    return build_schedule(dataflow, platform, job, dataflow.column.timezone, description, requests)
