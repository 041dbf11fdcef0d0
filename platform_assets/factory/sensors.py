"""The shell of every sensor: one run at a time, after the upstream's runs, with growing pauses.

The watermark log alone decides. A run made progress if it appended an entry; an entry that only abandons a
number is no progress. So a file that stays bad does not start a run every half minute for two weeks.
What a sensor checks, and what it requests, belongs to its kind (``platform_assets.factory.kinds``).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from dagster import (
    AddDynamicPartitionsRequest,
    AssetCheckEvaluation,
    AssetObservation,
    DagsterInstance,
    MetadataValue,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from platform_assets.factory.asset_checks import (
    NEXT_ATTEMPT,
    failed_look_evaluation,
    failing_text,
    nothing_new_text,
    reported_part,
    up_to_date_evaluation,
    up_to_date_key,
    why_metadata,
)
from platform_assets.factory.cursor import SensorCursor
from platform_assets.factory.dagster_names import table_key
from platform_assets.factory.default_status import default_sensor_status
from platform_assets.factory.in_flight import (
    ObservedLease,
    RunRecords,
    describe_runs_in_flight,
    find_run_in_flight,
    records_in_flight,
)
from platform_assets.factory.last_reported import LastReported
from platform_assets.run_metadata import error_metadata
from resources.notes.last_run import Attempt, last_attempt, noted_look
from resources.platform.platform import Platform
from resources.watermarks.entry import NO_PROGRESS, Entry, Why
from resources.watermarks.log import WatermarkLog

Clock = Callable[[], float]
"""A function that returns epoch seconds."""

_MAX_ENTRIES = 100
"""The most entries to read in search of the newest entry with progress; from tick to tick only new entries are read."""


@dataclass(frozen=True)
class Tick:
    """One evaluation of a sensor.

    Attributes:
        instance: the Dagster instance.
        seconds: epoch seconds of the sensor's clock.
        resume: where the listing of the last tick ran out of its budget, or "".
        handled: the changes of upstream tables that need no further run, or "".
    """

    instance: DagsterInstance
    seconds: float
    resume: str = ""
    handled: str = ""

    @property
    def now(self) -> datetime:
        """Return the time of the tick, in UTC."""
        return datetime.fromtimestamp(self.seconds, UTC)


@dataclass(frozen=True)
class NoWork:
    """A tick that requests nothing.

    Attributes:
        why: for people.
        resume: where the next tick's listing continues, or "".
        handled: the changes of upstream tables that need no further run, or "".
        events: what the tick reports.
    """

    why: str
    resume: str = ""
    handled: str = ""
    events: Sequence[Any] = ()


@dataclass(frozen=True)
class Work:
    """The work that a tick has found.

    Attributes:
        entry: the newest entry.
        digest: identifies the work: see :func:`digest`.
        requests: returns the runs of an attempt, given a text that no other attempt has: Dagster runs a
        key only once, even if the run fails.
        new_keys: partitions to add to Dagster first.
        events: what the tick reports.
        no_progress: the reasons of entries that are no progress with this work.
        unfinished: the skip reason during the pause after an attempt, formatted with its number and the
        seconds left.
    """

    entry: Entry | None
    digest: str
    requests: Callable[[str], Sequence[RunRequest]]
    new_keys: Sequence[AddDynamicPartitionsRequest] = ()
    events: Sequence[Any] = ()
    no_progress: frozenset[Why] = NO_PROGRESS
    unfinished: str = "attempt {} did not commit; the next one is in {} s"


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
    """

    name: str
    description: str
    interval: int = 30
    clock: Clock = time.time
    has_fixed_interval: bool = False
    reports_up_to_date: bool = True

    def build(
        self, dataflow: Dataflow, platform: Platform, job: Any, find_work: Callable[[Tick], NoWork | Work]
    ) -> DataflowSensor:
        """Return the sensor that requests runs of ``job`` for the work that ``find_work`` returns.

        An exception of ``find_work`` fails the tick.
        """
        reports = _LookReports(dataflow, platform, self._interval(platform))
        upstream = (
            platform.lineage.all_upstream_dataflows(dataflow.name) if dataflow.run_after_upstream else ()
        )

        def evaluate(instance: DagsterInstance, text: str | None, records: RunRecords) -> SensorResult:
            cursor, seconds = SensorCursor.read(text), self.clock()
            busy = find_run_in_flight(instance, platform.log, dataflow.name, seconds, records, cursor.lease)
            if busy is not None:
                return _skip(busy.reason, replace(cursor, lease=busy.lease))
            awaited = _runs_to_await(
                describe_runs_in_flight(records, platform.log, upstream, seconds), cursor
            )
            cursor = replace(cursor, awaited=tuple(awaited))
            if awaited:
                return _skip(f"waits for its upstream: {next(iter(awaited.values()))}", cursor)
            this_tick = Tick(instance, seconds, cursor.resume, cursor.handled)

            def look() -> NoWork | Work:
                return _find_work_or_wait(find_work, this_tick, dataflow, platform)

            if self.reports_up_to_date:
                on_failure = partial(reports.report_failure, instance, seconds)
                work = noted_look(platform.log, dataflow.name, look, _may_have_work, on_failure)
            else:
                work = look()
            if isinstance(work, NoWork):
                has_seen_all = self.reports_up_to_date and not work.resume
                evaluations = reports.of_nothing_new(instance, seconds, work) if has_seen_all else []
                next_cursor = cursor.after_nothing(work.resume, work.handled)
                return _skip(work.why, next_cursor, [*work.events, *evaluations])
            reports.forget()  # the run reports the check
            progress = _newest_progress(platform.log, dataflow.name, cursor, work)
            return _request_runs(dataflow, platform, cursor, work, progress, this_tick)

        shell, watched = replace(self, interval=self._interval(platform)), {dataflow.name, *upstream}
        return DataflowSensor(shell, dataflow.name, watched, job, evaluate)

    def _interval(self, platform: Platform) -> int:
        """Return the seconds between ticks: the project's, or else the sensor's own or fixed ones."""
        project_interval = platform.sensor_interval
        return (
            self.interval
            if project_interval is None or self.has_fixed_interval
            else int(project_interval.total_seconds())
        )


