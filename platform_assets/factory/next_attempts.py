"""Find when Dagster requests the next run of a dataflow, and which of its sensors are off."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from dagster import AssetCheckEvaluation, DagsterInstance

from platform_assets.dagster_internals import is_turned_off
from platform_assets.factory.asset_checks import NEXT_ATTEMPT, up_to_date_key
from platform_assets.why_now import NextRun
from resources.dagster.names import DagsterDataflowNames


def with_sensors(
    next_run: NextRun, dagster: DagsterInstance, names: DagsterDataflowNames, now: datetime
) -> NextRun:
    """Return what Dagster's sensors add about the next run.

    Args:
        next_run: what a look at the source says.
        dagster: the instance with the reports and states of sensors.
        names: the dataflow's names.
        now: the clock, aware; a time before it is over.
    """
    at = _reported_attempt(dagster, names)
    return replace(
        next_run,
        tried_at=at.isoformat(timespec="seconds") if at is not None and at > now else None,
        idle_sensors=_idle_sensors(dagster, names),
    )


def _reported_attempt(dagster: DagsterInstance, names: DagsterDataflowNames) -> datetime | None:
    """Return the time of the next attempt by the newest result of ``up_to_date``; None if it has none."""
    record = dagster.get_latest_asset_check_evaluation_record(up_to_date_key(names))
    event = record.event.dagster_event if record and record.event else None
    if event is None or not isinstance(event.event_specific_data, AssetCheckEvaluation):
        return None
    at = event.event_specific_data.metadata.get(NEXT_ATTEMPT)
    return datetime.fromtimestamp(float(at.value), UTC) if at is not None else None  # type: ignore[arg-type]


def _idle_sensors(dagster: DagsterInstance, names: DagsterDataflowNames) -> list[str]:
    """Return the sensors of a dataflow that somebody has turned off, by name."""
    states = dagster.all_instigator_state()
    return sorted(
        {
            state.instigator_name
            for state in states
            if is_turned_off(state) and names.is_trigger(state.instigator_name)
        }
    )
