"""Sensors of many dataflows: above a hundred, one sensor looks for up to fifty of them.

A sensor costs Dagster a thread, a call of the code server and a row of its storage at each tick, whether or not there is work: a thousand of
them need two processor cores. A group costs little more than one of them. Each dataflow keeps its own cursor, attempts and pauses.
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dagster import (
    DagsterInstance,
    DefaultSensorStatus,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)
from pydantic import TypeAdapter, ValidationError

from partitions.errors import in_one_line
from partitions.plan import counted
from platform_assets.factory.in_flight import Records, records_in_flight
from platform_assets.factory.sensors import DataflowSensor

MOST_ALONE, MOST_TOGETHER = 100, 50
"""Dataflows of a project with a sensor for each, and dataflows of a group."""

_BUDGET = 30.0
"""Seconds that a tick looks; Dagster gives it 60. The next tick goes on behind the last dataflow that was looked at."""

_RUNS = 25
"""Runs that a tick requests, before it leaves the others to the next one."""

_FRESH = 5.0
"""Seconds that what Dagster has said of runs in flight holds for the next dataflows of a tick."""

_NAMED = 3


def grouped(sensors: Iterable[SensorDefinition]) -> list[SensorDefinition]:
    """Return the sensors as they are, or, of more than a hundred dataflows, groups of those that do the same."""
    all_sensors = list(sensors)
    single = [sensor for sensor in all_sensors if isinstance(sensor, DataflowSensor)]
    if len({sensor.dataflow for sensor in single}) <= MOST_ALONE:
        return all_sensors
    by_name: dict[str, list[DataflowSensor]] = defaultdict(list)
    for sensor in sorted(single, key=lambda sensor: sensor.dataflow):
        by_name[sensor.shell.name].append(sensor)
    others = [sensor for sensor in all_sensors if not isinstance(sensor, DataflowSensor)]
    return others + [
        _group(f"strandline_{name}_{1 + start // MOST_TOGETHER}", members[start : start + MOST_TOGETHER])
        for name, members in by_name.items()
        for start in range(0, len(members), MOST_TOGETHER)
    ]


def _group(name: str, members: Sequence[DataflowSensor]) -> SensorDefinition:
    first, last = members[0], members[-1]

    def tick(context: SensorEvaluationContext) -> SensorResult:
        return _Look(members, _Cursors.read(context.cursor)).result(context)

    return SensorDefinition(
        name=name,
        jobs=[member.job for member in members],
        minimum_interval_seconds=first.shell.interval,
        default_status=DefaultSensorStatus.RUNNING,
        description=f"Of {counted(len(members), 'dataflow')}, from {first.dataflow} to {last.dataflow}, as `NAME_{first.shell.name}` of a smaller project does for one.",
        evaluation_fn=tick,
    )


@dataclass(frozen=True)
class _Cursors:
    """What a tick of a group leaves for the next.

    Attributes:
        of: by dataflow, the cursor of its own.
        resume: the dataflow that the next tick begins with; "" is the first.
    """

    of: Mapping[str, str] = field(default_factory=dict)
    resume: str = ""

    @classmethod
    def read(cls, text: str | None) -> _Cursors:
        try:
            return _STORED.validate_json(text or "{}")
        except ValidationError:
            return cls()

    def write(self) -> str:
        return json.dumps({"of": self.of, "resume": self.resume})


_STORED = TypeAdapter(_Cursors)


class _Runs:
    """The runs in flight of a group, and of the dataflows upstream: one question for each dataflow would be most of a tick's work."""

    def __init__(self, instance: DagsterInstance, members: Sequence[DataflowSensor]) -> None:
        self._instance, self._names = instance, {name for member in members for name in member.awaits}
        self._records: Records = {}
        self._read = -math.inf

    def in_flight(self) -> Records:
        if time.monotonic() - self._read > _FRESH:
            self._records = records_in_flight(self._instance, self._names)
            self._read = time.monotonic()
        return self._records


class _Look:
    """One tick of a group."""

    def __init__(self, members: Sequence[DataflowSensor], cursors: _Cursors) -> None:
        behind = [member for member in members if member.dataflow >= cursors.resume]
        self._order = [*behind, *members[: len(members) - len(behind)]]
        dataflows = {member.dataflow for member in members}
        self._cursors = {name: text for name, text in cursors.of.items() if name in dataflows}
        self._requests: list[Any] = []
        self._keys: list[Any] = []
        self._events: list[Any] = []
        self._skipped: dict[str, list[str]] = defaultdict(list)
        self._failed: list[tuple[str, Exception]] = []

    def result(self, context: SensorEvaluationContext) -> SensorResult:
        """Look at each dataflow in turn. What one of them raises fails the tick only if no other has an answer.

        Raises:
            Exception: of the first dataflow, if all failed. If some are left, the next tick must begin with those, and of a tick that failed
                Dagster keeps no cursor.
        """
        started, resume = time.monotonic(), ""
        runs = _Runs(context.instance, self._order)
        for number, member in enumerate(self._order):
            if number and (time.monotonic() - started > _BUDGET or len(self._requests) >= _RUNS):
                resume = member.dataflow
                break
            try:
                cursor = self._cursors.get(member.dataflow)
                self._take(member, member.evaluate(context.instance, cursor, runs.in_flight()))
            except Exception as error:  # noqa: BLE001 - a source that is down must not keep the others waiting
                self._failed.append((member.dataflow, error))
        for name, raised in self._failed:
            context.log.error("%s: %s", name, in_one_line(str(raised)))
        if len(self._failed) == len(self._order):
            raise self._failed[0][1]
        return SensorResult(
            run_requests=self._requests,
            skip_reason=None if self._requests else SkipReason(self._why()),
            cursor=_Cursors(self._cursors, resume).write(),
            dynamic_partitions_requests=self._keys,
            asset_events=self._events,
        )

    def _take(self, member: DataflowSensor, result: SensorResult) -> None:
        """Add the answer of one dataflow."""
        cursor = result.cursor or "{}"
        self._cursors.pop(member.dataflow, None)
        if cursor != "{}":
            self._cursors[member.dataflow] = cursor
        for request in result.run_requests or ():
            self._requests.append(request.with_replaced_attrs(job_name=member.job.name))
        self._keys += result.dynamic_partitions_requests or ()
        self._events += result.asset_events or ()
        if isinstance(result.skip_reason, SkipReason):
            self._skipped[str(result.skip_reason.skip_message)].append(member.dataflow)

    def _why(self) -> str:
        """Return why nothing was requested: each reason once, with some of those that it holds for, errors first."""
        reasons = [f"{name} failed: {in_one_line(str(error))}" for name, error in self._failed]
        for reason, names in sorted(self._skipped.items(), key=lambda item: len(item[1])):
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            reasons.append(f"{', '.join(names[:_NAMED])}{more}: {reason}")
        return "; ".join(reasons)
