"""What stream watermarks add in Dagster: a sensor of new input, one of upstream tables, and a schedule."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from dagster import AssetCheckResult, AssetCheckSeverity, AssetCheckSpec, DagsterInstance, RunRequest

from partitions.dataflow import Dataflow
from partitions.predicate import Among
from partitions.stream.operators import EPOCH, Aggregate
from partitions.stream.state import StreamState
from partitions.stream.structured import StructuredStream
from partitions.stream.ticks import ticks
from platform_assets.factory.checks import RunCheck, TableCheck
from platform_assets.factory.keys import run_request, table_key
from platform_assets.factory.schedules import build_schedule
from platform_assets.factory.sensors import NoWork, SensorShell, Tick, Work, digest
from platform_assets.factory.upstream import has_upstream, upstream_sensor
from platform_assets.kinds.definitions import KindDefinitions, Triggers
from resources.loop.outcome import Outcome
from resources.platform import Platform
from resources.run_options import RunOptions

_INTERVAL = 60
"""Seconds: each tick lists the source's log."""


class StreamDefinitions(KindDefinitions):
    """The Dagster definitions of stream watermarks."""

    def run_checks(self, dataflow: Dataflow) -> Sequence[RunCheck]:
        """Return the checks of epochs and of splits; Spark's engine has neither."""
        if isinstance(dataflow.watermark, StructuredStream):
            return ()
        bounds = AssetCheckSpec(
            "epoch_bounds",
            asset=table_key(dataflow),
            description="No row of an epoch lies at or above the epoch's global watermark, and no window of it ends above.",
        )
        drift = AssetCheckSpec(
            "split_drift",
            asset=table_key(dataflow),
            description="The fastest split is not further ahead of the slowest than watermark.buffer.max_drift.",
        )
        return RunCheck(bounds, _epoch_bounds), RunCheck(drift, _split_drift)

    def table_checks(self, _: Dataflow) -> Sequence[TableCheck]:
        """Return no check."""
        return ()

    def triggers(self, dataflow: Dataflow, platform: Platform, _: RunOptions, job: Any) -> Triggers:
        """Return the sensor of new input, or that of the upstream table; and a schedule, if the definition has one."""
        has_one = has_upstream(dataflow, platform)
        sensor = (
            upstream_sensor(dataflow, platform, job, lambda tick: _due(dataflow, platform, tick), alone=True)
            if has_one
            else SensorShell(
                "rows",
                f"Finds new input of {dataflow.name}, and asks for a run.",
                _INTERVAL,
            ).build(dataflow, platform, job, lambda tick: _due(dataflow, platform, tick))
        )

        def requests(_: DagsterInstance, now: datetime) -> RunRequest:
            return run_request(dataflow, f"{dataflow.name}:{now.isoformat()}")

        schedules = (
            (build_schedule(dataflow, platform, job, "UTC", f"Asks for a run of {dataflow.name}.", requests),)
            if dataflow.schedule
            else ()
        )
        return Triggers((sensor,), schedules)


def _epoch_bounds(dataflow: Dataflow, platform: Platform, outcome: Outcome) -> AssetCheckResult:
    windows = any(isinstance(each, Aggregate) for each in dataflow.operators)
    column = "window_end" if windows else dataflow.stream.event_time
    table, above = platform.table(dataflow), list[int]()
    for committed in outcome.committed:
        state = StreamState.of(committed.entry.state())
        if not committed.rows or state.value is None:
            continue
        found = table.highest_values([column], None, Among(EPOCH, (state.epoch,)))[column]
        if found is not None and ticks(_in_utc(found)) >= ticks(state.value) + windows:
            above.append(state.epoch)
    return AssetCheckResult(
        passed=not above,
        check_name="epoch_bounds",
        asset_key=table_key(dataflow),
        metadata={"epochs_above": ", ".join(map(str, above)) or "none"},
    )


def _in_utc(at: Any) -> Any:
    return at.replace(tzinfo=UTC) if isinstance(at, datetime) and at.tzinfo is None else at


def _split_drift(dataflow: Dataflow, _: Platform, outcome: Outcome) -> AssetCheckResult:
    splits = StreamState.of(outcome.after).splits
    marks = sorted((split.watermark, name) for name, split in splits.items() if split.watermark is not None)
    most: Any = dataflow.stream.buffer.max_drift
    drift: Any = marks[-1][0] - marks[0][0] if marks else None
    comparable = drift is not None and isinstance(drift, int) == isinstance(most, int)
    return AssetCheckResult(
        passed=not comparable or drift <= most,
        check_name="split_drift",
        asset_key=table_key(dataflow),
        severity=AssetCheckSeverity.WARN,
        metadata={
            "drift": "none" if drift is None else str(drift),
            "slowest": marks[0][1] if marks else "none",
            "fastest": marks[-1][1] if marks else "none",
        },
    )


def _due(dataflow: Dataflow, platform: Platform, tick: Tick) -> NoWork | Work:
    entry = platform.log.newest(dataflow.name)
    plan = platform.kind(dataflow).plan(entry, tick.now)
    if not plan.slices:
        return NoWork(plan.why)
    return Work(
        entry,
        digest(entry.watermark if entry else None, str(plan.slices[-1].upper)),
        lambda attempt: [run_request(dataflow, f"{dataflow.name}:{attempt}")],
    )
