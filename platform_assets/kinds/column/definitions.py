"""What column watermarks add in Dagster: a sensor of new rows, and a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from partitions.dataflow import Dataflow
from platform_assets.factory.checks import RunCheck, TableCheck
from platform_assets.kinds.column.triggers import column_schedule, rows_sensor
from platform_assets.kinds.definitions import KindDefinitions, Triggers
from resources.io_managers import RunOptions
from resources.platform import Platform


class ColumnDefinitions(KindDefinitions):
    """The Dagster definitions of column watermarks."""

    def run_checks(self, _: Dataflow) -> Sequence[RunCheck]:
        """Return no check: a run of rows is checked as every run is."""
        return ()

    def table_checks(self, _: Dataflow) -> Sequence[TableCheck]:
        """Return no check."""
        return ()

    def triggers(self, dataflow: Dataflow, platform: Platform, _: RunOptions, job: Any) -> Triggers:
        """Return the sensor of new rows, unless each look would read all of the source, and a schedule if the definition has one."""
        schedule = (column_schedule(dataflow, platform, job),) if dataflow.schedule else ()
        looks = dataflow.source.tells_what_is_new
        return Triggers((rows_sensor(dataflow, platform, job),) if looks else (), schedule)
