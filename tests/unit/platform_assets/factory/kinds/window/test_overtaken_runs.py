"""A run that a sensor requested, and that another load has overtaken, loads nothing again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dagster import AssetKey, DagsterInstance, RunRequest, SensorResult, build_sensor_context

from partitions.instants import milliseconds
from partitions.request import Due, WorkUnitSelection
from platform_assets.build import build_definitions
from platform_assets.factory.jobs import dataflow_job
from platform_assets.factory.kinds.window.run_requests import window_sensor
from platform_assets.project import load_project
from resources.dagster.run_options import RunOptions
from resources.kinds.window.partitions import WindowAssetPartitions
from tests.support.chained import Chain, at
from tests.support.jvmless import jvmless
from tests.support.names import names_of

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
TABLE = AssetKey(["gold", "days"])


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    chain = Chain(tmp_path / "project", day_units=("EWR", "JFK"), now=at(49))
    chain.root.mkdir()
    for hour in range(48):
        chain.arrive("EWR", hour, 1)
        chain.arrive("JFK", hour, 10)
    with jvmless():
        chain.run("hours")
        yield chain


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[DagsterInstance]:
    (tmp_path / "home").mkdir()
    with DagsterInstance.local_temp(str(tmp_path / "home")) as instance:
        yield instance


def requested(chain: Chain, instance: DagsterInstance) -> RunRequest:
    flow = chain.flows["days"]
    names, partitions = names_of(flow), WindowAssetPartitions.of("days", flow.window)
    job = dataflow_job(flow, names)
    sensor = window_sensor(flow, chain.platform(), names, job, partitions, lambda: chain.now.timestamp())
    result = sensor.definition()(build_sensor_context(instance=instance))
    assert isinstance(result, SensorResult)
    (request,) = result.run_requests or ()
    return request


def load(chain: Chain, instance: DagsterInstance, key: str | None, tags: Any) -> bool:
    project = load_project(chain.root, environment={})
    job = build_definitions(project, chain.platform(), RunOptions(now=chain.now)).resolve_job_def("load_days")
    result = job.execute_in_process(
        instance=instance, run_config=QUIET, partition_key=key, tags=tags, raise_on_error=False
    )
    return bool(result.success)


def shown(instance: DagsterInstance) -> list[tuple[str | None, Any, bool]]:
    """Return of each materialisation its partition, its work units, and whether an outside load made it."""
    events = [
        record.asset_materialization for record in instance.fetch_materializations(TABLE, limit=100).records
    ]
    return sorted(
        (str(event.partition), event.metadata["work_units"].value, "loaded_by" in event.metadata)
        for event in events
        if event is not None
    )


DAYS = [f"{unit}|2026-01-0{day}" for unit in ("EWR", "JFK") for day in (5, 6)]


def test_partitions_that_another_load_has_loaded_are_shown_and_not_loaded_again(
    chain: Chain, instance: DagsterInstance
) -> None:
    request = requested(chain, instance)
    chain.run("days")
    entries, rows = chain.platform().log.newest("days"), chain.rows("days")
    assert load(chain, instance, request.partition_key, request.tags)
    assert shown(instance) == [(day, 1, True) for day in DAYS]
    assert chain.platform().log.newest("days") == entries
    assert load(chain, instance, request.partition_key, request.tags)
    assert shown(instance) == [(day, 1, True) for day in DAYS]
    assert chain.rows("days") == rows


def test_a_person_s_run_over_loaded_partitions_loads_them_again(
    chain: Chain, instance: DagsterInstance
) -> None:
    requested(chain, instance)
    chain.run("days")
    newest = chain.platform().log.newest("days")
    assert newest is not None
    assert load(chain, instance, "EWR|2026-01-05", {})
    again = chain.platform().log.newest("days")
    assert again is not None
    assert again.number == newest.number + 1
    assert shown(instance) == sorted([*((day, 1, True) for day in DAYS), ("EWR|2026-01-05", 1, False)])


def test_of_a_run_that_was_overtaken_in_part_only_its_own_partitions_are_its_own(
    chain: Chain, instance: DagsterInstance
) -> None:
    request = requested(chain, instance)
    start = milliseconds(at(0))
    chain.run("days", Due(WorkUnitSelection(((start, start + 1),))))
    assert load(chain, instance, request.partition_key, request.tags)
    assert shown(instance) == [(day, 1, day.endswith("05")) for day in DAYS]
    assert chain.rows("days") == [
        (f"{unit}|2026-01-0{day}T00", value) for unit, value in (("EWR", 24), ("JFK", 240)) for day in (5, 6)
    ]
