"""Definitions of offset watermarks in Dagster: a sensor of the table above, and a schedule."""

from __future__ import annotations

from typing import Any

from partitions.dataflow import Dataflow
from partitions.errors import NeedsDecision
from platform_assets.factory.kinds.contract import KindDefinitions, Triggers
from platform_assets.factory.schedules import load_schedule
from platform_assets.factory.sensors import SensorShell
from platform_assets.factory.ticks import NoWork, Tick, Work, digest
from platform_assets.factory.upstream import has_upstream
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.run_options import RunOptions
from resources.platform.platform import Platform


class OffsetDefinitions(KindDefinitions):
    """The Dagster definitions of offset watermarks."""

    def triggers(
        self, dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, _: RunOptions, job: Any
    ) -> Triggers:
        """Return the sensor of the table above, and a schedule if the definition has one."""

        def find_work(tick: Tick) -> NoWork | Work:
            entry = platform.log.newest(dataflow.name)
            try:
                plan = platform.kind(dataflow).planning.plan(entry, tick.now)
            except NeedsDecision as error:  # people see a run that fails
                return _work(entry, error.message)
            if not plan.slices:
                return NoWork(plan.why)
            return _work(entry, str(plan.slices[-1].upper))

        def _work(entry: Any, upper: str) -> Work:
            return Work(
                entry,
                digest(entry.watermark if entry else None, upper),
                lambda attempt: [names.run_request(f"{dataflow.name}:{attempt}")],
            )

        description = f"Requests a run of {dataflow.name} when {dataflow.source.label} has new commits."
        shell = SensorShell("upstream", description)
        sensors = (
            [shell.build(dataflow, platform, names, job, find_work)]
            if has_upstream(dataflow, platform)
            else []
        )
        schedule = [load_schedule(dataflow, platform, names, job)] if dataflow.schedule else []
        return Triggers(sensors, schedule)
