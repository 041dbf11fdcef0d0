"""The sensors and the schedule of a window watermark: all request due windows as runs over ranges of partitions (docs/reference/dagster.md).

The sensor requests a run for windows that are over, for failed windows after a pause that doubles, and for windows that the cap has
deferred. The run also loads the windows within the grace. The schedule, and the sensor of upstream tables, request everything that is due.
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
    SensorDefinition,
    SkipReason,
)

from partitions.dagster_partitions import PartitionRange, WindowPartitions
from partitions.dataflow import Dataflow
from partitions.instants import milliseconds
from partitions.plan import Plan, counted, lasting
from partitions.window.fair_share import fairly
from partitions.window.slices import WindowSlice
from partitions.window.state import WindowState
from partitions.window.wake_rule import worth_a_run
from partitions.window.windows import Windows
from partitions.window.work_unit import WorkUnit
from platform_assets.factory.schedules import build_schedule
from platform_assets.factory.sensors import Clock, NoWork, SensorShell, Tick, Work, digest
from platform_assets.factory.upstream import upstream_sensor
from resources.dagster.io_managers import PLAN_TAG
from resources.dagster.unreported_entries import DATAFLOW_TAG
from resources.kinds.window.opening import open_windows, units_of, windows_of
from resources.platform.platform import Platform
from resources.watermarks.entry import Entry

_MOST_RUNS = 10
"""Runs that one tick requests; the rest is requested when they are over."""


@dataclass(frozen=True)
class DueRuns:
    """The result of an evaluation of the plan.

    Attributes:
        plan: of now.
        works: the work units that a run is requested for.
        new_keys: partitions to add to Dagster first.
        ranges: the runs.
        entry: that the plan was made on.
    """

    plan: Plan[WindowSlice]
    works: Sequence[WorkUnit]
    new_keys: Sequence[AddDynamicPartitionsRequest]
    ranges: Sequence[PartitionRange]
    entry: Entry | None

    @property
    def digest(self) -> str:
        """Return a short text that identifies these runs."""
        return digest([tuple(range_) for range_ in self.ranges], self.works[0].key if self.works else None)


def due_runs(
    dataflow: Dataflow,
    platform: Platform,
    partitions: WindowPartitions,
    instance: DagsterInstance,
    now: datetime,
    *,
    everything: bool,
) -> DueRuns:
    """Return the runs that the plan asks for. Starts no Spark, changes nothing.

    Args:
        dataflow: the definition.
        platform: the resources.
        partitions: of the dataflow.
        instance: which knows the dynamic partitions.
        now: the clock, aware.
        everything: whether all that is due is requested; else only windows that are worth a run of their own.
    """
    entry = platform.log.newest(dataflow.name)
    # A source is asked once, for the plan and for the partitions.
    units = cache(partial(units_of, platform, dataflow))
    plan = platform.plan(dataflow, now, open_windows(platform, dataflow, units=units))
    due = [work for slice_ in plan.slices for work in slice_.works]
    state = WindowState.of(entry.state() if entry else None)
    works = due if everything else worth_a_run(dataflow.window, state, due, now)
    windows = windows_of(platform, dataflow).windows(now) if dataflow.window.time_entry else None
    new = _new_keys(partitions, instance, windows, units) if works else []
    known = _known(partitions, instance, new)

    def ranges(*, failed: bool) -> list[PartitionRange]:
        some = [work for work in works if (work.reason == "failed") == failed]
        return partitions.ranges(some, windows, known_windows=known[0], known_units=known[1])

    return DueRuns(plan, works, new, fairly(ranges(failed=False), ranges(failed=True), _MOST_RUNS), entry)


def window_sensor(
    dataflow: Dataflow,
    platform: Platform,
    job: Any,
    partitions: WindowPartitions,
    clock: Clock = time.time,
) -> SensorDefinition:
    """Return a sensor that evaluates the plan and requests runs of ``job`` over ranges of partitions."""
    look = partial(_due_work, dataflow, platform, partitions, everything=False)
    description = (
        f"Finds windows of {dataflow.name} that became due or failed, and asks for runs over ranges of them."
    )
    return SensorShell("windows", description, clock=clock).build(dataflow, platform, job, look)


def window_upstream_sensor(
    dataflow: Dataflow,
    platform: Platform,
    job: Any,
    partitions: WindowPartitions,
    clock: Clock = time.time,
) -> SensorDefinition:
    """Return a sensor that requests runs of ``job`` for everything that is due when an upstream table has changed."""
    look = partial(_due_work, dataflow, platform, partitions, everything=True)
    return upstream_sensor(dataflow, platform, job, look, clock)


def _due_work(
    dataflow: Dataflow, platform: Platform, partitions: WindowPartitions, tick: Tick, *, everything: bool
) -> NoWork | Work:
    """Return the runs to request in a tick of a sensor; ``everything``: as :func:`due_runs` has it."""
    due = due_runs(dataflow, platform, partitions, tick.instance, tick.now, everything=everything)
    if due.works:
        return _work(dataflow, due)
    if everything:
        return NoWork(due.plan.why)
    return NoWork(f"{due.plan.why}; nothing of it is worth waking a run{_next_attempt(due, tick.now)}")


def _work(dataflow: Dataflow, due: DueRuns) -> Work:
    return Work(
        due.entry, due.digest, lambda attempt: _requests(dataflow, due, attempt), new_keys=due.new_keys
    )


def _next_attempt(due: DueRuns, now: datetime) -> str:
    """Return when failed work units are tried again, for people; "" if none waits."""
    state = WindowState.of(due.entry.state() if due.entry else None)
    waits = [
        failure.wait(milliseconds(now))
        for slice_ in due.plan.slices
        for work in slice_.works
        if (failure := state.failed.get(work.unit, {}).get(work.start)) is not None
    ]
    left = [wait for wait in waits if wait > 0]
    return f"; what failed is tried again in {lasting(min(left))}" if left else ""


def window_schedule(
    dataflow: Dataflow, platform: Platform, job: Any, partitions: WindowPartitions
) -> ScheduleDefinition:
    """Return a schedule that requests everything that is due, also open windows and windows within the grace."""

    def requests(instance: DagsterInstance, now: datetime) -> list[RunRequest] | SkipReason:
        runs = due_runs(dataflow, platform, partitions, instance, now, everything=True)
        for request in runs.new_keys:
            instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
        return _requests(dataflow, runs, now.isoformat()) or SkipReason(runs.plan.why)

    description = f"Asks for everything that is due of {dataflow.name}."
    return build_schedule(dataflow, platform, job, dataflow.window.timezone, description, requests)


def _requests(dataflow: Dataflow, due: DueRuns, attempt: str) -> list[RunRequest]:
    """Return one run for each range; each loads what is due of it when it runs. ``attempt`` makes its key unique."""
    shown = f"{counted(len(due.works), 'work unit')} due"
    return [
        RunRequest(
            run_key=f"{dataflow.name}:{due.digest}:{number}:{attempt}",
            partition_key=range_.partition_key,
            tags={DATAFLOW_TAG: dataflow.name, PLAN_TAG: shown, **range_.tags},
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


def _known(
    partitions: WindowPartitions, instance: DagsterInstance, new: Sequence[AddDynamicPartitionsRequest]
) -> tuple[list[str], list[str]]:
    """Return the dynamic keys of windows and units in Dagster's order, followed by the keys that are about to be added."""
    added = {request.partitions_def_name: list(request.partition_keys) for request in new}

    def keys(name: str | None) -> list[str]:
        return [*_keys(instance, name), *added.get(name or "", [])]

    return keys(partitions.windows_name), keys(partitions.units_name)


def _keys(instance: DagsterInstance, name: str | None) -> list[str]:
    return list(instance.get_dynamic_partitions(name)) if name else []
