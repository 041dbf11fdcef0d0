"""The sensor of new files: it requests one run if a file lies above the watermark."""

from __future__ import annotations

import time
from typing import Any

from partitions.dataflow import Dataflow
from partitions.path.skipped import skip_warnings
from partitions.plan import pluralize
from platform_assets.factory.sensors import DataflowSensor, SensorShell
from platform_assets.factory.ticks import Clock, NoWork, Tick, Work, digest
from resources.dagster.names import DagsterDataflowNames
from resources.kinds.path.opening import path_planning
from resources.listing import Budget, Listing
from resources.platform.platform import Platform

_BUDGET = Budget(pages=50, seconds=20.0)  # a tick has 60 s; a slow store must not use them up


def files_sensor(
    dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, job: Any, clock: Clock = time.time
) -> DataflowSensor:
    """Return a sensor that lists files above the watermark and requests runs of ``job``."""

    def find_work(tick: Tick) -> NoWork | Work:
        entry = platform.log.newest(dataflow.name)
        listing = path_planning(platform, dataflow).peek(entry, tick.now, _BUDGET, tick.resume or None)
        if not listing.listed.files:
            state = "continues at the next tick" if listing.resume else _why_none(listing)
            progress = f"{state} ({pluralize(listing.listed.calls, 'listing call')})"
            why = "; ".join([progress, *skip_warnings(listing.listed.skipped)])
            return NoWork(why, listing.resume or "")
        first = listing.listed.files[0]
        return Work(
            entry,
            digest(first.path, first.size, first.version),
            lambda attempt: [names.run_request(f"{dataflow.name}:{attempt}")],
        )

    description = f"Requests a run when files of {dataflow.name} lie above its watermark."
    return SensorShell("files", description, clock=clock).build(dataflow, platform, names, job, find_work)


def _why_none(listing: Listing) -> str:
    if not listing.settling:
        return "no file is above the watermark"
    verb = "is" if listing.settling == 1 else "are"
    return f"{pluralize(listing.settling, 'new file')} {verb} held back by settle"
