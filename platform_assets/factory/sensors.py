"""The shell of every sensor: one run at a time, after those of its upstream, and unfinished work is requested again after growing pauses.

The watermark log alone decides. A run made progress if it appended an entry; an entry that only abandons a number
is no progress. So a file that stays bad does not start a run every half minute for two weeks.

What a sensor looks at, and what it requests, belongs to its kind (``platform_assets.kinds``).
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from dagster import (
    AddDynamicPartitionsRequest,
    AssetObservation,
    DagsterInstance,
    DefaultSensorStatus,
    MetadataValue,
    RunRequest,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)

from partitions.dataflow import Dataflow
from partitions.errors import SourceError
from platform_assets.factory.asset_checks import names_passed_over, nothing_new, up_to_date, up_to_date_key
from platform_assets.factory.cursor import SensorCursor
from platform_assets.factory.dagster_names import table_key
from platform_assets.factory.in_flight import Records, Sign, in_flight, records_in_flight, runs_in_flight
from platform_assets.factory.last_told import LastTold
from platform_assets.run_metadata import error_metadata
from resources.notes.last_run import last_attempt
from resources.platform.platform import Platform
from resources.watermarks.entry import NO_PROGRESS, Entry, Why
from resources.watermarks.log import WatermarkLog

Clock = Callable[[], float]
"""Epoch seconds."""

_FAR = 100
"""The most entries to read in search of the newest entry with progress; from tick to tick only new entries are read."""


@dataclass(frozen=True)
class Tick:
    """One evaluation of a sensor.

    Attributes:
        instance: Dagster's.
        seconds: epoch seconds of the sensor's clock.
        resume: where the listing of the last tick ran out of its budget, or "".
        handled: the changes of upstream tables that need no run any more, or "".
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
        handled: the changes of upstream tables that need no run any more, or "".
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
        entry: the newest.
        digest: identifies the work: see :func:`digest`.
        requests: returns the runs of an attempt, given a text of its own: Dagster runs a key once for ever, also if the run fails.
        new_keys: partitions to add to Dagster first.
        events: what the tick reports.
        no_progress: kinds of entries that make no progress with the work.
        unfinished: the reason to skip during the pause after an attempt, formatted with its number and the seconds left.
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
    """A sensor without its look.

    Attributes:
        name: the part behind the dataflow's name.
        description: for people.
        interval: seconds between two ticks, at least, if the project names none.
        clock: epoch seconds.
        paced: whether that holds whatever the project names.
        tells: whether it looks for all that is new, and tells of the check that nothing waits.
    """

    name: str
    description: str
    interval: int = 30
    clock: Clock = time.time
    paced: bool = False
    tells: bool = True

    def build(
        self, dataflow: Dataflow, platform: Platform, job: Any, look: Callable[[Tick], NoWork | Work]
    ) -> DataflowSensor:
        """Return the sensor, which requests runs of ``job`` for the work that ``look`` finds; what ``look`` raises fails the tick."""
        last = LastTold(up_to_date_key(dataflow), lambda told: names_passed_over(told.description))
        upstream = (
            platform.lineage.all_upstream_dataflows(dataflow.name) if dataflow.run_after_upstream else ()
        )

        def evaluate(instance: DagsterInstance, text: str | None, records: Records) -> SensorResult:
            cursor, seconds = SensorCursor.read(text), self.clock()
            busy = in_flight(instance, platform.log, dataflow.name, seconds, records, cursor.sign)
            if busy is not None:
                return _skip(busy.reason, replace(cursor, sign=busy.sign))
            waits = _awaited(runs_in_flight(records, platform.log, upstream, seconds), cursor)
            cursor = replace(cursor, awaited=tuple(waits))
            if waits:
                return _skip(f"waits for its upstream: {next(iter(waits.values()))}", cursor)
            work = _looked(look, Tick(instance, seconds, cursor.resume, cursor.handled), dataflow, platform)
            if isinstance(work, NoWork):
                seen_all = self.tells and not work.resume
                said = nothing_new(work.why)
                is_news = seen_all and last.is_news(instance, names_passed_over(said), seconds)
                told = [up_to_date(dataflow, said, passed=True)] if is_news else []
                after = cursor.after_nothing(work.resume, work.handled)
                return _skip(work.why, after, [*work.events, *told])
            last.forget()  # the run will tell of it
            progress = _progress(platform.log, dataflow.name, cursor, work)
            return _request(dataflow, platform.log, cursor, work, progress, seconds)

        shell, awaits = replace(self, interval=self._interval(platform)), {dataflow.name, *upstream}
        return DataflowSensor(shell, dataflow.name, awaits, job, evaluate)

    def _interval(self, platform: Platform) -> int:
        """Return the project's interval, unless this sensor takes steps of its own length."""
        asked = platform.sensor_interval
        return self.interval if asked is None or self.paced else int(asked.total_seconds())


