"""A user's own checks of a dataflow's assets run with each run that loads them, wherever they are defined."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dagster import (
    AssetCheckExecutionContext,
    AssetCheckKey,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSpec,
    AssetIn,
    AssetKey,
    AutomationCondition,
    DagsterInstance,
    Definitions,
    ExecuteInProcessResult,
    FilesystemIOManager,
    RunRequest,
    SensorResult,
    asset,
    asset_check,
    build_column_schema_change_checks,
    build_last_update_freshness_checks,
    build_sensor_context,
    evaluate_automation_conditions,
    multi_asset_check,
)

from platform_assets.build import build_definitions
from platform_assets.project import load_project
from resources.dagster.run_options import RunOptions
from resources.spark.engine import SparkEngine
from tests.support.chained import Chain, at
from tests.support.jvmless import ArrowPlatform, jvmless

pytestmark = pytest.mark.without_jvm

FLOW = """
source: {type: files, path: ./landing, format: ndjson, schema: "id long"}
watermark: {type: path}
target: {load: append, origin_columns: false}
"""
ORDERS, RETURNS = AssetKey(["bronze", "orders"]), AssetKey(["bronze", "returns"])
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@asset_check(asset=ORDERS)
def has_rows(orders: pa.Table) -> AssetCheckResult:
    """A check that reads the table."""
    return AssetCheckResult(passed=orders.num_rows > 0, metadata={"rows": orders.num_rows})


@multi_asset_check(
    specs=[AssetCheckSpec("of_both", asset=ORDERS), AssetCheckSpec("of_both", asset=RETURNS)],
    can_subset=True,
)
def of_both(context: AssetCheckExecutionContext) -> Iterator[AssetCheckResult]:
    """Checks of two tables, one of which a run may select alone."""
    for key in context.selected_asset_check_keys:
        yield AssetCheckResult(passed=True, asset_key=key.asset_key, check_name=key.name)


@asset_check(asset=AssetKey(["watermark", "orders"]))
def of_the_watermark() -> AssetCheckResult:
    """A check of the watermark's asset."""
    return AssetCheckResult(passed=True)


BUILT = [
    *build_column_schema_change_checks(assets=[ORDERS]),
    *build_last_update_freshness_checks(assets=[ORDERS], lower_bound_delta=timedelta(days=1)),
]
"""Checks that Dagster's own functions return."""


