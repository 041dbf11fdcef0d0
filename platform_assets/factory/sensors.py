"""The sensor of a file source: asks for one run when a file lies above the committed watermark (spec 01, 08).

The truth is the committed watermark and nothing else: what was asked for and not committed is asked for again, with a
growing pause, so that a broken file does not start a run every half minute for two weeks.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from dagster import (
    DagsterInstance,
    DagsterRun,
    DagsterRunStatus,
    DefaultSensorStatus,
    RunRequest,
    RunsFilter,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from partitions.dataflow import Dataflow
from resources.io_managers import DATAFLOW_TAG, HOLDER_TAG
from resources.listing import Budget
from resources.loop.holder import process_lives
from resources.platform import Platform
from resources.watermarks.entry import Entry, Holder

_IN_FLIGHT = [
    DagsterRunStatus.QUEUED,
    DagsterRunStatus.NOT_STARTED,
    DagsterRunStatus.STARTING,
    DagsterRunStatus.STARTED,
    DagsterRunStatus.CANCELING,
]
_BUDGET = Budget(pages=50, seconds=20.0)  # a tick has 60 s, and a slow store must not use them up
_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 3600.0
_INTERVAL = 30


@dataclass(frozen=True)
class Cursor:
    """What a tick leaves for the next; small, since every tick keeps a copy.

    Attributes:
        asked: which committed state a run was asked for, or "".
        since: when it was first asked for, epoch seconds: it makes run keys differ after a state was deleted and made anew.
        attempt: how often.
        pause_until: no further attempt before, epoch seconds.
        resume: where a listing that ran out of its budget goes on, or "".
    """

    asked: str = ""
    since: int = 0
    attempt: int = 0
    pause_until: float = 0.0
    resume: str = ""

    @classmethod
    def read(cls, text: str | None) -> Cursor:
        """Read a cursor; one that does not read (of an older version) starts anew, since it holds no truth."""
        try:
            return cls(**json.loads(text or "{}"))
        except (ValueError, TypeError):
            return cls()

    def write(self) -> str:
        """As JSON text."""
        return json.dumps(asdict(self))

    def next_attempt(self, asked: str, now: float) -> Cursor:
        """The cursor after asking: each attempt for the same state doubles the pause before the next."""
        attempt = self.attempt + 1 if asked == self.asked else 1
        pause = min(_FIRST_PAUSE * 2 ** (attempt - 1), _LONGEST_PAUSE)
        return Cursor(asked, self.since if attempt > 1 else int(now), attempt, now + pause)


def dataflow_sensor(
    dataflow: Dataflow, platform: Platform, job: Any, clock: Callable[[], float] = time.time
) -> SensorDefinition:
    """A sensor that looks above the committed watermark and asks for runs of ``job``."""

    @sensor(
        name=f"{dataflow.name}_files",
        job=job,
        minimum_interval_seconds=_INTERVAL,
        default_status=DefaultSensorStatus.RUNNING,
        description=f"Finds files of {dataflow.name} above its committed watermark, and asks for a run.",
    )
    def files(context: SensorEvaluationContext) -> SensorResult:
        cursor, now = Cursor.read(context.cursor), clock()
        busy = in_flight(context.instance, dataflow.name)
        if busy is not None:
            return skip(f"run {busy.run_id[:8]} is in flight", cursor)
        entry = platform.log.newest(dataflow.name)
        look = platform.path_flow(dataflow).peek(
            entry, datetime.fromtimestamp(now, UTC), _BUDGET, cursor.resume or None
        )
        if not look.found.files:
            more = "goes on at the next tick" if look.resume else "no file is above the watermark"
            return skip(f"{more} ({look.found.calls} listing calls)", Cursor(resume=look.resume or ""))
        asked = asked_for(entry, look.found.files[0].path)
        waits = (
            f"attempt {cursor.attempt} did not commit; the next one is in {int(cursor.pause_until - now)} s"
        )
        return ask(dataflow, dataflow.name, asked, cursor, now, waits)

    return files


def ask(
    dataflow: Dataflow,
    key: str,
    asked: str,
    cursor: Cursor,
    now: float,
    waits: str,
    events: Sequence[Any] = (),
) -> SensorResult:
    """Ask for a run, unless the pause after the last attempt for the same state goes on.

    Args:
        dataflow: what the run loads.
        key: what run keys of this sensor begin with.
        asked: the state that the run shall get on from.
        cursor: of the last tick.
        now: epoch seconds.
        waits: what is said while the pause goes on.
        events: what the tick reports beside it.
    """
    if asked == cursor.asked and now < cursor.pause_until:
        return skip(waits, cursor, events)
    after = cursor.next_attempt(asked, now)
    request = RunRequest(
        run_key=f"{key}:{asked}:{after.since}:{after.attempt}", tags={DATAFLOW_TAG: dataflow.name}
    )
    return SensorResult(run_requests=[request], cursor=after.write(), asset_events=events)


def skip(reason: str, cursor: Cursor, events: Sequence[Any] = ()) -> SensorResult:
    """Ask for nothing, and say why."""
    return SensorResult(skip_reason=SkipReason(reason), cursor=cursor.write(), asset_events=events)


def asked_for(entry: Entry | None, path: str) -> str:
    """What a run is asked for: to get on from an entry, beginning with a file."""
    return hashlib.sha256(f"{entry.id if entry else None}|{path}".encode()).hexdigest()[:16]


def in_flight(instance: DagsterInstance, name: str) -> DagsterRun | None:
    """A run of the dataflow that goes on. One whose process is gone is reported as failed, which frees its pool, too."""
    for run in instance.get_runs(RunsFilter(tags={DATAFLOW_TAG: name}, statuses=_IN_FLIGHT)):
        tag = run.tags.get(HOLDER_TAG)
        if tag is None or process_lives(Holder.model_validate_json(tag)) is not False:
            return run
        instance.report_run_failed(
            run,
            f"the process of this run is gone (killed?): {tag}. What it had begun is finished by the next run",
        )
    return None
