"""The sensors and the schedule of a window watermark (docs/reference/dagster.md).

All request due windows as runs over ranges of partitions. The sensor requests windows that are over,
failed windows after a pause that doubles, and windows that the cap has deferred. Its runs also load the
windows within the grace. The schedule, and the sensor of upstream tables, request everything that is due.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any

from dagster import (
    AddDynamicPartitionsRequest,
    DagsterInstance,
    RunRequest,
    ScheduleDefinition,
    SkipReason,
)

from partitions.dagster_partitions import WindowPartitions
from partitions.dataflow import Dataflow
from partitions.instants import milliseconds
from partitions.plan import Plan, format_duration
from partitions.window.fair_share import share_slots
from partitions.window.partition_ranges import RequestedRange
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.wake_rule import select_waking_work
from partitions.window.windows import Windows
from partitions.window.work_unit import WorkUnit
from platform_assets.factory.schedules import build_schedule
from platform_assets.factory.sensors import DataflowSensor, SensorShell
from platform_assets.factory.ticks import Clock, NoWork, Tick, Work, digest
from platform_assets.factory.upstream import upstream_sensor
from resources.dagster.io_managers import PLAN_TAG
from resources.dagster.names import DagsterDataflowNames
from resources.kinds.window.awaited import windows_of
from resources.kinds.window.opening import open_windows
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.kinds.window.unit_lookup import units_of
from resources.platform.platform import Platform
from resources.watermarks.entry import Entry

_MAX_RUNS = 10
"""The most runs that one tick requests; the rest follows when these are over."""


@dataclass(frozen=True)
class DueRuns:
    """The runs that an evaluation of the plan requests.

    Attributes:
        plan: the present plan.
        works: the work units that runs are requested for.
        new_keys: partitions to add to Dagster first.
        ranges: the ranges of partitions, one for each run.
        entry: the entry that the plan started from.
    """

    plan: Plan[WindowSlice]
    works: Sequence[WorkUnit]
    new_keys: Sequence[AddDynamicPartitionsRequest]
    ranges: Sequence[RequestedRange]
    entry: Entry | None

    @property
    def digest(self) -> str:
        """Return a short text that identifies these runs."""
        return digest(
            [tuple(range_.partitions) for range_ in self.ranges], self.works[0].key if self.works else None
        )


def due_runs(
    dataflow: Dataflow,
    platform: Platform,
    partitions: WindowPartitions,
    instance: DagsterInstance,
    now: datetime,
    *,
    everything: bool,
) -> DueRuns:
    """Return the runs that the plan calls for. Starts no Spark, changes nothing.

    Args:
        dataflow: the definition.
        platform: the resources.
        partitions: the partitions of the dataflow.
        instance: the Dagster instance with the dynamic partitions.
        now: the clock, aware.
        everything: whether to request all that is due; otherwise only windows that are worth a run of
        their own.
    """
    entry = platform.log.newest(dataflow.name)
    # The plan and the partitions share one query of the source.
    units = cache(partial(units_of, platform, dataflow))
    plan = platform.plan(dataflow, now, open_windows(platform, dataflow, units=units))
    due = [work for slice_ in plan.slices for work in slice_.works]
    state = WindowState.of(entry.state() if entry else None)
    works = due if everything else select_waking_work(dataflow.window, state, due, now)
    windows = windows_of(platform, dataflow, now).windows(now) if dataflow.window.time_entry else None
    new_keys = _new_keys(partitions, instance, windows, units) if works else []
    dynamic_keys = _dynamic_keys(partitions, instance, new_keys)

    def ranges(*, failed: bool) -> list[RequestedRange]:
        selected = [work for work in works if (work.reason == "failed") == failed]
        return partitions.ranges(
            selected, windows, known_windows=dynamic_keys[0], known_units=dynamic_keys[1]
        )

    return DueRuns(
        plan, works, new_keys, share_slots(ranges(failed=False), ranges(failed=True), _MAX_RUNS), entry
    )


def window_sensor(
    dataflow: Dataflow,
    platform: Platform,
    names: DagsterDataflowNames,
    job: Any,
    partitions: WindowAssetPartitions,
    clock: Clock = time.time,
) -> DataflowSensor:
    """Return a sensor that evaluates the plan and requests runs of ``job`` over ranges of partitions."""
    find_work = partial(_due_work, dataflow, platform, names, partitions, everything=False)
    description = f"Requests runs for windows of {dataflow.name} that are due or have failed."
    shell = SensorShell("windows", description, clock=clock, partitions=partitions)
    return shell.build(dataflow, platform, names, job, find_work)


def window_upstream_sensor(
    dataflow: Dataflow,
    platform: Platform,
    names: DagsterDataflowNames,
    job: Any,
    partitions: WindowAssetPartitions,
    clock: Clock = time.time,
) -> DataflowSensor:
    """Return a sensor that requests everything due as runs of ``job`` when an upstream table changes."""
    find_work = partial(_due_work, dataflow, platform, names, partitions, everything=True)
    return upstream_sensor(dataflow, platform, names, job, find_work, clock, partitions=partitions)


def _due_work(
    dataflow: Dataflow,
    platform: Platform,
    names: DagsterDataflowNames,
    partitions: WindowPartitions,
    tick: Tick,
    *,
    everything: bool,
) -> NoWork | Work:
    """Return the runs to request in a tick of a sensor; ``everything`` as in :func:`due_runs`."""
    due = due_runs(dataflow, platform, partitions, tick.instance, tick.now, everything=everything)
    if due.works:
        return _work_of(names, due)
    if everything:
        return NoWork(due.plan.why)
    waits = "; none of it starts a run by itself" if due.plan.due else ""
    return NoWork(f"{due.plan.why}{waits}{_next_attempt(due, tick.now)}")


def _work_of(names: DagsterDataflowNames, due: DueRuns) -> Work:
    return Work(due.entry, due.digest, lambda attempt: _requests(names, due, attempt), new_keys=due.new_keys)


def _next_attempt(due: DueRuns, now: datetime) -> str:
    """Return when failed work units are retried, for people; "" if none waits."""
    state = WindowState.of(due.entry.state() if due.entry else None)
    waits = [
        failure.wait(milliseconds(now))
        for slice_ in due.plan.slices
        for work in slice_.works
        if (failure := state.failed.get(work.unit, {}).get(work.start)) is not None
    ]
    remaining_waits = [wait for wait in waits if wait > 0]
    return (
        f"; failed work units are retried in {format_duration(min(remaining_waits))}"
        if remaining_waits
        else ""
    )


def window_schedule(
    dataflow: Dataflow,
    platform: Platform,
    names: DagsterDataflowNames,
    job: Any,
    partitions: WindowPartitions,
) -> ScheduleDefinition:
    """Return a schedule that requests everything due, also open windows and those within the grace."""

    def requests(instance: DagsterInstance, now: datetime) -> list[RunRequest] | SkipReason:
        runs = due_runs(dataflow, platform, partitions, instance, now, everything=True)
        for request in runs.new_keys:
            instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        return _requests(names, runs, now.isoformat()) or SkipReason(runs.plan.why)

    description = f"Requests everything that is due of {dataflow.name}."
    return build_schedule(dataflow, platform, names, job, dataflow.window.timezone, description, requests)


def _requests(names: DagsterDataflowNames, due: DueRuns, attempt: str) -> list[RunRequest]:
    """Return one run for each range, which loads what is then due of it. ``attempt`` makes its key unique."""
    return [
        RunRequest(
            run_key=f"{names.dataflow}:{due.digest}:{number}:{attempt}",
            partition_key=range_.partitions.partition_key,
            tags={
                **names.run_tags,
                PLAN_TAG: range_.in_words(len(due.works)),
                **range_.partitions.tags,
            },
        )
        for number, range_ in enumerate(due.ranges)
    ]


def _new_keys(
    partitions: WindowPartitions,
    instance: DagsterInstance,
    windows: Windows | None,
    units: Callable[[], Sequence[str]],
) -> list[AddDynamicPartitionsRequest]:
    listed = units() if partitions.units_name else ()
    return partitions.missing_keys(
        _keys(instance, partitions.windows_name), _keys(instance, partitions.units_name), windows, listed
    )


def _dynamic_keys(
    partitions: WindowPartitions, instance: DagsterInstance, new_keys: Sequence[AddDynamicPartitionsRequest]
) -> tuple[list[str], list[str]]:
    """Return the dynamic keys of windows and of units in Dagster's order, then the keys to be added."""
    added = {request.partitions_def_name: list(request.partition_keys) for request in new_keys}

    def keys(name: str | None) -> list[str]:
        return [*_keys(instance, name), *added.get(name or "", [])]

    return keys(partitions.windows_name), keys(partitions.units_name)


def _keys(instance: DagsterInstance, name: str | None) -> list[str]:
    return list(instance.get_dynamic_partitions(name)) if name else []
