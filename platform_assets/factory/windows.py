"""The sensor and the schedule of a window watermark: both ask for what is due as runs over ranges of partitions (docs/dagster.md).

The sensor wakes for what waiting would not make more of: windows that are over, failed ones after a pause that doubles, what the cap has
left out. What lies within the grace goes along. The schedule asks for everything that is due.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dagster import (
    AddDynamicPartitionsRequest,
    DagsterInstance,
    DefaultScheduleStatus,
    DefaultSensorStatus,
    RunRequest,
    ScheduleDefinition,
    ScheduleEvaluationContext,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    schedule,
    sensor,
)

from partitions.dataflow import Dataflow
from partitions.definitions import PartitionRange, WindowPartitions
from partitions.plan import Plan, counted
from partitions.window.asking import asked_for
from partitions.window.grid import Windows
from partitions.window.slices import WindowSlice, WorkUnit
from partitions.window.state import WindowState
from partitions.window.unit_selector import fairly
from platform_assets.factory.asking import Cursor, Work, ask, done, skip, what
from platform_assets.factory.in_flight import in_flight
from resources.io_managers import PLAN_TAG
from resources.platform import Platform
from resources.reporting import DATAFLOW_TAG
from resources.watermarks.entry import Entry

_INTERVAL = 30
_MOST_RUNS = 10
"""Runs that one tick asks for; what is left is asked for when they are over."""


@dataclass(frozen=True)
class Look:
    """What one evaluation of the plan has found.

    Attributes:
        plan: of now.
        works: the work units that a run is asked for.
        new_keys: partitions that Dagster must be told first.
        ranges: the runs.
        entry: that the plan was made on.
    """

    plan: Plan[WindowSlice]
    works: Sequence[WorkUnit]
    new_keys: Sequence[AddDynamicPartitionsRequest]
    ranges: Sequence[PartitionRange]
    entry: Entry | None

    @property
    def what(self) -> str:
        """Tells these runs from others."""
        return what([tuple(one) for one in self.ranges], self.works[0].key if self.works else None)


def look(
    dataflow: Dataflow,
    platform: Platform,
    partitions: WindowPartitions,
    instance: DagsterInstance,
    now: datetime,
    *,
    everything: bool,
) -> Look:
    """Evaluate the plan. Starts no Spark, changes nothing.

    Args:
        dataflow: the definition.
        platform: the resources.
        partitions: of the dataflow.
        instance: which knows the dynamic partitions.
        now: the clock, aware.
        everything: whether all that is due is asked for; else only if something of it is worth waking a run.
    """
    entry = platform.log.newest(dataflow.name)
    plan = platform.plan(dataflow, now)
    due = [one for piece in plan.slices for one in piece.works]
    state = WindowState.of(entry.state() if entry else None)
    works = due if everything else asked_for(dataflow.window, state, due, now)
    windows = dataflow.window.windows(now) if dataflow.window.time_entry else None
    new = _new_keys(dataflow, platform, partitions, instance, windows) if works else []
    known = _known(partitions, instance, new)

    def asked(*, failed: bool) -> list[PartitionRange]:
        some = [one for one in works if (one.reason == "failed") == failed]
        return partitions.ranges(some, windows, known_windows=known[0], known_units=known[1])

    ranges = fairly(asked(failed=False), asked(failed=True), _MOST_RUNS)
    return Look(plan, works, new, ranges, entry)


def window_sensor(
    dataflow: Dataflow,
    platform: Platform,
    job: Any,
    partitions: WindowPartitions,
    clock: Callable[[], float] = time.time,
) -> SensorDefinition:
    """A sensor that evaluates the plan and asks for runs of ``job`` over ranges of partitions."""

    @sensor(
        name=f"{dataflow.name}_windows",
        job=job,
        minimum_interval_seconds=_INTERVAL,
        default_status=DefaultSensorStatus.RUNNING,
        description=f"Finds windows of {dataflow.name} that became due or failed, and asks for runs over ranges of them.",
    )
    def windows(context: SensorEvaluationContext) -> SensorResult:
        cursor, now = Cursor.read(context.cursor), clock()
        busy = in_flight(context.instance, platform.log, dataflow.name, now, cursor.sign)
        if busy is not None:
            return skip(busy.reason, replace(cursor, sign=busy.sign))
        found = look(
            dataflow,
            platform,
            partitions,
            context.instance,
            datetime.fromtimestamp(now, UTC),
            everything=False,
        )
        if not found.works:
            return skip(f"{found.plan.why}; nothing of it is worth waking a run", cursor.nothing())
        progress = done(platform.log, dataflow.name, found.entry, cursor)
        return ask(
            cursor,
            Work(progress, found.what, found.entry.number if found.entry else 0),
            now,
            lambda attempt: requests(dataflow, found, attempt),
            new_keys=found.new_keys,
        )

    return windows


def window_schedule(
    dataflow: Dataflow, platform: Platform, job: Any, partitions: WindowPartitions
) -> ScheduleDefinition:
    """A schedule that asks for everything that is due, also for windows that go on and what lies within the grace."""

    @schedule(
        name=f"{dataflow.name}_schedule",
        job=job,
        cron_schedule=dataflow.schedule or "",
        execution_timezone=dataflow.window.timezone,
        default_status=DefaultScheduleStatus.RUNNING,
        description=f"Asks for everything that is due of {dataflow.name}.",
    )
    def due(context: ScheduleEvaluationContext) -> Any:
        now = context.scheduled_execution_time.astimezone(UTC)
        busy = in_flight(context.instance, platform.log, dataflow.name, now.timestamp())
        if busy is not None:
            return SkipReason(busy.reason)
        found = look(dataflow, platform, partitions, context.instance, now, everything=True)
        for request in found.new_keys:
            context.instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        return requests(dataflow, found, now.isoformat()) or SkipReason(found.plan.why)

    return due


def requests(dataflow: Dataflow, found: Look, attempt: str) -> list[RunRequest]:
    """One run for each range; each loads what is due of it when it runs. ``attempt`` tells it from all others."""
    told = f"{counted(len(found.works), 'work unit')} due"
    return [
        RunRequest(
            run_key=f"{dataflow.name}:{found.what}:{number}:{attempt}",
            partition_key=one.partition_key,
            tags={DATAFLOW_TAG: dataflow.name, PLAN_TAG: told, **one.tags},
        )
        for number, one in enumerate(found.ranges)
    ]


def _new_keys(
    dataflow: Dataflow,
    platform: Platform,
    partitions: WindowPartitions,
    instance: DagsterInstance,
    windows: Windows | None,
) -> list[AddDynamicPartitionsRequest]:
    units = platform.units(dataflow) if partitions.units_name else ()
    return partitions.missing_keys(
        _keys(instance, partitions.windows_name), _keys(instance, partitions.units_name), windows, units
    )


def _known(
    partitions: WindowPartitions, instance: DagsterInstance, new: Sequence[AddDynamicPartitionsRequest]
) -> tuple[list[str], list[str]]:
    """The dynamic keys of windows and units in Dagster's order, with those that are about to be added after them."""
    added = {request.partitions_def_name: list(request.partition_keys) for request in new}

    def keys(name: str | None) -> list[str]:
        return [*_keys(instance, name), *added.get(name or "", [])]

    return keys(partitions.windows_name), keys(partitions.units_name)


def _keys(instance: DagsterInstance, name: str | None) -> list[str]:
    return list(instance.get_dynamic_partitions(name)) if name else []
