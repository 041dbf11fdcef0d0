"""Definitions of window watermarks in Dagster: partitions, sensors, a schedule, and the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from platform_assets.factory.check_results import TableCheck
from platform_assets.factory.kinds.contract import HasPartitions, HasPicture, KindDefinitions, Triggers
from platform_assets.factory.kinds.window.checks import LEDGER_CHECK
from platform_assets.factory.kinds.window.pictures import ledger_metadata
from platform_assets.factory.kinds.window.run_requests import (
    window_schedule,
    window_sensor,
    window_upstream_sensor,
)
from platform_assets.factory.upstream import has_upstream
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.run_options import RunOptions
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.kinds.window.unit_ledger import unit_ledger
from resources.platform.platform import Platform


class WindowDefinitions(KindDefinitions, HasPartitions, HasPicture):
    """The Dagster definitions of window watermarks."""

    def table_checks(self, _: Dataflow) -> Sequence[TableCheck]:
        """Return the check of the ledger."""
        return (LEDGER_CHECK,)

    def triggers(
        self, dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, _: RunOptions, job: Any
    ) -> Triggers:
        """Return the sensors of due windows and of upstream tables, and a schedule, where they apply."""
        partitions = self.partitions(dataflow, names)
        sensors = [window_sensor(dataflow, platform, names, job, partitions)]
        if has_upstream(dataflow, platform):
            sensors.append(window_upstream_sensor(dataflow, platform, names, job, partitions))
        schedule = (window_schedule(dataflow, platform, names, job, partitions),) if dataflow.schedule else ()
        return Triggers(sensors, schedule)

    def partitions(self, dataflow: Dataflow, names: DagsterDataflowNames) -> WindowAssetPartitions:
        """Return the windows and units as partitions."""
        return WindowAssetPartitions.of(dataflow.name, dataflow.window, names.identifier)

    def picture_metadata(self, platform: Platform, dataflow: Dataflow, now: datetime) -> Mapping[str, Any]:
        """Return the ledger as a picture and as tables."""
        return ledger_metadata(unit_ledger(platform, dataflow, now))
