"""The component that `dg` makes: what its scaffold writes. The commands themselves are tried in tests/packaging."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from dagster import Definitions, ScaffoldRequest
from dagster.components.testing import create_defs_folder_sandbox
from dagster_aws.s3 import S3Resource
from pydantic import ValidationError

from partitions.errors import ConfigurationError
from platform_assets.component import FirstDataflow, ProjectScaffolder, StrandlineProject
from platform_assets.dagster_internals import VALIDATES
from platform_assets.platform import build_platform
from platform_assets.project import InvalidProject, load_project


def test_the_folder_that_a_first_dataflow_reads_is_there(tmp_path: Path) -> None:
    request = ScaffoldRequest(
        type_name="strandline.StrandlineProject",
        target_path=tmp_path,
        scaffold_format="yaml",
        project_root=tmp_path,
        params=FirstDataflow(name="orders_2"),
        append=False,
    )
    ProjectScaffolder().scaffold(request)
    project = load_project(tmp_path, environment={})
    assert project.errors == []
    place = build_platform(project).root_of(project.dataflows["orders_2"]).local
    assert place is not None
    assert place.is_dir()


@pytest.mark.parametrize("name", ["Orders", "or ders", "../orders", "2x", ""])
def test_a_name_that_no_dataflow_can_have_is_refused(name: str) -> None:
    with pytest.raises(ValidationError, match="should match pattern"):
        FirstDataflow(name=name)


@contextmanager
def _location(
    root: Path, projects: Mapping[str, Mapping[str, object]], module: str = ""
) -> Iterator[Definitions]:
    """Load a location with a component for each project, as Dagster loads its files ``defs.yaml``.

    A Python module of the user's own stands beside them.
    """
    with create_defs_folder_sandbox() as sandbox:
        (sandbox.defs_folder_path / "own.py").write_text(module)
        for name, attributes in projects.items():
            folder = root / name
            (folder / "dataflows").mkdir(parents=True)
            (folder / "platform.yaml").write_text("{}")
            (folder / "dataflows/events.yaml").write_text(
                "source: {type: files, path: ./landing, format: ndjson, schema: id long}\nwatermark: {type: path}\n"
            )
            sandbox.scaffold_component(
                component_cls=StrandlineProject,
                defs_path=name,
                defs_yaml_contents={
                    "type": "platform_assets.component.StrandlineProject",
                    "attributes": {"project": str(folder), **attributes},
                },
            )
        with sandbox.build_all_defs() as definitions:
            yield definitions


def _jobs(definitions: Definitions) -> set[str]:
    jobs = definitions.get_repository_def().get_all_jobs()
    return {job.name for job in jobs if not job.name.startswith("__")}


def test_the_attributes_of_a_component_name_its_parts_and_translate_its_assets(tmp_path: Path) -> None:
    attributes = {
        "name": "north",
        "key_prefix": "north",
        "decisions": False,
        "translation": {
            "key": "{{ spec.key.to_user_string() }}_of_{{ dataflow.kind }}",
            "group_name": "{{ data.role }}s",
            "tags": {"flow": "{{ dataflow.name }}"},
        },
    }
    with _location(tmp_path, {"shop": attributes}) as definitions:
        specs, jobs = definitions.resolve_all_asset_specs(), _jobs(definitions)
        sensors = {sensor.name for sensor in definitions.get_repository_def().sensor_defs}
    assert {spec.key.to_user_string(): spec.group_name for spec in specs} == {
        "north/bronze/events_of_path": "tables",
        "north/watermark/events_of_path": "watermarks",
    }
    assert {spec.tags["flow"] for spec in specs} == {"events"}
    assert jobs == {"load_north__events", "late_north__events"}
    assert sensors == {"north__events_files", "north__events_late"}


def test_a_key_prefix_of_a_component_may_be_a_list(tmp_path: Path) -> None:
    with _location(tmp_path, {"shop": {"key_prefix": ["shop", "north"]}}) as definitions:
        specs = definitions.resolve_all_asset_specs()
    assert {spec.key.to_user_string() for spec in specs} == {
        "shop/north/bronze/events",
        "shop/north/watermark/events",
    }


def test_two_components_with_names_stand_in_one_location(tmp_path: Path) -> None:
    projects = {name: {"name": name, "key_prefix": name, "decisions": False} for name in ("north", "south")}
    with _location(tmp_path, projects) as definitions:
        assert _jobs(definitions) == {
            f"{verb}_{name}__events" for verb in ("load", "late") for name in ("north", "south")
        }


def test_checks_of_a_module_beside_the_components_are_in_the_jobs_of_their_tables(tmp_path: Path) -> None:
    module = """
from dagster import AssetCheckResult, AssetKey, asset_check

