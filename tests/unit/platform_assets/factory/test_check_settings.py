"""What a dataflow's file says of its checks holds wherever a check is defined or reported."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetCheckKey,
    AssetCheckSeverity,
    AssetKey,
    AssetSelection,
    DagsterInstance,
    Definitions,
    ExecuteInProcessResult,
    asset,
    define_asset_job,
)

from partitions.dataflow import Dataflow
from partitions.supported import check_names
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
TABLE = AssetKey(["bronze", "orders"])
WARN, ERROR = AssetCheckSeverity.WARN, AssetCheckSeverity.ERROR

WINDOWS = """
source: {type: files, path: './h/{start:%Y-%m-%d}', format: ndjson, schema: 'at timestamp'}
watermark:
  type: window
  definition: [{name: day, type: datetime, range: {from: "2026-11-26", to: "2026-11-28"}}]
  window: daily
target: {load: merge_overwrite, replace_by_watermark: true}
"""
COLUMN = """
source: {type: table, table: silver/rows}
watermark: {type: column, columns: [id]}
target: {load: append}
"""
STREAM = """
source: {type: table, table: silver/rows}
watermark: {type: stream, event_time: at, split: k, timeout: PT5M}
target: {load: append}
"""

OVER = "operators: [{type: over, partition_by: [k], columns: {n: {fn: row_number}}}]\n"
SPARK_STREAM = STREAM.replace("type: stream,", "type: stream, engine: structured_streaming,").replace(
    ", split: k", ""
)


@asset(deps=[TABLE])
def report() -> None:
    """An asset of the user's, downstream of the table."""


def definitions(folder: Path, more: str = "", flow: str = FLOW) -> Definitions:
    (folder / "dataflows").mkdir(parents=True, exist_ok=True)
    (folder / "landing").mkdir(exist_ok=True)
    (folder / "dataflows/orders.yaml").write_text(flow + more)
    project = load_project(folder)
    assert project.errors == [], project.errors
    platform = ArrowPlatform(project.state, project.lake, SparkEngine(), project.source_place)
    return build_definitions(project, platform, RunOptions(hold_wait=timedelta(0)))


def run_both(folder: Path, more: str, instance: DagsterInstance) -> ExecuteInProcessResult:
    """Load the dataflow and run the asset downstream, in one run."""
    everything = AssetSelection.assets(TABLE, AssetKey(["watermark", "orders"]), "report")
    job = define_asset_job("both", everything | AssetSelection.checks_for_assets(TABLE))
    merged = Definitions.merge(definitions(folder, more), Definitions(assets=[report], jobs=[job]))
    with jvmless():
        return merged.resolve_job_def("both").execute_in_process(instance=instance, raise_on_error=False)


def statuses(result: ExecuteInProcessResult, step: str = "report") -> tuple[bool, bool]:
    """Return whether the run succeeded, and whether a step ran."""
    return result.success, step in {event.step_key for event in result.all_events if event.is_step_success}


def severities(result: ExecuteInProcessResult, check: str) -> Sequence[tuple[bool, AssetCheckSeverity]]:
    found = [item for item in result.get_asset_check_evaluations() if item.check_name == check]
    return [(item.passed, item.severity) for item in found]


@pytest.mark.parametrize(
    ("more", "severity", "is_stopped"),
    [
        ("", WARN, False),
        ("checks: {names_sort_by_time: {severity: error}}\n", ERROR, False),
        ("checks: {names_sort_by_time: {blocking: true}}\n", ERROR, True),
        ("checks: {names_sort_by_time: {blocking: true, severity: error}}\n", ERROR, True),
        ("checks: {names_sort_by_time: {blocking: true, severity: warn}}\n", WARN, False),
    ],
)
def test_only_a_blocking_check_that_fails_as_an_error_stops_what_is_downstream(
    tmp_path: Path, more: str, severity: AssetCheckSeverity, is_stopped: bool
) -> None:
    definitions(tmp_path)
    (tmp_path / "landing/event-x.ndjson").write_text('{"id": 1}\n')
    with DagsterInstance.ephemeral() as instance:
        result = run_both(tmp_path, more, instance)
        assert severities(result, "names_sort_by_time") == [(False, severity)]
        assert statuses(result) == (not is_stopped, not is_stopped)
        table = instance.fetch_materializations(TABLE, limit=10).records
        assert len(table) == 1, "the rows are loaded: only what is downstream is stopped"


def test_a_blocking_check_of_the_table_stops_what_is_downstream(tmp_path: Path) -> None:
    """Its step follows the load, so Dagster has downstream assets wait for it."""
    more = "on_bad_file: quarantine\nchecks: {late_files: {blocking: true}, quarantined_files: {severity: error}}\n"
    of = definitions(tmp_path, more)
    graph = of.resolve_asset_graph()
    blocking = {key.name: graph.get(key).blocking for key in graph.asset_check_keys}
    assert blocking == {
        "watermark_monotone": False,
        "rows_accounted": False,
        "up_to_date": False,
        "names_sort_by_time": False,
        "late_files": True,
        "quarantined_files": False,
    }


def test_a_run_that_fails_reports_with_the_severity_of_the_file(tmp_path: Path) -> None:
    definitions(tmp_path)
    (tmp_path / "landing/a.ndjson").write_text("no json\n")
    with DagsterInstance.ephemeral() as instance:
        result = run_both(tmp_path, "checks: {up_to_date: {severity: warn}}\n", instance)
        assert statuses(result) == (False, False)
        assert severities(result, "up_to_date") == [(False, WARN)]


@pytest.mark.parametrize("flow", [FLOW, WINDOWS, COLUMN, STREAM, STREAM + OVER, SPARK_STREAM])
def test_the_names_that_a_file_may_use_are_the_checks_in_dagster(tmp_path: Path, flow: str) -> None:
    of = definitions(tmp_path, flow=flow)
    dataflow: Dataflow = load_project(tmp_path).dataflows["orders"]
    keys = {AssetCheckKey(TABLE, name) for name in check_names(dataflow.watermark, dataflow.operators)}
    assert of.resolve_asset_graph().asset_check_keys == keys


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            "checks:\n  ledger: {blocking: true}\n",
            "dataflows/orders.yaml:6: checks.ledger: found ledger, expected a check of this dataflow: late_files, names_sort_by_time, quarantined_files, rows_accounted, up_to_date, watermark_monotone",
        ),
        (
            "checks:\n  late_files: {severity: fatal}\n",
            "dataflows/orders.yaml:6: checks.late_files.severity: found fatal, expected warn or error",
        ),
    ],
)
def test_an_unknown_check_or_severity_is_refused_at_its_line(
    tmp_path: Path, more: str, expected: Any
) -> None:
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "landing").mkdir()
    (tmp_path / "dataflows/orders.yaml").write_text(FLOW + more)
    assert [str(error) for error in load_project(tmp_path).errors] == [expected]
