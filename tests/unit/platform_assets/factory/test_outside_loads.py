"""Loads that no run of a Dagster instance has made are shown in it once, by the next tick or run."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetKey,
    AutomationCondition,
    DagsterInstance,
    Definitions,
    RunRequest,
    SensorResult,
    asset,
    build_sensor_context,
    evaluate_automation_conditions,
)

from partitions.dataflow import Dataflow
from partitions.request import DUE
from platform_assets.build import build_definitions
from platform_assets.dagster_internals import storage_id
from platform_assets.factory import outside_loads
from platform_assets.factory.outside_loads import OutsideLoads
from platform_assets.project import load_project
from resources.dagster.run_options import RunOptions
from resources.spark.engine import SparkEngine
from resources.watermarks.stored_objects import folder_of
from tests.support.jvmless import ArrowPlatform, jvmless
from tests.support.names import names_of

FLOW = """
source: {type: files, path: ./landing, format: ndjson, schema: "id long"}
watermark: {type: path}
target: {load: append, origin_columns: false}
"""
TABLE, WATERMARK = AssetKey(["bronze", "orders"]), AssetKey(["watermark", "orders"])


@asset(deps=[TABLE], automation_condition=AutomationCondition.eager())
def eager() -> None:
    """An asset that Dagster's automation materialises after each load."""


@dataclass
class Shop:
    """A project that Dagster and the command line load, without a JVM."""

    folder: Path
    instance: DagsterInstance
    files: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        (self.folder / "dataflows").mkdir()
        (self.folder / "landing").mkdir()
        (self.folder / "dataflows/orders.yaml").write_text(FLOW)

    @property
    def platform(self) -> ArrowPlatform:
        project = load_project(self.folder)
        return ArrowPlatform(project.state, project.lake, SparkEngine(), project.source_place)

    @property
    def flow(self) -> Dataflow:
        return load_project(self.folder).dataflows["orders"]

    @property
    def definitions(self) -> Definitions:
        options = RunOptions(hold_wait=timedelta(0))
        own = build_definitions(load_project(self.folder), self.platform, options)
        return Definitions.merge(own, Definitions(assets=[eager]))

    def arrive(self, rows: int = 1) -> None:
        self.files += 1
        lines = "".join(f'{{"id": {number}}}\n' for number in range(rows))
        (self.folder / f"landing/{self.files}.ndjson").write_text(lines)

    def load_outside(self, rows: int = 1) -> None:
        """Load a new file as `strandline run` does without DAGSTER_HOME."""
        self.arrive(rows)
        with jvmless():
            outcome = self.platform.loop(self.flow, datetime.now(UTC), DUE, run_id="of-no-dagster").run()
        assert outcome.status == "committed"

    def tick(self) -> SensorResult:
        sensor = self.definitions.resolve_sensor_def("orders_files")
        result = sensor(build_sensor_context(instance=self.instance))
        assert isinstance(result, SensorResult)
        return result

    def run(self, request: RunRequest | None = None) -> bool:
        job = self.definitions.resolve_job_def("load_orders")
        with jvmless():
            return job.execute_in_process(
                instance=self.instance, tags=request.tags if request else {}
            ).success

    def shown(self, key: AssetKey = TABLE) -> list[dict[str, Any]]:
        """Return the metadata of all materialisations, oldest first."""
        records = self.instance.fetch_materializations(key, limit=100).records
        events = [record.asset_materialization for record in reversed(records)]
        return [{name: item.value for name, item in event.metadata.items()} for event in events if event]

    def restart(self) -> None:
        """Forget what this process has looked at, as a new code server."""
        outside_loads._looked_at.clear()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    (tmp_path / "project").mkdir()
    (tmp_path / "home").mkdir()
    with DagsterInstance.local_temp(str(tmp_path / "home")) as instance:
        yield Shop(tmp_path / "project", instance)


def numbers(events: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(event["state_number"], event["rows"]) for event in events]


def test_a_load_outside_is_shown_once_by_the_next_tick(shop: Shop) -> None:
    shop.load_outside(rows=2)
    shop.tick()
    shop.load_outside(rows=3)
    for _ in range(2):
        shop.tick()
        shop.restart()
    assert numbers(shop.shown()) == [(1, 2), (2, 3)]
    newest, entry = shop.shown()[-1], shop.platform.log.newest("orders")
    assert entry is not None
    assert {name: newest[name] for name in ("files", "table_version", "loaded_at", "dagster/row_count")} == {
        "files": 1,
        "table_version": entry.table_version,
        "loaded_at": entry.time,
        "dagster/row_count": 5,
    }
    assert newest["loaded_by"].startswith("outside of this Dagster on ")
    assert [event["state_number"] for event in shop.shown(WATERMARK)] == [1, 2]


