"""A process that loads several dataflows starts Spark with the jars of all of them: none can be added later."""

from __future__ import annotations

from pathlib import Path

import pytest
from dagster import AssetKey, DagsterRun

from platform_assets.build import dataflows_loaded_by
from platform_assets.platform import build_platform
from platform_assets.project import Project, load_project
from resources.spark_runtime import AVRO_PACKAGE, DELTA_PACKAGE, POSTGRESQL_PACKAGE

PATH = "watermark: {type: path}\ntarget: {load: append}\n"
FLOWS = {
    "avro": f"source: {{type: files, path: ./a, format: avro}}\n{PATH}",
    "lines": f"source: {{type: files, path: ./l, format: ndjson}}\n{PATH}",
    "orders": "source: {type: jdbc, connection: erp, table: public.orders}\n"
    "watermark: {type: column, columns: [at]}\ntarget: {load: append}\n",
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "dataflows").mkdir()
    for name, text in FLOWS.items():
        (tmp_path / f"dataflows/{name}.yaml").write_text(text)
    (tmp_path / "platform.yaml").write_text("connections:\n  erp: {type: jdbc, url: {env: ERP_URL}}\n")
    return load_project(tmp_path, environment={"ERP_URL": "jdbc:postgresql://h/d"})


def test_the_engine_of_a_dataflow_has_the_jars_of_all_that_the_process_loads(project: Project) -> None:
    alone = build_platform(project)
    lines = project.dataflows["lines"]
    assert alone.engine(lines).packages == (DELTA_PACKAGE,)
    together = alone.loading(project.dataflows.values())
    expected = {DELTA_PACKAGE, AVRO_PACKAGE, POSTGRESQL_PACKAGE}
    assert [set(together.engine(flow).packages) for flow in project.dataflows.values()] == [expected] * 3
    assert set(together.engine_of([]).packages) == expected
    assert len(together.engine(lines).packages) == len(expected)


def test_the_engine_of_a_dataflow_reaches_its_own_places_only(project: Project) -> None:
    together = build_platform(project).loading(project.dataflows.values())
    flow = project.dataflows["lines"]
    assert together.engine(flow).places == (project.lake, project.source_place(flow))


def test_a_dataflow_whose_variable_is_not_set_holds_up_no_other(tmp_path: Path, project: Project) -> None:
    without = load_project(tmp_path, environment={})
    together = build_platform(without).loading(without.dataflows.values())
    assert set(together.engine(without.dataflows["lines"]).packages) == {DELTA_PACKAGE, AVRO_PACKAGE}


@pytest.mark.parametrize(
    ("job", "selection", "names"),
    [
        ("load_avro", None, ["avro"]),
        ("load_avro", set(), ["avro"]),
        ("__ASSET_JOB", {"bronze/avro", "watermark/avro", "bronze/orders"}, ["avro", "orders"]),
        ("load_avro", {"watermark/avro", "bronze/avro"}, ["avro"]),
        ("nightly", None, ["avro", "lines", "orders"]),
    ],
)
def test_a_run_of_dagster_loads_the_dataflows_of_its_assets_or_of_its_job(
    project: Project, job: str, selection: set[str] | None, names: list[str]
) -> None:
    keys = None if selection is None else frozenset(map(AssetKey.from_user_string, selection))
    run = DagsterRun(job_name=job, asset_selection=keys)
    assert [flow.name for flow in dataflows_loaded_by(run, list(project.dataflows.values()))] == names
