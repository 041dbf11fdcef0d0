"""What path watermarks add in Dagster: a sensor of new files, the sweep for late ones, and checks of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from partitions.dataflow import Dataflow
from platform_assets.factory.asset_checks import RunCheck, TableCheck
from platform_assets.factory.kinds.contract import HasPicture, KindDefinitions, Triggers
from platform_assets.factory.kinds.path.checks import (
    LATE_FILES,
    QUARANTINED_FILES,
    late_files,
    naming_check,
    quarantined_files,
)
from platform_assets.factory.kinds.path.late import late_job, late_sensor
from platform_assets.factory.kinds.path.new_files_sensor import files_sensor
from platform_assets.factory.kinds.path.pictures import arrivals_metadata
from resources.dagster.run_options import RunOptions
from resources.kinds.path.arrivals import arrivals
from resources.platform.platform import Platform


class PathDefinitions(KindDefinitions, HasPicture):
    """The Dagster definitions of path watermarks."""

    def run_checks(self, dataflow: Dataflow) -> Sequence[RunCheck]:
        """Return the check of the names of new files."""
        return (naming_check(dataflow),)

    def table_checks(self, dataflow: Dataflow) -> Sequence[TableCheck]:
        """Return the checks of late files and of quarantine; a run that can quarantine checks the latter."""
        quarantines = "quarantine" in (dataflow.on_bad_file, dataflow.late_files)
        return (
            TableCheck(LATE_FILES, late_files),
            TableCheck(QUARANTINED_FILES, quarantined_files, with_runs=quarantines),
        )

    def triggers(self, dataflow: Dataflow, platform: Platform, options: RunOptions, job: Any) -> Triggers:
        """Return the sensor of new files, and the sensor of late files with its job unless each run lists all files."""
        files = files_sensor(dataflow, platform, job)
        if dataflow.path.tracking == "set":
            return Triggers((files,))
        late = late_job(dataflow, platform, options)
        return Triggers((files, late_sensor(dataflow, platform, late)), jobs=(late,))

    def picture_metadata(self, platform: Platform, dataflow: Dataflow, now: datetime) -> Mapping[str, Any]:
        """Return how many files came on which day, as a picture."""
        log = platform.log
        days = arrivals(log, dataflow.name, log.newest(dataflow.name))
        return arrivals_metadata(days, now.astimezone(UTC).date())
