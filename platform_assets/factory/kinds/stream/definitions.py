"""Definitions of stream watermarks in Dagster: a sensor, a schedule, checks, a table of late rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.stream.definition import StreamWatermark
from partitions.stream.ending import closing_epoch, pending_epoch
from platform_assets.factory.check_results import RunCheck
from platform_assets.factory.kinds.contract import (
    HasPicture,
    HasSideTable,
    KindDefinitions,
    SideTable,
    Triggers,
)
from platform_assets.factory.kinds.stream.checks import run_checks
from platform_assets.factory.kinds.stream.pictures import splits_metadata
from platform_assets.factory.schedules import load_schedule
from platform_assets.factory.sensors import SensorShell
from platform_assets.factory.ticks import NoWork, Tick, Work, digest
from platform_assets.factory.upstream import has_upstream, upstream_sensor
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.run_options import RunOptions
from resources.kinds.stream.planning import known_state
from resources.outcome import Outcome
from resources.platform.platform import Platform

_INTERVAL = 60
"""Seconds between ticks; each one lists the source's log."""


class StreamDefinitions(KindDefinitions, HasPicture, HasSideTable):
    """The Dagster definitions of stream watermarks."""

    materialised_together = True

    def side_table(self, dataflow: Dataflow) -> SideTable | None:
        """Return the table of late rows, if the dataflow has one."""
        if not dataflow.tables_beside:
            return None
        ((asset, table),) = dataflow.tables_beside.items()
        description = f"Rows of {dataflow.name} that arrived below the watermark of their split, with `_split`, `_watermark` and `_epoch`."
        return SideTable("late", asset, table, description, _late_metadata)

    @override
    def picture_metadata(self, platform: Platform, dataflow: Dataflow, now: datetime) -> Mapping[str, Any]:
        """Return a picture of the splits' watermarks over the last epochs; nothing for Spark's engine."""
        if dataflow.streams_with_spark:
            return {}
        return splits_metadata(platform.log, dataflow)

    def run_checks(self, dataflow: Dataflow) -> Sequence[RunCheck]:
        """Return the checks of epochs and of splits; Spark's engine has neither."""
        if dataflow.streams_with_spark:
            return ()
        return run_checks(dataflow)

    def triggers(
        self, dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, _: RunOptions, job: Any
    ) -> Triggers:
        """Return a sensor, and a schedule if the definition has one.

        The sensor watches the upstream tables if every source is such a table, otherwise new input.
        """
        only_tables = all(source.lake_table is not None for source in dataflow.source.parts.values())
        sensor = (
            upstream_sensor(
                dataflow,
                platform,
                names,
                job,
                lambda tick: _find_work(dataflow, platform, names, tick),
                is_only_sensor=True,
                is_due_anyway=lambda tick: _leaves_without_input(dataflow, platform, tick),
            )
            if only_tables and has_upstream(dataflow, platform)
            else SensorShell(
                "rows",
                f"Requests a run when {dataflow.name} has new input.",
                _INTERVAL,
            ).build(dataflow, platform, names, job, lambda tick: _find_work(dataflow, platform, names, tick))
        )

        schedules = (load_schedule(dataflow, platform, names, job),) if dataflow.schedule else ()
        return Triggers((sensor,), schedules)


def _late_metadata(outcome: Outcome) -> Mapping[str, Any]:
    """Return a run's number of late rows as metadata; nothing if there are none."""
    return {"rows": outcome.late} if outcome.late else {}


def _leaves_without_input(dataflow: Dataflow, platform: Platform, tick: Tick) -> bool:
    """Return whether buffered rows leave without input: by a decision, or because their time is over."""
    entry = platform.log.newest(dataflow.name)
    if entry is None or not isinstance(dataflow.watermark, StreamWatermark):
        return False
    state, definition = known_state(dataflow, entry), dataflow.watermark
    closes = closing_epoch(state, definition.close_after, dataflow.operators, tick.now)
    return state.flush is not None or pending_epoch(state) is not None or closes is not None


def _find_work(
    dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, tick: Tick
) -> NoWork | Work:
    entry = platform.log.newest(dataflow.name)
    plan = platform.kind(dataflow).planning.plan(entry, tick.now)
    if not plan.slices:
        return NoWork(plan.why)
    return Work(
        entry,
        digest(entry.watermark if entry else None, str(plan.slices[-1].upper)),
        lambda attempt: [names.run_request(f"{dataflow.name}:{attempt}")],
    )