class _LookReports:
    """Reports the check ``up_to_date`` of a table by the looks of its sensor: changes, and once a day."""

    def __init__(self, dataflow: Dataflow, platform: Platform, interval: int) -> None:
        self._dataflow, self._platform, self._interval = dataflow, platform, interval
        self._last = LastReported(
            up_to_date_key(dataflow), lambda evaluation: reported_part(evaluation.description)
        )

    def of_nothing_new(
        self, instance: DagsterInstance, seconds: float, no_work: NoWork
    ) -> Sequence[AssetCheckEvaluation]:
        """Return the result of a look that found nothing; nothing if it was reported already."""
        text = nothing_new_text(no_work.why)
        if not self._last.should_report(instance, reported_part(text), seconds):
            return []
        why = why_metadata(self._platform, self._dataflow, datetime.fromtimestamp(seconds, UTC))
        return [up_to_date_evaluation(self._dataflow, text, why, passed=True)]

    def report_failure(self, instance: DagsterInstance, seconds: float, look: Attempt) -> None:
        """Report a look that failed. Its tick fails, too, and a tick that fails has no events of its own."""
        if self._last.should_report(instance, reported_part(failing_text(look)), seconds):
            next_look = datetime.fromtimestamp(seconds + self._interval, UTC)
            why = why_metadata(self._platform, self._dataflow, datetime.fromtimestamp(seconds, UTC))
            instance.report_runless_asset_event(failed_look_evaluation(self._dataflow, look, next_look, why))

    def forget(self) -> None:
        """Report the next look whatever it finds: a run reports the check, too."""
        self._last.forget()