def _looked(
    look: Callable[[Tick], NoWork | Work], tick: Tick, dataflow: Dataflow, platform: Platform
) -> NoWork | Work:
    """Look; a table that its own dataflow has yet to make is no failure, but a reason to wait, whether or not the look has missed it."""
    try:
        found = look(tick)
    except SourceError as error:
        waits = platform.waits_for_upstream(dataflow)
        if error.code != "source_missing" or not waits:
            raise
        return NoWork(waits)
    if isinstance(found, NoWork) or not dataflow.run_after_upstream:
        return found
    waits = platform.waits_for_upstream(dataflow)
    return NoWork(waits) if waits else found


Evaluate = Callable[[DagsterInstance, str | None, Records], SensorResult]
"""Looks once: gets Dagster, the cursor that the last look left, and the runs in flight."""


class DataflowSensor(SensorDefinition):
    """The sensor of one dataflow, which a group may look for instead.

    Attributes:
        shell: its name behind the dataflow's, and its interval.
        dataflow: its name.
        awaits: the dataflows whose runs in flight a look must know.
        evaluate: one look.
    """

    def __init__(
        self, shell: SensorShell, dataflow: str, awaits: Collection[str], job: Any, evaluate: Evaluate
    ) -> None:
        """Make it, running."""
        self.shell, self.dataflow, self.awaits, self.evaluate = shell, dataflow, awaits, evaluate

        def tick(context: SensorEvaluationContext) -> SensorResult:
            records = records_in_flight(context.instance, awaits)
            return evaluate(context.instance, context.cursor, records)

        super().__init__(
            name=f"{dataflow}_{shell.name}",
            job=job,
            minimum_interval_seconds=shell.interval,
            default_status=DefaultSensorStatus.RUNNING,
            description=shell.description,
            evaluation_fn=tick,
        )


def digest(*parts: object) -> str:
    """Return a short text that identifies some work."""
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def _awaited(runs: Mapping[str, str], cursor: SensorCursor) -> Mapping[str, str]:
    """Return the runs of upstream dataflows to wait for. Of runs that began while others were waited for none holds a sensor up."""
    return {run: reason for run, reason in runs.items() if not cursor.awaited or run in cursor.awaited}


def _request(
    dataflow: Dataflow, log: WatermarkLog, cursor: SensorCursor, work: Work, progress: str, now: float
) -> SensorResult:
    """Return the request for runs, or a skip during the pause after the last attempt."""
    number = work.entry.number if work.entry else 0
    cursor = replace(cursor, seen=number, resume="", sign=Sign())
    left = cursor.attempts.wait(progress, work.digest, now)
    if left > 0:
        reason = work.unfinished.format(cursor.attempts.count, int(left))
        is_told = cursor.paused == cursor.attempts.name
        told = () if is_told else _pause(dataflow, log, reason, now + left)
        return _skip(reason, replace(cursor, paused=cursor.attempts.name), [*work.events, *told])
    after = cursor.attempts.next(progress, work.digest, now)
    requests = list(work.requests(after.name))
    return SensorResult(
        run_requests=requests,
        skip_reason=None
        if requests
        else SkipReason("partitions are added; the next tick asks for runs over them"),
        cursor=(replace(cursor, attempts=after) if requests else cursor).write(),
        dynamic_partitions_requests=list(work.new_keys),
        asset_events=work.events,
    )


def _pause(dataflow: Dataflow, log: WatermarkLog, reason: str, until: float) -> Sequence[Any]:
    """Return the events that say on the table's page why nothing runs, how the last attempt failed, and when the next one is; given once for each pause."""
    shown: dict[str, Any] = {
        "why_nothing_runs": reason,
        "next_attempt": MetadataValue.timestamp(datetime.fromtimestamp(until, UTC)),
    }
    attempt = last_attempt(log, dataflow.name)
    if attempt is not None and attempt.error is not None:
        shown |= error_metadata(attempt.error["message"], attempt.error["choices"])
        shown |= {"failing_since": attempt.failing_since} if attempt.failing_since else {}
    waits = up_to_date(dataflow, f"Something new waits: {reason}", passed=False)
    return AssetObservation(table_key(dataflow), metadata=shown), waits


def _skip(reason: str, cursor: SensorCursor, events: Sequence[Any] = ()) -> SensorResult:
    return SensorResult(skip_reason=SkipReason(reason), cursor=cursor.write(), asset_events=events)


def _progress(log: WatermarkLog, dataflow: str, cursor: SensorCursor, work: Work) -> str:
    """Return the id of the newest entry with progress, or "". Entries up to the last tick are known from its cursor."""
    entry = work.entry
    if entry is None:
        return ""
    if entry.why not in work.no_progress:
        return entry.id
    for older in log.history(dataflow, _FAR):
        if older.number <= cursor.seen:
            break
        if older.why not in work.no_progress:
            return older.id
    return cursor.attempts.done
