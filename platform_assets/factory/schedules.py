"""The shell of every schedule: it requests nothing while a run of the dataflow is under way.

What a schedule requests belongs to its kind (``platform_assets.kinds``).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from dagster import (
    DagsterInstance,
    DefaultScheduleStatus,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SkipReason,
    schedule,
)

from partitions.dataflow import Dataflow
from platform_assets.factory.in_flight import in_flight
from resources.platform.platform import Platform


def build_schedule(
    dataflow: Dataflow,
    platform: Platform,
    job: Any,
    timezone: str,
    description: str,
    requests: Callable[[DagsterInstance, datetime], Any],
) -> ScheduleDefinition:
    """Return the schedule of a dataflow.

    Args:
        dataflow: the definition; ``schedule`` is its cron text.
        platform: the resources.
        job: that the runs are of.
        timezone: of the cron text.
        description: for people.
        requests: gets the time of the tick, in UTC; returns the runs that are requested, or why none is.
    """

    @schedule(
        name=f"{dataflow.name}_schedule",
        job=job,
        cron_schedule=dataflow.schedule or "",
        execution_timezone=timezone,
        default_status=DefaultScheduleStatus.RUNNING,
        description=description,
    )
    def due(context: ScheduleEvaluationContext) -> Any:
        now = context.scheduled_execution_time.astimezone(UTC)
        busy = in_flight(context.instance, platform.log, dataflow.name, now.timestamp())
        return SkipReason(busy.reason) if busy is not None else requests(context.instance, now)

    return due
