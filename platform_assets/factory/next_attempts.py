"""Find when Dagster requests the next run of a dataflow, and which of its sensors are off."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from dagster import AssetCheckEvaluation, DagsterInstance
from dagster._core.scheduler.instigation import InstigatorStatus

from partitions.dataflow import Dataflow
from platform_assets.factory.asset_checks import NEXT_ATTEMPT, up_to_date_key
from platform_assets.why_now import NextRun


def with_sensors(next_run: NextRun, dagster: DagsterInstance, dataflow: Dataflow, now: datetime) -> NextRun:
    """Return what Dagster's sensors add about the next run.

    Args:
        next_run: what a look at the source says.
        dagster: the instance with the reports and states of sensors.
        dataflow: the definition.
        now: the clock, aware; a time before it is over.
    """
    at = _reported_attempt(dagster, dataflow)
    return replace(
        next_run,
        tried_at=at.isoformat(timespec="seconds") if at is not None and at > now else None,
        idle_sensors=_idle_sensors(dagster, dataflow.name),
    )


def _reported_attempt(dagster: DagsterInstance, dataflow: Dataflow) -> datetime | None:
    """Return the time of the next attempt by the newest result of ``up_to_date``; None if it has none."""
    record = dagster.get_latest_asset_check_evaluation_record(up_to_date_key(dataflow))
    event = record.event.dagster_event if record and record.event else None
    if event is None or not isinstance(event.event_specific_data, AssetCheckEvaluation):
        return None
    at = event.event_specific_data.metadata.get(NEXT_ATTEMPT)
    return datetime.fromtimestamp(float(at.value), UTC) if at is not None else None  # type: ignore[arg-type]


def _idle_sensors(dagster: DagsterInstance, dataflow: str) -> list[str]:
    """Return the sensors of a dataflow that somebody has turned off, by name."""
    states = dagster.all_instigator_state()
    return sorted(
        {
            state.instigator_name
            for state in states
            if state.status == InstigatorStatus.STOPPED and state.instigator_name.startswith(f"{dataflow}_")
        }
    )
