"""Definitions of column watermarks in Dagster: sensors of new rows and upstream tables, a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partitions.dataflow import Dataflow
from platform_assets.factory.asset_checks import RunCheck, TableCheck
from platform_assets.factory.kinds.column.triggers import column_schedule, column_upstream_sensor, rows_sensor
from platform_assets.factory.kinds.contract import KindDefinitions, Triggers
from platform_assets.factory.upstream import has_upstream
from resources.dagster.run_options import RunOptions
from resources.platform.platform import Platform


class ColumnDefinitions(KindDefinitions):
    """The Dagster definitions of column watermarks."""

    def run_checks(self, _: Dataflow) -> Sequence[RunCheck]:
        """Return no check: the checks of every run are enough."""
        return ()

    def table_checks(self, _: Dataflow) -> Sequence[TableCheck]:
        """Return no check."""
        return ()

    def triggers(self, dataflow: Dataflow, platform: Platform, _: RunOptions, job: Any) -> Triggers:
        """Return the sensors of new rows and of upstream tables, and a schedule, where they apply."""
        sensors = (
            [rows_sensor(dataflow, platform, job)]
            if dataflow.source.incremental_support.detects_new_rows
            else []
        )
        if has_upstream(dataflow, platform):
            sensors.append(column_upstream_sensor(dataflow, platform, job))
        schedule = (column_schedule(dataflow, platform, job),) if dataflow.schedule else ()
        return Triggers(sensors, schedule)
