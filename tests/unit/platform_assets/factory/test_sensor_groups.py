"""One sensor looks for up to fifty dataflows, as the sensor of each would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    DagsterInstance,
    DagsterRunStatus,
    SensorDefinition,
    SensorResult,
    SkipReason,
    build_sensor_context,
)
from dagster._core.test_utils import create_run_for_test

from platform_assets.build import build_definitions
from platform_assets.factory.jobs import dataflow_job
from platform_assets.factory.sensor_groups import group_sensors
from platform_assets.factory.sensors import DataflowSensor, SensorShell
from platform_assets.factory.ticks import NoWork, Tick, Work
from resources.connections.places import Place
from resources.dagster.names import DagsterNames
from resources.dagster.run_tags import DATAFLOW_TAG
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine
from tests.support.names import names_of, names_of_runs
from tests.support.ticks import flow_of


class Toys:
    """Many dataflows whose looks answer what a test sets."""

    def __init__(self, root: Path, instance: DagsterInstance, count: int) -> None:
        self.instance, self.cursor = instance, ""
        self.answers: dict[str, NoWork | Work | Exception] = {}
        self.looked: list[str] = []
        self.platform = Platform(
            Place(str(root / "state")),
            Place(str(root / "lake")),
            SparkEngine(),
            lambda flow: Place(str(root)),
        )
        self.sensors = [self._sensor(f"flow_{number:03d}") for number in range(count)]

    def _sensor(self, name: str) -> DataflowSensor:
        def look(tick: Tick) -> NoWork | Work:
            self.looked.append(name)
            answer = self.answers.get(name, NoWork("nothing new"))
            if isinstance(answer, Exception):
                raise answer
            return answer

        flow = flow_of(name=name)
        return SensorShell("toys", "For tests.").build(
            flow, self.platform, names_of(flow), dataflow_job(flow, names_of(flow)), look
        )

    def work(self, name: str) -> Work:
        return Work(None, "x", lambda attempt: [names_of_runs(name).run_request(f"{name}:{attempt}")])

    def tick(self, group: SensorDefinition) -> SensorResult:
        self.looked = []
        result = group(build_sensor_context(instance=self.instance, cursor=self.cursor or None))
        assert isinstance(result, SensorResult)
        self.cursor = result.cursor or ""
        return result


@pytest.fixture
def toys(tmp_path: Path) -> Iterator[Toys]:
    with DagsterInstance.ephemeral() as instance:
        yield Toys(tmp_path, instance, 120)


def why(result: SensorResult) -> str:
    assert isinstance(result.skip_reason, SkipReason)
    return str(result.skip_reason.skip_message)


def asked(result: SensorResult) -> list[tuple[Any, Any]]:
    return [(request.job_name, request.run_key) for request in result.run_requests or ()]


def test_up_to_a_hundred_dataflows_have_a_sensor_each(toys: Toys) -> None:
    sensors = group_sensors(toys.sensors[:100], DagsterNames())
    assert [sensor.name for sensor in sensors] == [f"flow_{number:03d}_toys" for number in range(100)]


def test_more_have_groups_of_at_most_fifty_that_dagster_takes(toys: Toys) -> None:
    groups = group_sensors(toys.sensors, DagsterNames())
    assert [group.name for group in groups] == [f"strandline_toys_{number}" for number in (1, 2, 3)]
    named = group_sensors(toys.sensors, DagsterNames.of([], "north"))
    assert [group.name for group in named] == [f"strandline_north_toys_{number}" for number in (1, 2, 3)]
    assert [len(group.targets) for group in groups] == [50, 50, 20]
    assert {group.minimum_interval_seconds for group in groups} == {30}


def test_a_project_of_more_than_a_hundred_dataflows_has_groups_that_dagster_takes(tmp_path: Path) -> None:
    (tmp_path / "dataflows").mkdir()
    for number in range(101):
        (tmp_path / f"dataflows/flow_{number:03d}.yaml").write_text(
            "source: {type: files, path: ./landing, format: ndjson}\nwatermark: {type: path}\ntarget: {load: append}\n"
        )
    (tmp_path / "platform.yaml").write_text("sensors: {interval: PT7S}\n")
    sensors = build_definitions(tmp_path).get_repository_def().sensor_defs
    intervals = {each.name: each.minimum_interval_seconds for each in sensors}
    assert (intervals["strandline_files_1"], intervals["strandline_late_1"]) == (7, 300)
    assert sorted(each.name for each in sensors) == [
        f"strandline_{name}_{number}" for name in ("files", "late") for number in (1, 2, 3)
    ]


def test_a_group_requests_the_runs_of_each_and_says_once_why_there_are_no_others(toys: Toys) -> None:
    group = group_sensors(toys.sensors, DagsterNames())[0]
    assert why(toys.tick(group)) == "flow_000, flow_001, flow_002 and 47 more: nothing new"
    toys.answers["flow_007"] = toys.work("flow_007")
    toys.answers["flow_009"] = toys.work("flow_009")
    first = asked(toys.tick(group))
    assert [name for name, _ in first] == ["load_flow_007", "load_flow_009"]
    # Each has its own attempts, as it has with a sensor of its own.
    again = toys.tick(group)
    assert asked(again) == []
    assert why(again).startswith("flow_007, flow_009: attempt 1 did not commit")
    assert len(toys.cursor) < 1000


def test_a_source_that_is_down_keeps_no_other_waiting_and_is_named(toys: Toys) -> None:
    group = group_sensors(toys.sensors, DagsterNames())[0]
    toys.answers["flow_003"] = ConnectionError("no route")
    told = why(toys.tick(group))
    assert told.startswith("flow_003 failed: no route; ")
    assert len(toys.looked) == 50
    toys.answers["flow_004"] = toys.work("flow_004")
    assert [name for name, _ in asked(toys.tick(group))] == ["load_flow_004"]


def test_a_tick_in_which_all_fail_has_failed(toys: Toys) -> None:
    group = group_sensors(toys.sensors, DagsterNames())[2]
    toys.answers |= {each.dataflow: ConnectionError("no store") for each in toys.sensors}
    with pytest.raises(ConnectionError, match="no store"):
        toys.tick(group)


def test_a_tick_that_has_enough_leaves_the_others_to_the_next_one(toys: Toys) -> None:
    group = group_sensors(toys.sensors, DagsterNames())[0]
    toys.answers |= {each.dataflow: toys.work(each.dataflow) for each in toys.sensors}
    assert len(asked(toys.tick(group))) == 25
    second = toys.tick(group)
    assert toys.looked[0] == "flow_025"
    assert [name for name, _ in asked(second)] == [f"load_flow_{number:03d}" for number in range(25, 50)]


def test_a_slow_source_is_waited_for_only_a_tick(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform_assets.factory.sensor_groups._BUDGET", -1.0)
    group = group_sensors(toys.sensors, DagsterNames())[0]
    seen = []
    for _ in range(3):
        toys.tick(group)
        seen += toys.looked
    assert seen == ["flow_000", "flow_001", "flow_002"]


def test_failing_slow_sources_keep_no_other_waiting(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform_assets.factory.sensor_groups._BUDGET", -1.0)
    group = group_sensors(toys.sensors, DagsterNames())[0]
    toys.answers |= {f"flow_{number:03d}": ConnectionError("no answer") for number in (0, 1)}
    told = []
    for _ in range(3):
        told.append(why(toys.tick(group)))
        assert len(toys.looked) == 1
    assert told == ["flow_000 failed: no answer", "flow_001 failed: no answer", "flow_002: nothing new"]


def test_a_group_asks_dagster_once_for_all_its_runs(toys: Toys, monkeypatch: pytest.MonkeyPatch) -> None:
    tags = {DATAFLOW_TAG: "flow_007"}
    run = create_run_for_test(
        toys.instance, job_name="load_flow_007", status=DagsterRunStatus.STARTED, tags=tags
    )
    questions = []
    ask = toys.instance.get_run_records

    def counted(*arguments: Any, **words: Any) -> Any:
        questions.append(arguments)
        return ask(*arguments, **words)

    monkeypatch.setattr(toys.instance, "get_run_records", counted)
    told = why(toys.tick(group_sensors(toys.sensors, DagsterNames())[0]))
    assert told.startswith(f"flow_007: run {run.run_id[:8]} is in flight; flow_000, flow_001")
    assert len(toys.looked) == 49
    assert len(questions) == 1