@asset_check(asset=AssetKey(["north", "bronze", "events"]))
def of_the_user():
    return AssetCheckResult(passed=True)
"""
    projects = {name: {"name": name, "key_prefix": name, "decisions": False} for name in ("north", "south")}
    with _location(tmp_path, projects, module) as definitions:
        checks = {
            name: {
                key.name
                for key in definitions.resolve_job_def(
                    f"load_{name}__events"
                ).asset_layer.asset_graph.asset_check_keys
            }
            for name in ("north", "south")
        }
    assert checks["north"] - checks["south"] == {"of_the_user"}
    assert "rows_accounted" in checks["south"]


@pytest.mark.parametrize(
    ("strict", "validates", "fails"),
    [(None, False, False), (None, True, True), (False, True, False), (True, False, True)],
)
def test_a_broken_dataflow_fails_the_check_of_definitions_and_no_location_that_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, strict: bool | None, validates: bool, fails: bool
) -> None:
    monkeypatch.setenv(VALIDATES, "1" if validates else "")
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "dataflows/returns.yaml").write_text("source: {type: files}\n")
    with create_defs_folder_sandbox() as sandbox:
        sandbox.scaffold_component(
            component_cls=StrandlineProject,
            defs_path="loads",
            defs_yaml_contents={
                "type": "platform_assets.component.StrandlineProject",
                "attributes": {"project": str(tmp_path), **({} if strict is None else {"strict": strict})},
            },
        )
        if fails:
            with (
                pytest.raises(Exception, match="Error while building definitions for loads") as raised,
                sandbox.build_all_defs(),
            ):
                pass
            assert isinstance(raised.value.__cause__, InvalidProject)
            assert str(raised.value.__cause__).startswith("dataflows/returns.yaml:1: source.format: ")
        else:
            with sandbox.build_all_defs() as definitions:
                keys = {spec.key.to_user_string() for spec in definitions.resolve_all_asset_specs()}
            assert keys == {"bronze/returns"}, "an asset that shows the errors"


def test_template_variables_give_connections_and_spark(tmp_path: Path) -> None:
    attributes = {"connections": {"minio": "{{ minio }}"}, "spark": "{{ spark }}"}
    for folder in ("dataflows", "landing"):
        (tmp_path / folder).mkdir()
    (tmp_path / "platform.yaml").write_text("connections: {minio: {type: dagster}}")
    (tmp_path / "dataflows/events.yaml").write_text(
        "source: {type: files, path: s3://b/landing, connection: minio, format: ndjson}\nwatermark: {type: path}\n"
    )
    with create_defs_folder_sandbox() as sandbox:
        place = sandbox.scaffold_component(
            component_cls=StrandlineProject,
            defs_path="shop",
            defs_yaml_contents={
                "type": "platform_assets.component.StrandlineProject",
                "template_vars_module": ".template_vars",
                "attributes": {"project": str(tmp_path), **attributes},
            },
        )
        page = Path(__file__).parents[3] / "docs/how-to/own-resources.md"
        (shown,) = re.findall(r"^```python\n(# template_vars\.py.*?)^```$", page.read_text(), re.M | re.S)
        spark = "\n\n@template_var\ndef spark():\n    return lambda: None\n"
        (place / "template_vars.py").write_text(shown + spark)
        with sandbox.load_component_and_build_defs(defs_path=place) as (component, definitions):
            assert isinstance(component, StrandlineProject)
            assert isinstance(component.connections["minio"], S3Resource)
            assert callable(component.spark)
            assert "load_events" in _jobs(definitions)


def test_two_components_without_a_name_are_refused_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(Exception) as refused, _location(tmp_path, {"north": {}, "south": {}}):  # noqa: PT011 - Dagster says where it was
        pass
    assert isinstance(refused.value.__cause__, ConfigurationError)
    assert "or `name: north` and `key_prefix: north` in the attributes of its defs.yaml" in str(
        refused.value.__cause__
    )


def test_the_translation_that_the_documentation_shows_works(tmp_path: Path) -> None:
    page = Path(__file__).parents[3] / "docs/how-to/several-projects.md"
    blocks = [
        yaml.safe_load(text) for text in re.findall(r"^```yml\n(.*?)^```$", page.read_text(), re.M | re.S)
    ]
    attributes = {key: value for key, value in blocks[1]["attributes"].items() if key != "project"}
    with _location(tmp_path, {"shop": attributes}) as definitions:
        specs = definitions.resolve_all_asset_specs()
    assert {spec.key.to_user_string(): (spec.group_name, *spec.owners) for spec in specs} == {
        "shop/bronze/events": ("bronze_table", "team:shop"),
        "shop/watermark/events": ("bronze_watermark", "team:shop"),
    }
    assert {spec.tags["kind"] for spec in specs} == {"path"}
