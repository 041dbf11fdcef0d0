"""What Dagster's sensors add about the next run of a dataflow."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from dagster import DagsterInstance
from dagster._core.remote_origin import (
    InProcessCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import InstigatorState, InstigatorStatus, InstigatorType
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

from platform_assets.factory.next_attempts import with_sensors
from platform_assets.why_now import NextRun
from tests.support.names import names_of
from tests.support.ticks import flow_of

_OFF = ["events_files", "events_late", "events_eu_files", "north__events_files", "load_events"]


@pytest.mark.parametrize(
    ("project", "idle"), [(None, ["events_files", "events_late"]), ("north", ["north__events_files"])]
)
def test_only_the_dataflow_s_own_sensors_count_as_turned_off(
    project: str | None, idle: list[str], tmp_path: Path
) -> None:
    location = InProcessCodeLocationOrigin(LoadableTargetOrigin(module_name="m"), location_name="m")
    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        for name in _OFF:
            origin = RemoteInstigatorOrigin(RemoteRepositoryOrigin(location, "r"), name)
            instance.add_instigator_state(
                InstigatorState(origin, InstigatorType.SENSOR, InstigatorStatus.STOPPED)
            )
        names = names_of(flow_of(name="events"), project)
        assert with_sensors(NextRun(), instance, names, datetime.now(UTC)).idle_sensors == idle
