"""Resources that a user's own asset annotates: Spark and watermarks of a project, in its location and elsewhere."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetKey,
    DagsterInstance,
    Definitions,
    EnvVar,
    ResourceDefinition,
    asset,
    build_init_resource_context,
)

from partitions.errors import ConfigurationError, NeedsDecision
from platform_assets import public
from platform_assets.build import build_definitions
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from platform_assets.project_resources import SparkResource, WatermarkResource
from tests.support.chained import Chain, at
from tests.support.jvmless import jvmless

QUIET: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
PAGE = (Path(__file__).parents[3] / "docs/how-to/own-resources.md").read_text()
BLOCKS = [text for text in re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S) if "defs = " in text]
EVENTS = "source: {type: files, path: ./landing, format: ndjson, schema: id long}\nwatermark: {type: path}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "landing").mkdir()
    (tmp_path / "platform.yaml").write_text("{}")
    (tmp_path / "dataflows/events.yaml").write_text(EVENTS)
    return tmp_path


def newest(folder: Path, dataflow_id: str) -> object:
    return build_platform(load_project(folder, environment={})).manager().get_watermark(dataflow_id)


@asset
def saves(strandline_watermarks: WatermarkResource) -> None:
    before = strandline_watermarks.get_watermark("own")
    number = 1 if before is None else before["number"] + 1
    strandline_watermarks.save_watermark("own", {"number": number}, dataflow_run_id="run")


@asset
def saves_of_north(strandline_north_watermarks: WatermarkResource) -> None:
    strandline_north_watermarks.save_watermark("own", {"number": 7})


def run(definitions: Definitions, name: str) -> bool:
    job = definitions.resolve_implicit_global_asset_job_def().get_subset(asset_selection={AssetKey(name)})
    return job.execute_in_process(run_config=QUIET).success


def test_an_asset_in_a_location_of_the_project_reads_and_saves_watermarks(folder: Path) -> None:
    definitions = Definitions.merge(build_definitions(folder), Definitions(assets=[saves]))
    for number in (1, 2):
        assert run(definitions, "saves")
        assert newest(folder, "own") == {"number": number}


@pytest.mark.parametrize("own", [False, True], ids=["of the location", "of one's own"])
def test_the_run_s_log_says_that_a_saved_watermark_is_no_commit_of_rows(folder: Path, own: bool) -> None:
    resources = {"strandline_watermarks": WatermarkResource(project=str(folder))} if own else None
    definitions = Definitions(assets=[saves], resources=resources)
    if not own:
        definitions = Definitions.merge(build_definitions(folder), definitions)
    job = definitions.resolve_implicit_global_asset_job_def().get_subset(asset_selection={AssetKey("saves")})
    with DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance, run_config=QUIET)
        lines = [record.user_message for record in instance.all_logs(result.run_id)]
    assert [
        line for line in lines if "saved apart from any rows, so it is not one commit with them" in line
    ] == [
        (
            "watermark own: saved apart from any rows, so it is not one commit with them. If the run dies between the two, rows are loaded"
            " again or lost. A function with @incremental_asset saves both in one commit: docs/how-to/incremental-assets.md"
        )
    ]


def test_a_named_project_has_its_resources_under_its_name(folder: Path) -> None:
    definitions = Definitions.merge(
        build_definitions(folder, name="north"), Definitions(assets=[saves_of_north])
    )
    assert run(definitions, "saves_of_north")
    assert newest(folder, "own") == {"number": 7}


def test_a_resource_of_one_s_own_takes_the_folder_from_a_variable(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOADS", str(folder))
    own = Definitions(
        assets=[saves], resources={"strandline_watermarks": WatermarkResource(project=EnvVar("LOADS"))}
    )
    assert run(own, "saves")
    assert newest(folder, "own") == {"number": 1}


def test_a_resource_of_an_environment_has_the_state_of_it(folder: Path) -> None:
    (folder / "platform.dev.yaml").write_text("{}")
    WatermarkResource(project=str(folder), env="dev").save_watermark("own", {"number": 3})
    own = Definitions(
        assets=[saves],
        resources={"strandline_watermarks": WatermarkResource(project=str(folder), env="dev")},
    )
    assert run(own, "saves")
    assert newest(folder, "own") is None
    assert WatermarkResource(project=str(folder), env="dev").get_watermark("own") == {"number": 4}


def test_a_saved_watermark_never_falls(folder: Path) -> None:
    watermarks = WatermarkResource(project=str(folder))
    watermarks.save_watermark("own", {"number": 5})
    with pytest.raises(NeedsDecision, match="expected number at or above 5, found 4"):
        watermarks.save_watermark("own", {"number": 4})


def test_the_files_of_a_project_are_read_on_first_use(tmp_path: Path) -> None:
    watermarks = WatermarkResource(project=str(tmp_path / "missing"))
    with pytest.raises(ConfigurationError, match="expected a folder, found nothing"):
        watermarks.get_watermark("own")


@pytest.mark.parametrize("block", BLOCKS)
def test_the_definitions_that_the_documentation_shows_load(
    block: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = folder / "loads"
    (loads / "dataflows").mkdir(parents=True)
    (loads / "platform.yaml").write_text("connections: {minio: {type: dagster}, erp: {type: dagster}}")
    (loads / "dataflows/events.yaml").write_text(EVENTS)
    monkeypatch.chdir(folder)
    monkeypatch.setitem(sys.modules, "strandline", public)
    names: dict[str, Any] = {}
    exec(block, names)
    assert names["defs"].get_repository_def()


def test_a_platform_beside_a_passed_spark_is_refused(folder: Path) -> None:
    project = load_project(folder, environment={})
    with pytest.raises(ConfigurationError, match="Leave platform out"):
        build_definitions(project, build_platform(project), spark=lambda: None)  # type: ignore[arg-type]


def test_the_page_of_a_resource_shows_what_it_is(folder: Path) -> None:
    definitions = build_definitions(folder)
    resource = (definitions.resources or {})["strandline_spark"]
    assert isinstance(resource, ResourceDefinition)
    assert (resource.description or "").startswith("Spark sessions as loads of a project have them")
    assert isinstance(resource(build_init_resource_context()), SparkResource)


def test_loaded_windows_are_times_by_unit(tmp_path: Path) -> None:
    chain = Chain(tmp_path / "project", day_units=("EWR", "JFK"), now=at(49))
    chain.root.mkdir()
    for hour in range(48):
        chain.arrive("EWR", hour, 1)
    with jvmless():
        chain.run("hours")
        chain.run("days")
    watermarks = WatermarkResource.of(chain.platform())
    loaded = {"EWR": [(at(0), at(48))], "JFK": [(at(0), at(48))]}
    assert watermarks.get_loaded_windows("days") == loaded
    assert watermarks.get_loaded_windows("never_loaded") == {}


def test_loaded_windows_of_another_kind_are_refused(folder: Path) -> None:
    watermarks = WatermarkResource(project=str(folder))
    watermarks.save_watermark("own", {"id": 1})
    with pytest.raises(
        ConfigurationError, match="watermark own: expected windows, found a watermark of kind"
    ):
        watermarks.get_loaded_windows("own")
