"""The shell of every sensor: one run at a time, after the upstream's runs, with growing pauses.

The watermark log alone decides. A run made progress if it appended an entry; an entry that only abandons a
number is no progress. So a file that stays bad does not start a run every half minute for two weeks.
What a sensor checks, and what it requests, belongs to its kind (``platform_assets.factory.kinds``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dagster import (
    DagsterInstance,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)

from partitions.dataflow import Dataflow
from partitions.errors import ProviderError, StrandlineError
from platform_assets.factory.cursor import SensorCursor
from platform_assets.factory.default_status import default_sensor_status
from platform_assets.factory.in_flight import (
    ObservedLease,
    RunRecords,
    describe_runs_in_flight,
    find_run_in_flight,
    records_in_flight,
)
from platform_assets.factory.look_reports import LookReports, pause_events
from platform_assets.factory.noted_names import note_names
from platform_assets.factory.outside_loads import OutsideLoads
from platform_assets.factory.ticks import Clock, NoWork, Tick, Work
from resources.dagster.names import DagsterDataflowNames
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.notes.last_run import look_without_note, noted_look
from resources.platform.platform import Platform
from resources.watermarks.log import WatermarkLog

_MAX_ENTRIES = 100
"""The most entries to read in search of the newest entry with progress; from tick to tick only new entries are read."""


@dataclass(frozen=True)
class SensorShell:
    """The parts of a sensor that do not depend on its work.

    Attributes:
        name: the part after the dataflow's name.
        description: for people.
        interval: the least seconds between two ticks, if the project sets none.
        clock: returns epoch seconds.
        has_fixed_interval: whether ``interval`` holds whatever the project sets.
        reports_up_to_date: whether it searches for all new data, and reports the check ``up_to_date``.
        partitions: the dataflow's partitions; None if it has none.
        shows_outside_loads: whether it shows loads that no run of this Dagster has made.
    """

    name: str
    description: str
    interval: int = 30
    clock: Clock = time.time
    has_fixed_interval: bool = False
    reports_up_to_date: bool = True
    partitions: WindowAssetPartitions | None = None
    shows_outside_loads: bool = True

    def build(
        self,
        dataflow: Dataflow,
        platform: Platform,
        names: DagsterDataflowNames,
        job: Any,
        find_work: Callable[[Tick], NoWork | Work],
    ) -> DataflowSensor:
        """Return the sensor that requests runs of ``job`` for the work that ``find_work`` returns.

        An exception of ``find_work`` fails the tick.
        """
        shell = replace(self, interval=self._interval(platform))
        upstream = (
            platform.lineage.all_upstream_dataflows(dataflow.name) if dataflow.run_after_upstream else ()
        )
        evaluate = _Evaluation(
            shell,
            dataflow,
            platform,
            names,
            find_work,
            upstream,
            LookReports(dataflow, platform, names, shell.interval),
            OutsideLoads(dataflow, platform, names, self.partitions),
        )
        return DataflowSensor(shell, names, {dataflow.name, *upstream}, job, evaluate)

    def _interval(self, platform: Platform) -> int:
        """Return the seconds between ticks: the project's, or else the sensor's own or fixed ones."""
        project_interval = platform.sensor_interval
        return (
            self.interval
            if project_interval is None or self.has_fixed_interval
            else int(project_interval.total_seconds())
        )


@dataclass(frozen=True)
class _Evaluation:
    """Evaluates the sensor of a dataflow, once a tick.

    Attributes:
        shell: the sensor's parts that do not depend on its work.
        dataflow: the dataflow.
        platform: its resources.
        names: its names in Dagster.
        find_work: returns the work of a tick.
        upstream: the dataflows whose runs it waits for.
        reports: the check ``up_to_date``.
        outside_loads: loads that no run of this Dagster has made.
    """

    shell: SensorShell
    dataflow: Dataflow
    platform: Platform
    names: DagsterDataflowNames
    find_work: Callable[[Tick], NoWork | Work]
    upstream: Collection[str]
    reports: LookReports
    outside_loads: OutsideLoads

    def __call__(self, instance: DagsterInstance, text: str | None, records: RunRecords) -> SensorResult:
        """Return what to do, given the cursor of the last tick and the runs in flight."""
        note_names(instance, self.platform, self.names.project)
        if self.shell.shows_outside_loads:
            self.outside_loads.show(instance)
        seconds = self.shell.clock()
        try:
            return self._requests(instance, SensorCursor.read(text), records, seconds)
        except ProviderError as error:
            if self.shell.reports_up_to_date:
                self.reports.report_failure(instance, seconds, look_without_note(error))
            raise

    def _requests(
        self, instance: DagsterInstance, cursor: SensorCursor, records: RunRecords, seconds: float
    ) -> SensorResult:
        log = self.platform.log
        busy = find_run_in_flight(
            instance, log, self.names.tags, self.dataflow.name, seconds, records, cursor.lease
        )
        if busy is not None:
            return _skip(busy.reason, replace(cursor, lease=busy.lease))
        upstream_runs = describe_runs_in_flight(records, log, self.upstream, seconds)
        awaited = _runs_to_await(upstream_runs, cursor)
        cursor = replace(cursor, awaited=tuple(awaited))
        if awaited:
            return _skip(f"waits for its upstream: {next(iter(awaited.values()))}", cursor)
        tick = Tick(instance, seconds, cursor.resume, cursor.handled)
        work = self._look(tick)
        if isinstance(work, NoWork):
            has_seen_all = self.shell.reports_up_to_date and not work.resume
            evaluations = self.reports.of_nothing_new(instance, seconds, work) if has_seen_all else []
            next_cursor = cursor.after_nothing(work.resume, work.handled)
            return _skip(work.why, next_cursor, [*work.events, *evaluations])
        self.reports.forget()  # the run reports the check
        progress = _newest_progress(log, self.dataflow.name, cursor, work)
        return _request_runs(self.dataflow, self.platform, self.names, cursor, work, progress, tick)

    def _look(self, tick: Tick) -> NoWork | Work:
        """Return what there is to do; a look for all new data is noted for ``strandline list``."""
        look = partial(self._find_work_or_wait, tick)
        if not self.shell.reports_up_to_date:
            return look()
        on_failure = partial(self.reports.report_failure, tick.instance, tick.seconds)
        return noted_look(self.platform.log, self.dataflow.name, look, _may_have_work, on_failure)

    def _find_work_or_wait(self, tick: Tick) -> NoWork | Work:
        """Return the work, or no work while an upstream dataflow has yet to create its table.

        It waits whether or not the search fails because of the missing table.
        """
        try:
            work = self.find_work(tick)
        except StrandlineError as error:
            waits = self.platform.waits_for_upstream(self.dataflow)
            if not waits or not error.is_of_missing_source:
                raise
            return NoWork(waits)
        if isinstance(work, NoWork) or not self.dataflow.run_after_upstream:
            return work
        waits = self.platform.waits_for_upstream(self.dataflow)
        return NoWork(waits) if waits else work


def _may_have_work(result: NoWork | Work) -> bool:
    return isinstance(result, Work) or bool(result.resume)


Evaluate = Callable[[DagsterInstance, str | None, RunRecords], SensorResult]
"""Evaluates a sensor once, given Dagster, the cursor of the last tick, and the runs in flight."""


@dataclass(frozen=True)
class DataflowSensor:
    """The sensor of one dataflow; a group may evaluate it instead.

    Attributes:
        shell: its name, without the dataflow's, and its interval.
        names: the dataflow's names.
        watched: the dataflows whose runs in flight an evaluation needs.
        job: the job of the runs that it requests.
        evaluate: one evaluation.
    """

    shell: SensorShell
    names: DagsterDataflowNames
    watched: Collection[str]
    job: Any
    evaluate: Evaluate

    @property
    def dataflow(self) -> str:
        """The dataflow's name."""
        return self.names.dataflow

    def definition(self) -> SensorDefinition:
        """Return a sensor of Dagster that runs; many of them take long to make."""

        def tick(context: SensorEvaluationContext) -> SensorResult:
            records = records_in_flight(context.instance, self.names.tags, self.watched)
            return self.evaluate(context.instance, context.cursor, records)

        return SensorDefinition(
            name=self.names.trigger(self.shell.name),
            job=self.job,
            minimum_interval_seconds=self.shell.interval,
            default_status=default_sensor_status(),
            description=self.shell.description,
            evaluation_fn=tick,
        )