def _find_work_or_wait(
    find_work: Callable[[Tick], NoWork | Work], tick: Tick, dataflow: Dataflow, platform: Platform
) -> NoWork | Work:
    """Return the work, or no work while an upstream dataflow has yet to create its table.

    It waits whether or not the search fails because of the missing table.
    """
    try:
        work = find_work(tick)
    except StrandlineError as error:
        waits = platform.waits_for_upstream(dataflow)
        if not waits or not error.is_of_missing_source:
            raise
        return NoWork(waits)
    if isinstance(work, NoWork) or not dataflow.run_after_upstream:
        return work
    waits = platform.waits_for_upstream(dataflow)
    return NoWork(waits) if waits else work


def _may_have_work(result: NoWork | Work) -> bool:
    return isinstance(result, Work) or bool(result.resume)


Evaluate = Callable[[DagsterInstance, str | None, RunRecords], SensorResult]
"""Evaluates a sensor once, given Dagster, the cursor of the last tick, and the runs in flight."""


class DataflowSensor(SensorDefinition):
    """The sensor of one dataflow; a group may evaluate it instead.

    Attributes:
        shell: its name, without the dataflow's, and its interval.
        dataflow: the dataflow's name.
        watched: the dataflows whose runs in flight an evaluation needs.
        evaluate: one evaluation.
    """

    def __init__(
        self, shell: SensorShell, dataflow: str, watched: Collection[str], job: Any, evaluate: Evaluate
    ) -> None:
        """Create a running sensor."""
        self.shell, self.dataflow, self.watched, self.evaluate = shell, dataflow, watched, evaluate

        def tick(context: SensorEvaluationContext) -> SensorResult:
            records = records_in_flight(context.instance, watched)
            return evaluate(context.instance, context.cursor, records)

        super().__init__(
            name=f"{dataflow}_{shell.name}",
            job=job,
            minimum_interval_seconds=shell.interval,
            default_status=default_sensor_status(),
            description=shell.description,
            evaluation_fn=tick,
        )


def digest(*parts: object) -> str:
    """Return a short text that identifies some work."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _runs_to_await(runs: Mapping[str, str], cursor: SensorCursor) -> Mapping[str, str]:
    """Return the upstream runs to wait for; runs that began during a wait do not prolong it."""
    return {run: reason for run, reason in runs.items() if not cursor.awaited or run in cursor.awaited}


def _request_runs(
    dataflow: Dataflow, platform: Platform, cursor: SensorCursor, work: Work, progress: str, tick: Tick
) -> SensorResult:
    """Return the request for runs, or a skip during the pause after the last attempt."""
    number = work.entry.number if work.entry else 0
    cursor = replace(cursor, entry_number=number, resume="", lease=ObservedLease())
    seconds_left = cursor.attempts.wait(progress, work.digest, tick.seconds)
    if seconds_left > 0:
        reason = work.unfinished.format(cursor.attempts.count, int(seconds_left))
        is_reported = cursor.paused == cursor.attempts.name
        pause_events = () if is_reported else _pause_events(dataflow, platform, reason, tick, seconds_left)
        return _skip(reason, replace(cursor, paused=cursor.attempts.name), [*work.events, *pause_events])
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


def _pause_events(
    dataflow: Dataflow, platform: Platform, reason: str, tick: Tick, seconds_left: float
) -> Sequence[Any]:
    """Return the events that show on the table's page why nothing runs; called once for each pause.

    They include the error of the last attempt and the time of the next one.
    """
    until = datetime.fromtimestamp(tick.seconds + seconds_left, UTC)
    metadata: dict[str, Any] = {
        "why_nothing_runs": reason,
        NEXT_ATTEMPT: MetadataValue.timestamp(until),
    }
    attempt = last_attempt(platform.log, dataflow.name)
    if attempt is not None and attempt.error is not None:
        metadata |= error_metadata(attempt.error["message"], attempt.error["choices"])
        metadata |= {"failing_since": attempt.failing_since} if attempt.failing_since else {}
    why = {
        NEXT_ATTEMPT: MetadataValue.timestamp(until),
        **why_metadata(platform, dataflow, tick.now),
    }
    waits = up_to_date_evaluation(dataflow, f"New data waits: {reason}", why, passed=False)
    return AssetObservation(table_key(dataflow), metadata=metadata), waits


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
