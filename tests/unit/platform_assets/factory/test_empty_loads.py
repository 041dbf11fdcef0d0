"""Assets downstream run after a load without anything new, and no condition fires for it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from dagster import (
    AssetIn,
    AssetKey,
    AssetSelection,
    AutomationCondition,
    DagsterInstance,
    Definitions,
    ExecuteInProcessResult,
    MaterializeResult,
    asset,
    define_asset_job,
    evaluate_automation_conditions,
)

from platform_assets.build import build_definitions
from platform_assets.project import load_project
from resources.dagster.run_options import RunOptions
from resources.spark.engine import SparkEngine
from tests.support.jvmless import ArrowPlatform, jvmless

FLOW = """
source: {type: files, path: ./landing, format: ndjson, schema: "id long"}
watermark: {type: path}
target: {load: append, origin_columns: false}
"""
TABLE, WATERMARK = AssetKey(["bronze", "orders"]), AssetKey(["watermark", "orders"])


@asset(deps=[TABLE])
def after_the_table() -> None:
    """An asset that reads the table by itself."""


@asset(ins={"mark": AssetIn(WATERMARK)})
def of_the_watermark(mark: object) -> MaterializeResult[object]:
    """An asset that takes the watermark as its input."""
    return MaterializeResult(metadata={"mark": str(mark)})


@asset(deps=[TABLE], automation_condition=AutomationCondition.eager())
def eager() -> None:
    """An asset that Dagster's automation materialises after each load."""


def definitions(folder: Path, more: str = "") -> Definitions:
    (folder / "dataflows").mkdir(parents=True, exist_ok=True)
    (folder / "landing").mkdir(exist_ok=True)
    (folder / "dataflows/orders.yaml").write_text(FLOW + more)
    project = load_project(folder)
    assert project.errors == []
    platform = ArrowPlatform(project.state, project.lake, SparkEngine(), project.source_place)
    own = build_definitions(project, platform, RunOptions(hold_wait=timedelta(0)))
    mine = [after_the_table, of_the_watermark, eager]
    jobs = [
        define_asset_job("all", AssetSelection.all()),
        define_asset_job("marks", AssetSelection.assets(WATERMARK, "of_the_watermark")),
    ]
    return Definitions.merge(own, Definitions(assets=mine, jobs=jobs))


def run(of: Definitions, instance: DagsterInstance, job: str = "all") -> ExecuteInProcessResult:
    with jvmless():
        result = of.resolve_job_def(job).execute_in_process(instance=instance)
    assert result.success
    return result


def materialised(result: ExecuteInProcessResult) -> set[str]:
    """Return the assets that a run materialised."""
    return {
        event.asset_key.to_user_string()
        for event in result.all_events
        if event.is_step_materialization and event.asset_key
    }


MINE = {"after_the_table", "of_the_watermark", "eager"}


def test_after_an_empty_load_assets_downstream_run_with_the_table_as_it_is(tmp_path: Path) -> None:
    of = definitions(tmp_path)
    (tmp_path / "landing/a.ndjson").write_text('{"id": 1}\n')
    with DagsterInstance.ephemeral() as instance:
        assert materialised(run(of, instance)) == {*MINE, "bronze/orders", "watermark/orders"}
        assert materialised(run(of, instance)) == MINE
        (mark,) = instance.fetch_materializations(AssetKey("of_the_watermark"), limit=1).records
        assert mark.asset_materialization is not None
        assert mark.asset_materialization.metadata["mark"].value == "{'path': 'a.ndjson'}"


def test_the_watermark_alone_lets_assets_downstream_run(tmp_path: Path) -> None:
    of = definitions(tmp_path)
    (tmp_path / "landing/a.ndjson").write_text('{"id": 1}\n')
    with DagsterInstance.ephemeral() as instance:
        run(of, instance)
        assert materialised(run(of, instance, "marks")) == {"of_the_watermark"}


def test_with_skip_an_empty_load_skips_what_is_downstream(tmp_path: Path) -> None:
    of = definitions(tmp_path, "empty_load: skip\n")
    (tmp_path / "landing/a.ndjson").write_text('{"id": 1}\n')
    with DagsterInstance.ephemeral() as instance:
        run(of, instance)
        result = run(of, instance)
        assert materialised(result) == set()
        skipped = {event.step_key for event in result.all_events if event.is_step_skipped}
        assert skipped >= MINE


def test_without_a_table_assets_downstream_are_skipped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with DagsterInstance.ephemeral() as instance:
        assert materialised(run(definitions(tmp_path), instance)) == set()
    assert "nothing loaded yet: assets downstream in this run are skipped" in capfd.readouterr().err


def test_an_empty_load_fires_no_condition(tmp_path: Path) -> None:
    of = definitions(tmp_path)
    with DagsterInstance.ephemeral() as instance:

        def load(name: str) -> None:
            if name:
                (tmp_path / "landing" / name).write_text('{"id": 1}\n')
            with jvmless():
                assert of.resolve_job_def("load_orders").execute_in_process(instance=instance).success

        load("a.ndjson")
        run(of, instance)  # the eager asset is up to date
        evaluated = evaluate_automation_conditions(of, instance)
        load("")
        evaluated = evaluate_automation_conditions(of, instance, cursor=evaluated.cursor)
        assert evaluated.total_requested == 0
        load("b.ndjson")
        evaluated = evaluate_automation_conditions(of, instance, cursor=evaluated.cursor)
        assert evaluated.get_num_requested(AssetKey("eager")) == 1
