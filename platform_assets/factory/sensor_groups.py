"""Sensors of many dataflows: above a hundred dataflows, one sensor serves up to fifty of them.

A sensor costs Dagster a thread, a call of the code server and a row of its storage at each tick, whether
or not there is work: a thousand of them need two processor cores. A group costs little more than one of
them. Each dataflow keeps its own cursor, attempts and pauses.
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from dagster import (
    DagsterInstance,
    SensorDefinition,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
)
from pydantic import Field, TypeAdapter, ValidationError

from partitions.errors import shorten_to_line
from partitions.plan import pluralize
from platform_assets.factory.default_status import default_sensor_status
from platform_assets.factory.in_flight import RunRecords, records_in_flight
from platform_assets.factory.sensors import DataflowSensor
from resources.dagster.names import DagsterNames

MAX_SINGLE, GROUP_SIZE = 100, 50
"""The most dataflows with a sensor of their own, and the most dataflows in a group."""

_BUDGET = 30.0
"""Seconds of work in a tick, which Dagster ends after 60. The next tick continues with the next dataflow."""

_RUNS = 25
"""The runs after which a tick leaves the other dataflows to the next tick."""

_FRESH = 5.0
"""Seconds for which a tick reuses Dagster's answer about runs in flight."""

_NAMED = 3


def group_sensors(sensors: Iterable[DataflowSensor], names: DagsterNames) -> list[SensorDefinition]:
    """Return a sensor of Dagster for each one, or, above a hundred dataflows, for groups of them."""
    dataflow_sensors = list(sensors)
    if len({sensor.dataflow for sensor in dataflow_sensors}) <= MAX_SINGLE:
        return [sensor.definition() for sensor in dataflow_sensors]
    by_name: dict[str, list[DataflowSensor]] = defaultdict(list)
    for sensor in sorted(dataflow_sensors, key=lambda sensor: sensor.dataflow):
        by_name[sensor.shell.name].append(sensor)
    return [
        _group(names.shared(f"{name}_{1 + start // GROUP_SIZE}"), members[start : start + GROUP_SIZE])
        for name, members in by_name.items()
        for start in range(0, len(members), GROUP_SIZE)
    ]


def _group(name: str, members: Sequence[DataflowSensor]) -> SensorDefinition:
    first, last = members[0], members[-1]

    def tick(context: SensorEvaluationContext) -> SensorResult:
        return _GroupTick(members, _Cursors.read(context.cursor)).result(context)

    return SensorDefinition(
        name=name,
        jobs=[member.job for member in members],
        minimum_interval_seconds=first.shell.interval,
        default_status=default_sensor_status(),
        description=f"Does for {pluralize(len(members), 'dataflow')}, from {first.dataflow} to {last.dataflow}, what `NAME_{first.shell.name}` does for one in a smaller project.",
        evaluation_fn=tick,
    )


@dataclass(frozen=True)
class _Cursors:
    """The state that a tick of a group leaves for the next one.

    Attributes:
        by_dataflow: the cursor of each dataflow.
        resume: the dataflow that the next tick begins with; "" is the first.
    """

    by_dataflow: Annotated[Mapping[str, str], Field(alias="of")] = field(default_factory=dict)
    resume: str = ""

    @classmethod
    def read(cls, text: str | None) -> _Cursors:
        try:
            return _STORED.validate_json(text or "{}")
        except ValidationError:
            return cls()

    def write(self) -> str:
        return json.dumps({"of": self.by_dataflow, "resume": self.resume})


_STORED = TypeAdapter(_Cursors)


class _RunsInFlight:
    """The runs in flight of a group and its upstream.

    They are queried together: one query for each dataflow would take most of a tick.
    """

    def __init__(self, instance: DagsterInstance, members: Sequence[DataflowSensor]) -> None:
        self._instance, self._tags = instance, members[0].names.tags
        self._watched = {name for member in members for name in member.watched}
        self._records: RunRecords = {}
        self._read_at = -math.inf

    def in_flight(self) -> RunRecords:
        if time.monotonic() - self._read_at > _FRESH:
            self._records = records_in_flight(self._instance, self._tags, self._watched)
            self._read_at = time.monotonic()
        return self._records


class _GroupTick:
    """One tick of a group of sensors."""

    def __init__(self, members: Sequence[DataflowSensor], cursors: _Cursors) -> None:
        from_resume = [member for member in members if member.dataflow >= cursors.resume]
        self._order = [*from_resume, *members[: len(members) - len(from_resume)]]
        dataflows = {member.dataflow for member in members}
        self._cursors = {name: text for name, text in cursors.by_dataflow.items() if name in dataflows}
        self._requests: list[Any] = []
        self._keys: list[Any] = []
        self._events: list[Any] = []
        self._skipped: dict[str, list[str]] = defaultdict(list)
        self._failed: list[tuple[str, Exception]] = []

    def result(self, context: SensorEvaluationContext) -> SensorResult:
        """Evaluate each dataflow in turn. A failure fails the tick only if all dataflows fail.

        Raises:
            Exception: the first dataflow's, if all failed. If a tick stops early it must not fail: the
                next one begins with the remaining dataflows, and Dagster keeps no cursor of a failed tick.
        """
        started, resume = time.monotonic(), ""
        runs = _RunsInFlight(context.instance, self._order)
        for number, member in enumerate(self._order):
            if number and (time.monotonic() - started > _BUDGET or len(self._requests) >= _RUNS):
                resume = member.dataflow
                break
            try:
                cursor = self._cursors.get(member.dataflow)
                self._add_result(member, member.evaluate(context.instance, cursor, runs.in_flight()))
            except Exception as error:  # noqa: BLE001 - a source that is down must not block the other dataflows
                self._failed.append((member.dataflow, error))
        for name, failure in self._failed:
            context.log.error("%s: %s", name, shorten_to_line(str(failure)))
        if len(self._failed) == len(self._order):
            raise self._failed[0][1]
        return SensorResult(
            run_requests=self._requests,
            skip_reason=None if self._requests else SkipReason(self._skip_reason()),
            cursor=_Cursors(self._cursors, resume).write(),
            dynamic_partitions_requests=self._keys,
            asset_events=self._events,
        )

    def _add_result(self, member: DataflowSensor, result: SensorResult) -> None:
        """Add the result of one dataflow."""
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

    def _skip_reason(self) -> str:
        """Return why nothing was requested: each reason once with some of its dataflows, errors first."""
        reasons = [f"{name} failed: {shorten_to_line(str(error))}" for name, error in self._failed]
        for reason, names in sorted(self._skipped.items(), key=lambda item: len(item[1])):
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            reasons.append(f"{', '.join(names[:_NAMED])}{more}: {reason}")
        return "; ".join(reasons)