def test_the_first_tick_of_an_old_project_shows_the_newest_load_alone(shop: Shop) -> None:
    for _ in range(3):
        shop.load_outside()
    shop.tick()
    shop.load_outside()
    shop.tick()
    assert [number for number, _ in numbers(shop.shown())] == [3, 4]


def test_loads_of_runs_of_this_dagster_are_not_shown_again(shop: Shop) -> None:
    shop.arrive()
    assert shop.run()
    shop.tick()
    shop.arrive()
    assert shop.run()
    shop.tick()
    assert [event["state_number"] for event in shop.shown()] == [1, 2]


def test_a_load_outside_fires_conditions(shop: Shop) -> None:
    shop.load_outside()
    shop.tick()
    definitions = shop.definitions
    evaluated = evaluate_automation_conditions(definitions, shop.instance)
    shop.load_outside()
    shop.tick()
    evaluated = evaluate_automation_conditions(definitions, shop.instance, cursor=evaluated.cursor)
    assert evaluated.get_num_requested(AssetKey("eager")) == 1
    shop.tick()
    evaluated = evaluate_automation_conditions(definitions, shop.instance, cursor=evaluated.cursor)
    assert evaluated.get_num_requested(AssetKey("eager")) == 0


def test_of_two_daemons_one_reports_an_entry(shop: Shop) -> None:
    shop.load_outside()
    log, instance = shop.platform.log, shop.instance
    claim = f"{folder_of('orders')}/notes/reporting-{storage_id(instance)}.json"
    now = 1_800_000_000.0
    loads = OutsideLoads(shop.flow, shop.platform, names_of(shop.flow), clock=lambda: now)
    assert log.blobs.put_if_absent(claim, json.dumps({"at": now - 10}).encode())
    loads.show(instance)
    assert shop.shown() == []
    log.blobs.put(claim, json.dumps({"at": now - 1000}).encode())  # its process died
    loads.show(instance)
    assert numbers(shop.shown()) == [(1, 1)]
    assert log.blobs.get(claim) is None


def test_what_a_process_that_died_has_reported_is_not_reported_again(shop: Shop) -> None:
    """It died before it noted the entry in the instance."""
    shop.load_outside()
    shop.tick()
    shop.load_outside()
    loads = OutsideLoads(shop.flow, shop.platform, names_of(shop.flow))
    (entry,) = loads._new_loads(shop.instance, 2)
    table, _ = loads._events(shop.instance, entry)
    shop.instance.report_runless_asset_event(table)
    shop.restart()
    shop.tick()
    assert [event["state_number"] for event in shop.shown()] == [1, 2]
    assert [event["state_number"] for event in shop.shown(WATERMARK)] == [1, 2]


def test_a_run_that_was_overtaken_has_nothing_to_do_and_shows_who_loaded(shop: Shop) -> None:
    shop.load_outside()
    shop.tick()
    shop.arrive(rows=2)
    (request,) = shop.tick().run_requests or ()
    with jvmless():
        shop.platform.loop(shop.flow, datetime.now(UTC), DUE, run_id="of-no-dagster").run()
    assert shop.run(request)
    assert numbers(shop.shown()) == [(1, 1), (2, 2)]
    assert shop.shown()[-1]["loaded_by"].startswith("outside of this Dagster on ")
    (observed,) = shop.instance.fetch_observations(TABLE, limit=5).records
    assert observed.asset_observation is not None
    assert observed.asset_observation.metadata["status"].value == "nothing"
    shop.tick()
    assert len(shop.shown()) == 2


def test_a_run_that_ends_after_a_tick_shows_no_older_load_again(shop: Shop) -> None:
    """The tick looked further than the run, whose own load came after those of others."""
    for _ in range(2):
        shop.load_outside()
        shop.tick()
    loads = OutsideLoads(shop.flow, shop.platform, names_of(shop.flow))
    shop.restart()
    loads.show(shop.instance, up_to=1)
    shop.restart()
    shop.tick()
    assert numbers(shop.shown()) == [(1, 1), (2, 1)]


def test_after_its_log_began_again_a_dataflow_shows_its_newest_load(shop: Shop) -> None:
    for _ in range(3):
        shop.load_outside()
        shop.tick()
    log = shop.platform.log
    log.delete_all("orders", "")
    for file in (shop.folder / "landing").iterdir():
        file.unlink()
    shutil.rmtree(shop.folder / ".strandline/lake")
    shop.restart()
    shop.load_outside(rows=4)
    shop.tick()
    assert numbers(shop.shown())[3:] == [(1, 4)]
