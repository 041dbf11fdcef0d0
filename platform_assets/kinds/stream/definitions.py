"""What stream watermarks add in Dagster: a sensor of new input, one of upstream tables, and a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from dagster import DagsterInstance, RunRequest

from partitions.dataflow import Dataflow
from platform_assets.factory.checks import RunCheck, TableCheck
from platform_assets.factory.keys import run_request
from platform_assets.factory.schedules import build_schedule
from platform_assets.factory.sensors import NoWork, SensorShell, Tick, Work, digest
from platform_assets.factory.upstream import has_upstream, upstream_sensor
from platform_assets.kinds.definitions import KindDefinitions, Triggers
from resources.platform import Platform
from resources.run_options import RunOptions

_INTERVAL = 60
"""Seconds: each tick lists the source's log."""


class StreamDefinitions(KindDefinitions):
    """The Dagster definitions of stream watermarks."""

    def run_checks(self, _: Dataflow) -> Sequence[RunCheck]:
        """Return no check beside those of every run."""
        return ()

    def table_checks(self, _: Dataflow) -> Sequence[TableCheck]:
        """Return no check."""
        return ()

    def triggers(self, dataflow: Dataflow, platform: Platform, _: RunOptions, job: Any) -> Triggers:
        """Return the sensor of new input, or that of the upstream table; and a schedule, if the definition has one."""
        has_one = has_upstream(dataflow, platform)
        sensor = (
            upstream_sensor(dataflow, platform, job, lambda tick: _due(dataflow, platform, tick))
            if has_one
            else SensorShell(
                "rows",
                f"Finds new input of {dataflow.name}, and asks for a run.",
                _INTERVAL,
            ).build(dataflow, platform, job, lambda tick: _due(dataflow, platform, tick))
        )

        def requests(_: DagsterInstance, now: datetime) -> RunRequest:
            return run_request(dataflow, f"{dataflow.name}:{now.isoformat()}")

        schedules = (
            (build_schedule(dataflow, platform, job, "UTC", f"Asks for a run of {dataflow.name}.", requests),)
            if dataflow.schedule
            else ()
        )
        return Triggers((sensor,), schedules)


def _due(dataflow: Dataflow, platform: Platform, tick: Tick) -> NoWork | Work:
    entry = platform.log.newest(dataflow.name)
    plan = platform.kind(dataflow).plan(entry, tick.now)
    if not plan.slices:
        return NoWork(plan.why)
    return Work(
        entry,
        digest(entry.watermark if entry else None, str(plan.slices[-1].upper)),
        lambda attempt: [run_request(dataflow, f"{dataflow.name}:{attempt}")],
    )
