"""A project folder becomes a project."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from partitions.errors import ConfigurationError
from platform_assets.project import InvalidProject, load_project
from resources.connections.places import Place, S3Connection
from tests.support.projects import FILES as GOOD

if TYPE_CHECKING:
    from tests.unit.platform_assets.project.conftest import Make


def test_every_setting_has_a_default(make: Make) -> None:
    project = make(GOOD)
    folder = project.folder
    assert (project.state, project.lake) == (
        Place(f"{folder}/.strandline/state"),
        Place(f"{folder}/.strandline/lake"),
    )
    assert (project.settings.format, project.spark_settings.master, project.spark_settings.remote) == (
        "delta",
        "local[*]",
        None,
    )
    assert (project.spark_settings.conf, project.settings.connections) == ({}, {})


def test_relative_paths_count_from_the_project_folder_and_stay_as_written(make: Make) -> None:
    project = make(GOOD)
    flow = project.dataflows["flow"]
    assert flow.files.path == "./landing"
    assert project.source_place(flow) == Place(str(project.folder / "landing"))


def test_a_table_lies_at_lake_layer_name(make: Make) -> None:
    other = GOOD + "layer: silver\ntarget: {table: gold/best}\n"
    project = make(GOOD, platform="lake: s3://b/lake/\n", files={"dataflows/other.yaml": other})
    assert [project.lake.child(flow.table).url for flow in project.dataflows.values()] == [
        "s3://b/lake/bronze/flow",
        "s3://b/lake/gold/best",
    ]


def test_a_path_on_an_object_store_needs_no_connection(make: Make) -> None:
    project = make(GOOD.replace("./landing", "s3://b/in"), platform="state: s3://b/state\n")
    assert project.errors == []
    assert project.state == Place("s3://b/state")


def test_state_and_lake_take_a_connection(make: Make) -> None:
    project = make(
        platform="lake: {path: s3://b/x, connection: land}\nconnections: {land: {type: s3, region: r}}\n"
    )
    assert project.lake.connection is not None
    assert project.lake.connection.region == "r"


def test_spark_settings_are_texts_as_spark_writes_them(make: Make) -> None:
    project = make(platform="spark: {master: 'local[2]', conf: {a.b: 4, c: true, d: 1.5, e: x}}\n")
    assert project.spark_settings.conf == {"a.b": "4", "c": "true", "d": "1.5", "e": "x"}


def test_a_connect_server_of_the_environment_goes_before_the_settings(make: Make) -> None:
    project = make(
        platform="spark: {master: 'local[2]'}\n", environment={"STRANDLINE_SPARK_REMOTE": "sc://h:1"}
    )
    assert project.spark_settings.remote == "sc://h:1"


def test_a_wrong_connect_server_of_the_environment_is_refused(make: Make) -> None:
    project = make(environment={"STRANDLINE_SPARK_REMOTE": "local[*]"}, platform="format: delta\n")
    with pytest.raises(ConfigurationError, match="STRANDLINE_SPARK_REMOTE: expected sc://host:port"):
        _ = project.spark_settings


def test_one_bad_file_leaves_the_others_loaded(make: Make) -> None:
    project = make(GOOD, files={"dataflows/bad.yaml": "layer: silver\n", "dataflows/aaa.yaml": GOOD})
    assert list(project.dataflows) == ["aaa", "flow"]
    assert {name: len(errors) for name, errors in project.broken.items()} == {"bad": 2}
    assert (project.layer("bad"), project.layer("flow")) == ("silver", "bronze")


def test_broken_names_are_fit_for_dagster_and_never_those_of_valid_dataflows(make: Make) -> None:
    project = make(
        GOOD, files={"dataflows/Up-2.yaml": GOOD, "dataflows/flow.yml": GOOD, "dataflows/x/y.yaml": ""}
    )
    assert list(project.broken) == ["Up_2", "y"]
    assert len(project.errors) == 3


def test_broken_settings_are_never_replaced_by_defaults(make: Make) -> None:
    project = make(GOOD, platform="lake: 5\n")
    assert list(project.dataflows) == ["flow"]
    with pytest.raises(InvalidProject, match=r"platform\.yaml:1: lake: found 5"):
        _ = project.lake
    with pytest.raises(InvalidProject):
        project.named([])


def test_connections_with_mistakes_still_have_names_for_the_dataflows(make: Make) -> None:
    flow = GOOD.replace("./landing", "s3://b/x, connection: land")
    project = make(flow, platform="connections: {land: {type: s3, regoin: x}}\n")
    assert [error.file for error in project.errors] == ["platform.yaml"]


def test_dataflows_are_asked_for_by_name(make: Make) -> None:
    project = make(GOOD, files={"dataflows/other.yaml": GOOD, "dataflows/bad.yaml": ""})
    assert [flow.name for flow in project.named([])] == ["flow", "other"]
    assert [flow.name for flow in project.named(["other", "flow", "other"])] == ["other", "flow"]
    with pytest.raises(InvalidProject) as refused:
        project.named(["flow", "bad"])
    assert [error.file for error in refused.value.errors] == ["dataflows/bad.yaml"] * 2
    with pytest.raises(ConfigurationError, match="found 'othr': did you mean other") as unknown:
        project.named(["othr"])
    assert (unknown.value.code, unknown.value.exit_code) == ("unknown_dataflow", 2)


def test_an_unknown_connection_is_refused_at_use(make: Make) -> None:
    with pytest.raises(ConfigurationError, match="found 'nope'"):
        make(GOOD).connection("nope", S3Connection)


def test_a_missing_folder_and_a_folder_without_a_project_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected a folder, found nothing"):
        load_project(tmp_path / "nope")
    with pytest.raises(ConfigurationError, match="found neither"):
        load_project(tmp_path)


def test_settings_alone_are_an_empty_project(tmp_path: Path) -> None:
    (tmp_path / "platform.yaml").write_text("")
    project = load_project(tmp_path, environment={})
    assert (project.dataflows, project.errors) == ({}, [])


def test_a_file_in_place_of_the_dataflows_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "dataflows").write_text("")
    assert [error.message for error in load_project(tmp_path, environment={}).errors] == [
        "dataflows:1: found a file, expected a folder with one file a dataflow"
    ]


def test_the_environment_chooses_the_project(make: Make) -> None:
    folder = make(GOOD).folder
    assert load_project(environment={"STRANDLINE_PROJECT": str(folder)}).folder == folder


@pytest.mark.parametrize("held", ["platform.yaml", "dataflows"])
def test_a_project_in_the_working_folder_is_meant_unless_named(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: str
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / held).mkdir() if held == "dataflows" else (tmp_path / "here" / held).touch()
    monkeypatch.chdir(tmp_path / "here")
    assert load_project(environment={}).folder == tmp_path / "here"
    other = make(GOOD).folder
    assert load_project(environment={"STRANDLINE_PROJECT": str(other)}).folder == other


def test_the_default_project_is_the_checkouts_demo_and_is_valid() -> None:
    project = load_project(environment={})
    assert project.errors == []
    assert project.folder.name == "platform_assets"
    flow = project.dataflows["flights"]
    assert (flow.table, flow.target.partition_by, flow.files.endings) == (
        "bronze/flights",
        ("date",),
        (".ndjson.gz",),
    )


def test_the_settings_format_is_that_of_each_target_that_names_none(make: Make) -> None:
    flow = "source: {type: files, path: x, format: csv}\nwatermark: {type: path}\n"
    own = flow + "target: {format: delta}\n"
    files = {"plain": flow, "own": own, "keyed": flow + "target: {table: a/b}\n"}
    texts = {f"dataflows/{name}.yaml": text for name, text in files.items()}
    project = make(platform="format: iceberg\n", files=texts)
    formats = {name: found.target.format for name, found in project.dataflows.items()}
    assert formats == {"keyed": "iceberg", "own": "delta", "plain": "iceberg"}