def project(folder: Path, more: str = "", **options: Any) -> Definitions:
    for name in ("dataflows", "landing"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("orders", "returns"):
        (folder / f"dataflows/{name}.yaml").write_text(FLOW + more)
    loaded = load_project(folder)
    assert loaded.errors == []
    platform = ArrowPlatform(loaded.state, loaded.lake, SparkEngine(), loaded.source_place)
    return build_definitions(loaded, platform, RunOptions(hold_wait=timedelta(0)), **options)


def with_checks(definitions: Definitions, *checks: AssetChecksDefinition, **more: Any) -> Definitions:
    return Definitions.merge(definitions, Definitions(asset_checks=checks, **more))


def put(folder: Path, name: str = "a.ndjson") -> None:
    (folder / "landing" / name).write_text('{"id": 1}\n{"id": 2}\n')


def requested(of: Definitions, instance: DagsterInstance, sensor: str = "orders_files") -> RunRequest:
    result = of.resolve_sensor_def(sensor)(build_sensor_context(instance=instance))
    assert isinstance(result, SensorResult)
    (request,) = result.run_requests or ()
    return request


def run(
    of: Definitions, instance: DagsterInstance, job: str = "load_orders", request: RunRequest | None = None
) -> ExecuteInProcessResult:
    """Run a job, or what a sensor has requested of it."""
    asked = request or RunRequest()
    with jvmless():
        return of.resolve_job_def(job).execute_in_process(
            instance=instance,
            run_config=QUIET,
            partition_key=asked.partition_key,
            tags=asked.tags,
            raise_on_error=False,
        )


def own_results(result: ExecuteInProcessResult) -> list[tuple[str, str, bool]]:
    """Return the results of the user's checks, with the assets' keys."""
    ours = {"watermark_monotone", "rows_accounted", "up_to_date", "names_sort_by_time", "ledger"}
    return sorted(
        (item.asset_key.to_user_string(), item.check_name, item.passed)
        for item in result.get_asset_check_evaluations()
        if item.check_name not in ours
    )


def test_a_run_that_a_sensor_requests_evaluates_all_checks_of_its_assets_after_the_load(
    tmp_path: Path,
) -> None:
    of = with_checks(project(tmp_path), has_rows, of_both, of_the_watermark, *BUILT)
    put(tmp_path)
    with DagsterInstance.ephemeral() as instance:
        result = run(of, instance, request=requested(of, instance))
        assert result.success
        assert own_results(result) == [
            ("bronze/orders", "column_schema_change", True),
            ("bronze/orders", "freshness_check", True),
            ("bronze/orders", "has_rows", True),
            ("bronze/orders", "of_both", True),
            ("watermark/orders", "of_the_watermark", True),
        ]
        (rows,) = [item for item in result.get_asset_check_evaluations() if item.check_name == "has_rows"]
        assert rows.metadata["rows"].value == 2
        (loaded,) = instance.fetch_materializations(ORDERS, limit=5).records
        assert rows.target_materialization_data is not None
        assert rows.target_materialization_data.storage_id == loaded.storage_id, "it is about this load"


def test_the_operators_checks_stay_out_of_the_job(tmp_path: Path) -> None:
    of = with_checks(project(tmp_path), has_rows)
    keys = of.resolve_job_def("load_orders").asset_layer.asset_graph.asset_check_keys
    names = ("has_rows", "names_sort_by_time", "rows_accounted", "up_to_date", "watermark_monotone")
    assert keys == {AssetCheckKey(ORDERS, name) for name in names}


def test_after_a_load_of_nothing_checks_look_at_the_table_as_it_is(tmp_path: Path) -> None:
    of = with_checks(project(tmp_path), has_rows)
    with DagsterInstance.ephemeral() as instance:
        assert own_results(run(of, instance)) == [], "there is no table yet"
        put(tmp_path)
        for _ in range(2):
            assert own_results(run(of, instance)) == [("bronze/orders", "has_rows", True)]
        assert len(instance.fetch_materializations(ORDERS, limit=5).records) == 1


def test_a_check_that_fails_or_raises_leaves_the_load_as_it_is(tmp_path: Path) -> None:
    @asset_check(asset=ORDERS, blocking=True)
    def fails() -> AssetCheckResult:
        return AssetCheckResult(passed=False)

    @asset_check(asset=ORDERS)
    def raises() -> AssetCheckResult:
        raise ValueError("of the user")

    of = with_checks(project(tmp_path), fails, raises)
    put(tmp_path)
    with DagsterInstance.ephemeral() as instance:
        result = run(of, instance)
        assert not result.success
        assert own_results(result) == [("bronze/orders", "fails", False)]
        assert len(instance.fetch_materializations(ORDERS, limit=5).records) == 1
        tick = of.resolve_sensor_def("orders_files")(build_sensor_context(instance=instance))
        assert isinstance(tick, SensorResult)
        assert not tick.run_requests, "the rows are loaded: no run loads them again"


def test_late_files_are_followed_by_the_checks_of_the_table_too(tmp_path: Path) -> None:
    of = with_checks(project(tmp_path, more="late_files: ingest\n"), has_rows)
    put(tmp_path, "b.ndjson")
    with DagsterInstance.ephemeral() as instance:
        assert run(of, instance).success
        put(tmp_path, "a.ndjson")
        request = requested(of, instance, "orders_late")
        result = run(of, instance, "late_orders", request)
        assert result.success
        (late, own) = result.get_asset_check_evaluations()
        assert (late.check_name, late.passed) == ("late_files", True)
        assert (own.check_name, own.metadata["rows"].value) == ("has_rows", 4)
        assert len(instance.fetch_materializations(ORDERS, limit=5).records) == 2
        assert own.target_materialization_data == late.target_materialization_data is not None
        assert not of.resolve_job_def("late_orders").asset_layer.executable_asset_keys, (
            "its page shows the other job"
        )


def replay(of: Definitions, instance: DagsterInstance, **form: Any) -> ExecuteInProcessResult:
    """Run the job of replays over all files of ``orders``, by their arrival."""
    config = {"dataflow": "orders", "start": "2020-01-01", "end": "2100-01-01", "by": "arrival"} | form
    run_config = QUIET | {"ops": {"strandline_replay_step": {"config": config}}}
    with jvmless():
        return of.resolve_job_def("strandline_replay").execute_in_process(
            instance=instance, run_config=run_config, raise_on_error=False
        )


def test_a_replay_in_dagster_is_followed_by_the_checks_of_the_table_that_it_changed(tmp_path: Path) -> None:
    @asset_check(asset=RETURNS)
    def of_another_table() -> AssetCheckResult:
        return AssetCheckResult(passed=False)

    of = with_checks(project(tmp_path), has_rows, of_both, of_the_watermark, of_another_table)
    put(tmp_path)
    with DagsterInstance.ephemeral() as instance:
        for job in ("load_orders", "load_returns"):
            run(of, instance, job)
        (tmp_path / "landing/a.ndjson").write_text('{"id": 1}\n{"id": 2}\n{"id": 3}\n')
        assert own_results(replay(of, instance, into="aside/orders")) == [], "the table has not changed"
        result = replay(of, instance, replace=True)
        assert result.success
        assert own_results(result) == [
            ("bronze/orders", "has_rows", True),
            ("bronze/orders", "of_both", True),
            ("watermark/orders", "of_the_watermark", True),
        ]
        (rows,) = [item for item in result.get_asset_check_evaluations() if item.check_name == "has_rows"]
        assert rows.metadata["rows"].value == 3
        assert own_results(replay(of, instance, replace=True, start="2090-01-01")) == [], "it found no files"
        assert not of.resolve_job_def("strandline_replay").asset_layer.executable_asset_keys, (
            "the page of the table shows the job that loads it"
        )


def test_a_step_of_checks_of_two_tables_that_cannot_be_parted_leaves_the_jobs_as_they_are(
    tmp_path: Path,
) -> None:
    @multi_asset_check(
        specs=[AssetCheckSpec("together", asset=ORDERS), AssetCheckSpec("together", asset=RETURNS)]
    )
    def together() -> Iterator[AssetCheckResult]:
        yield from (
            AssetCheckResult(passed=True, asset_key=key, check_name="together") for key in (ORDERS, RETURNS)
        )

    of = with_checks(project(tmp_path, more="late_files: ingest\n"), together, has_rows)
    put(tmp_path)
    with DagsterInstance.ephemeral() as instance:
        assert own_results(run(of, instance)) == [("bronze/orders", "has_rows", True)]
        assert own_results(run(of, instance, "late_orders"))[-1] == ("bronze/orders", "late_files", True)
        assert own_results(replay(of, instance, replace=True)) == [("bronze/orders", "has_rows", True)]
        everything = of.resolve_implicit_global_asset_job_def()
        assert {key.name for key in everything.asset_layer.asset_graph.asset_check_keys} >= {"together"}


def test_a_check_may_have_other_inputs_and_resources(tmp_path: Path) -> None:
    @asset
    def limits() -> int:
        return 2

    @asset_check(
        asset=ORDERS,
        additional_ins={"limit": AssetIn("limits"), "returned": AssetIn(RETURNS)},
        required_resource_keys={"of_the_user"},
    )
    def below(context: AssetCheckExecutionContext, orders: pa.Table, limit: int, returned: pa.Table) -> Any:
        assert context.resources.of_the_user == "here"
        return AssetCheckResult(passed=orders.num_rows <= limit and returned.num_rows == 2)

    # Dagster's default one may forget a value when its run ends.
    kept = FilesystemIOManager(base_dir=str(tmp_path / "values"))
    resources = {"of_the_user": "here", "io_manager": kept}
    of = with_checks(project(tmp_path), below, assets=[limits], resources=resources)
    put(tmp_path)
    with DagsterInstance.ephemeral() as instance:
        assert of.resolve_implicit_global_asset_job_def().execute_in_process(
            instance=instance, asset_selection=[AssetKey("limits")], run_config=QUIET
        )
        assert run(of, instance, "load_returns").success
        result = run(of, instance)
        assert result.success, [
            event.step_failure_data.error_display_string
            for event in result.all_events
            if event.is_step_failure
        ]
        assert own_results(result) == [("bronze/orders", "below", True)]


def test_checks_of_several_projects_with_prefixes_run_with_their_own_loads(tmp_path: Path) -> None:
    @asset_check(asset=AssetKey(["north", "bronze", "orders"]))
    def of_the_north(orders: pa.Table) -> AssetCheckResult:
        return AssetCheckResult(passed=orders.num_rows == 2)

    both = [
        project(tmp_path / name, name=name, key_prefix=name, decisions=False) for name in ("north", "south")
    ]
    of = with_checks(Definitions.merge(*both), of_the_north)
    put(tmp_path / "north")
    put(tmp_path / "south")
    with DagsterInstance.ephemeral() as instance:
        request = requested(of, instance, "north__orders_files")
        assert own_results(run(of, instance, "load_north__orders", request)) == [
            ("north/bronze/orders", "of_the_north", True)
        ]
        assert own_results(run(of, instance, "load_south__orders")) == []


def test_automation_does_not_request_again_what_ran_with_the_load(tmp_path: Path) -> None:
    @asset_check(asset=ORDERS, automation_condition=AutomationCondition.eager())
    def eager() -> AssetCheckResult:
        return AssetCheckResult(passed=True)

    of = with_checks(project(tmp_path), eager)
    with DagsterInstance.ephemeral() as instance:
        evaluated = evaluate_automation_conditions(of, instance)
        put(tmp_path)
        assert own_results(run(of, instance)) == [("bronze/orders", "eager", True)]
        evaluated = evaluate_automation_conditions(of, instance, cursor=evaluated.cursor)
        assert evaluated.total_requested == 0
        instance.report_runless_asset_event(_loaded_outside())
        evaluated = evaluate_automation_conditions(of, instance, cursor=evaluated.cursor)
        assert evaluated.total_requested == 1, "a load outside of Dagster is automation's"


def _loaded_outside() -> Any:
    from dagster import AssetMaterialization

    return AssetMaterialization(ORDERS)


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    chain = Chain(tmp_path / "project", day_units=("EWR",), now=at(49))
    chain.root.mkdir()
    for hour in range(48):
        chain.arrive("EWR", hour, 1)
    with jvmless():
        yield chain


def test_windows_have_their_checks_in_runs_over_partitions_and_in_runs_without(
    chain: Chain, tmp_path: Path
) -> None:
    @asset_check(
        asset=AssetKey(["gold", "days"]), additional_ins={"read": AssetIn(AssetKey(["bronze", "hours"]))}
    )
    def counts(days: pa.Table, read: pa.Table) -> AssetCheckResult:
        return AssetCheckResult(passed=read.num_rows == 48, metadata={"rows": days.num_rows})

    def definitions() -> Definitions:
        loaded = load_project(chain.root, environment={})
        return with_checks(build_definitions(loaded, chain.platform(), RunOptions(now=chain.now)), counts)

    def rows(result: ExecuteInProcessResult) -> Sequence[Any]:
        assert result.success
        return [
            item.metadata["rows"].value
            for item in result.get_asset_check_evaluations()
            if item.check_name == "counts"
        ]

    chain.run("hours")
    (tmp_path / "home").mkdir()
    with DagsterInstance.local_temp(str(tmp_path / "home")) as instance:
        of = definitions()
        request = requested(of, instance, "days_windows")
        assert rows(run(of, instance, "load_days", request)) == [2]
        assert rows(run(of, instance, "load_days")) == [2]
