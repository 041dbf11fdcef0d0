"""Definitions of column watermarks in Dagster: sensors of new rows and upstream tables, a schedule."""

from __future__ import annotations

from typing import Any

from partitions.dataflow import Dataflow
from platform_assets.factory.kinds.column.triggers import column_upstream_sensor, rows_sensor
from platform_assets.factory.kinds.contract import KindDefinitions, Triggers
from platform_assets.factory.schedules import load_schedule
from platform_assets.factory.upstream import has_upstream
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.run_options import RunOptions
from resources.platform.platform import Platform


class ColumnDefinitions(KindDefinitions):
    """The Dagster definitions of column watermarks."""

    def triggers(
        self, dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, _: RunOptions, job: Any
    ) -> Triggers:
        """Return the sensors of new rows and of upstream tables, and a schedule, where they apply."""
        sensors = (
            [rows_sensor(dataflow, platform, names, job)]
            if dataflow.source.incremental_support.detects_new_rows
            else []
        )
        if has_upstream(dataflow, platform):
            sensors.append(column_upstream_sensor(dataflow, platform, names, job))
        schedule = (load_schedule(dataflow, platform, names, job),) if dataflow.schedule else ()
        return Triggers(sensors, schedule)