def _runs_to_await(runs: Mapping[str, str], cursor: SensorCursor) -> Mapping[str, str]:
    """Return the upstream runs to wait for; runs that began during a wait do not prolong it."""
    return {run: reason for run, reason in runs.items() if not cursor.awaited or run in cursor.awaited}


def _request_runs(
    dataflow: Dataflow,
    platform: Platform,
    names: DagsterDataflowNames,
    cursor: SensorCursor,
    work: Work,
    progress: str,
    tick: Tick,
) -> SensorResult:
    """Return the request for runs, or a skip during the pause after the last attempt."""
    number = work.entry.number if work.entry else 0
    cursor = replace(cursor, entry_number=number, resume="", lease=ObservedLease())
    seconds_left = cursor.attempts.wait(progress, work.digest, tick.seconds)
    if seconds_left > 0:
        reason = work.unfinished.format(cursor.attempts.count, int(seconds_left))
        is_reported = cursor.paused == cursor.attempts.name
        pause_reports = (
            () if is_reported else pause_events(dataflow, platform, names, reason, tick, seconds_left)
        )
        return _skip(reason, replace(cursor, paused=cursor.attempts.name), [*work.events, *pause_reports])
    next_attempt = cursor.attempts.next(progress, work.digest, tick.seconds)
    requests = list(work.requests(next_attempt.name))
    return SensorResult(
        run_requests=requests,
        skip_reason=None
        if requests
        else SkipReason("partitions are added; the next tick requests runs over them"),
        cursor=(replace(cursor, attempts=next_attempt) if requests else cursor).write(),
        dynamic_partitions_requests=list(work.new_keys),
        asset_events=work.events,
    )


def _skip(reason: str, cursor: SensorCursor, events: Sequence[Any] = ()) -> SensorResult:
    return SensorResult(skip_reason=SkipReason(reason), cursor=cursor.write(), asset_events=events)


def _newest_progress(log: WatermarkLog, dataflow: str, cursor: SensorCursor, work: Work) -> str:
    """Return the id of the newest entry with progress, or "".

    Only entries since the last tick are read; the cursor has the rest.
    """
    entry = work.entry
    if entry is None:
        return ""
    if entry.why not in work.no_progress:
        return entry.id
    for older in log.history(dataflow, _MAX_ENTRIES):
        if older.number <= cursor.entry_number:
            break
        if older.why not in work.no_progress:
            return older.id
    return cursor.attempts.done
