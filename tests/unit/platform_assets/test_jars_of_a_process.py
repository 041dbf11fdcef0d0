"""A process that loads several dataflows starts Spark with the jars of all of them: none can be added later."""

from __future__ import annotations

from pathlib import Path

import pytest
from dagster import AssetKey, DagsterRun

from platform_assets.build import dataflows_loaded_by
from platform_assets.platform import build_platform, engine_of_project
from platform_assets.project import Project, load_project
from resources.dagster.names import DagsterNames
from resources.spark_runtime import AVRO_PACKAGE, DELTA_PACKAGE, POSTGRESQL_PACKAGE
from resources.tables.registry import PACKAGES

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
    assert set(together.engines.of([]).packages) == expected
    assert len(together.engine(lines).packages) == len(expected)


def test_the_engine_of_a_dataflow_reaches_its_own_places_only(project: Project) -> None:
    together = build_platform(project).loading(project.dataflows.values())
    flow = project.dataflows["lines"]
    assert together.engine(flow).places == (project.lake, project.source_place(flow))


def test_a_dataflow_whose_variable_is_not_set_holds_up_no_other(tmp_path: Path, project: Project) -> None:
    without = load_project(tmp_path, environment={})
    together = build_platform(without).loading(without.dataflows.values())
    assert set(together.engine(without.dataflows["lines"]).packages) == {DELTA_PACKAGE, AVRO_PACKAGE}


def test_a_table_has_its_jars_also_if_the_variable_of_its_source_is_not_set(
    tmp_path: Path, project: Project
) -> None:
    path = tmp_path / "dataflows/orders.yaml"
    path.write_text(path.read_text().replace("{load: append}", "{load: append, format: iceberg}"))
    without = load_project(tmp_path, environment={})
    assert set(engine_of_project(without).packages) == {DELTA_PACKAGE, AVRO_PACKAGE, *PACKAGES["iceberg"]}


def test_the_jars_of_a_project_are_those_of_its_runs_also_for_an_input_table_of_another_format(
    tmp_path: Path, project: Project
) -> None:
    metadata = tmp_path / ".strandline/lake/ref/airports/metadata"
    metadata.mkdir(parents=True)
    (metadata / "v1.metadata.json").write_text("{}")
    (tmp_path / "dataflows/joined.yaml").write_text(
        f"source: {{type: files, path: ./j, format: ndjson}}\n{PATH}inputs: {{airports: ref/airports}}\n"
        "sql: SELECT * FROM source JOIN airports USING (id)\n"
    )
    project = load_project(tmp_path, environment={"ERP_URL": "jdbc:postgresql://h/d"})
    runs = build_platform(project).loading(project.dataflows.values()).engine(project.dataflows["joined"])
    assert set(engine_of_project(project).packages) == set(runs.packages) >= set(PACKAGES["iceberg"])


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
    flows = list(project.dataflows.values())
    assert [flow.name for flow in dataflows_loaded_by(run, flows, DagsterNames.of(flows))] == names
