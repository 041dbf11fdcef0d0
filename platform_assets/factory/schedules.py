"""The shell of every schedule: it requests nothing while a run of the dataflow is in flight.

What a schedule requests belongs to its kind (``platform_assets.factory.kinds``).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from dagster import (
    DagsterInstance,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SkipReason,
    schedule,
)

from partitions.dataflow import Dataflow
from platform_assets.factory.default_status import default_schedule_status
from platform_assets.factory.in_flight import find_run_in_flight
from resources.dagster.names import DagsterDataflowNames
from resources.platform.platform import Platform


def build_schedule(
    dataflow: Dataflow,
    platform: Platform,
    names: DagsterDataflowNames,
    job: Any,
    timezone: str,
    description: str,
    requests: Callable[[DagsterInstance, datetime], Any],
) -> ScheduleDefinition:
    """Return the schedule of a dataflow.

    Args:
        dataflow: the definition; ``schedule`` is its cron text.
        platform: the resources.
        names: the dataflow's names.
        job: the job to run.
        timezone: the zone of the cron text.
        description: for people.
        requests: returns the runs to request, or why there are none, given the time of the tick in UTC.
    """

    @schedule(
        name=names.trigger("schedule"),
        job=job,
        cron_schedule=dataflow.schedule or "",
        execution_timezone=timezone,
        default_status=default_schedule_status(),
        description=description,
    )
    def due(context: ScheduleEvaluationContext) -> Any:
        now = context.scheduled_execution_time.astimezone(UTC)
        busy = find_run_in_flight(context.instance, platform.log, names.tags, dataflow.name, now.timestamp())
        return SkipReason(busy.reason) if busy is not None else requests(context.instance, now)

    return due


def load_schedule(
    dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, job: Any
) -> ScheduleDefinition:
    """Return a schedule that requests a run at each of its times, in the watermark's zone."""

    def requests(_: DagsterInstance, now: datetime) -> RunRequest:
        return names.run_request(f"{dataflow.name}:{now.isoformat()}")

    description = f"Requests a run of {dataflow.name}."
    zone = dataflow.watermark.zone_name
    return build_schedule(dataflow, platform, names, job, zone, description, requests)
