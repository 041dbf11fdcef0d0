"""The sensors and the schedule of a column watermark (docs/reference/dagster.md).

The sensor of rows requests a run if rows lie above the stored values. The schedule requests one at each of
its times: a look-back also reads rows again that do not lie above them.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from platform_assets.factory.sensors import DataflowSensor, SensorShell
from platform_assets.factory.ticks import Clock, NoWork, Tick, Work, digest
from platform_assets.factory.upstream import upstream_sensor
from resources.dagster.names import DagsterDataflowNames
from resources.kinds.column.look import ColumnLook
from resources.kinds.column.opening import column_look
from resources.platform.platform import Platform
from resources.watermarks.entry import Entry

_INTERVAL = 60
"""Seconds between ticks; each one queries the source."""


def rows_sensor(
    dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, job: Any, clock: Clock = time.time
) -> DataflowSensor:
    """Return a sensor that checks for rows above the stored values and requests runs of ``job``."""

    def find_work(tick: Tick) -> NoWork | Work:
        entry = platform.log.newest(dataflow.name)
        column = column_look(platform, dataflow)
        if not _is_due(column, entry, tick.now):
            return NoWork("no row is above the watermark")
        return Work(
            entry,
            digest(entry.watermark if entry else None, column.contents()),
            lambda attempt: [names.run_request(f"{dataflow.name}:{attempt}")],
        )

    description = f"Requests a run when rows of {dataflow.name} lie above its watermark."
    return SensorShell("rows", description, _INTERVAL, clock).build(dataflow, platform, names, job, find_work)


def _is_due(look: ColumnLook, entry: Entry | None, now: datetime) -> bool:
    """Return whether a run has rows to read, or must fail because the source was set back.

    People see a run that fails, but not a check that does.
    """
    try:
        return look.has_new_rows(entry, now)
    except NeedsDecision:
        return True


def column_upstream_sensor(
    dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, job: Any, clock: Clock = time.time
) -> DataflowSensor:
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
            lambda attempt: [names.run_request(f"{dataflow.name}:{attempt}")],
        )

    return upstream_sensor(dataflow, platform, names, job, find_due_work, clock)
