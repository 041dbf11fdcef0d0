"""Definitions of path watermarks in Dagster: a sensor of new files, the sweep for late files, checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from partitions.dataflow import Dataflow
from platform_assets.factory.check_results import RunCheck, TableCheck
from platform_assets.factory.kinds.contract import HasPicture, KindDefinitions, Triggers
from platform_assets.factory.kinds.path.checks import (
    LATE_FILES_CHECK,
    NAMING_CHECK,
    QUARANTINED_FILES_CHECK,
)
from platform_assets.factory.kinds.path.late import late_job, late_sensor
from platform_assets.factory.kinds.path.new_files_sensor import files_sensor
from platform_assets.factory.kinds.path.pictures import arrivals_metadata, partitions_metadata
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.run_options import RunOptions
from resources.kinds.path.arrivals import arrivals
from resources.kinds.path.partition_ledger import newest_partitions
from resources.platform.platform import Platform
from resources.watermarks.ingested import IngestedFiles

_PARTITIONS = 10
"""Partitions on the page of the watermark."""


class PathDefinitions(KindDefinitions, HasPicture):
    """The Dagster definitions of path watermarks."""

    def run_checks(self, _: Dataflow) -> Sequence[RunCheck]:
        """Return the check of the names of new files."""
        return (NAMING_CHECK,)

    def table_checks(self, dataflow: Dataflow) -> Sequence[TableCheck]:
        """Return the checks of late files and of quarantine.

        Runs evaluate the check of quarantine if they can quarantine files.
        """
        quarantines = "quarantine" in (dataflow.on_bad_file, dataflow.late_files)
        return (
            LATE_FILES_CHECK,
            replace(QUARANTINED_FILES_CHECK, with_runs=quarantines),
        )

    def triggers(
        self,
        dataflow: Dataflow,
        platform: Platform,
        names: DagsterDataflowNames,
        options: RunOptions,
        job: Any,
    ) -> Triggers:
        """Return the sensor of new files, and the sensor and job of late files.

        The latter are missing if each run lists all files.
        """
        files = files_sensor(dataflow, platform, names, job)
        if dataflow.path.tracking == "set":
            return Triggers((files,))
        late = late_job(dataflow, platform, names, options)
        return Triggers((files, late_sensor(dataflow, platform, names, late)), jobs=(late,))

    def picture_metadata(self, platform: Platform, dataflow: Dataflow, now: datetime) -> Mapping[str, Any]:
        """Return a picture of how many files arrived on each day, and a table of the newest partitions."""
        log, entry = platform.log, platform.log.newest(dataflow.name)
        days = arrivals(log, dataflow.name, entry)
        partitions = newest_partitions(dataflow, IngestedFiles(log, dataflow.name, entry), _PARTITIONS)
        return {
            **arrivals_metadata(days, now.astimezone(UTC).date()),
            **partitions_metadata(dataflow.name, partitions),
        }
