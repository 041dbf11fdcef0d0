"""What Dagster runs and shows of a dataflow: two outputs of one step, checks, inputs of downstream assets, failures."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from dagster import (
    AssetIn,
    AssetKey,
    AssetMaterialization,
    DagsterInstance,
    ExecuteInProcessResult,
    Output,
    asset,
    build_output_context,
    materialize,
)

from platform_assets.build import build_definitions
from platform_assets.metadata import watermark_metadata
from platform_assets.project import load_project
from resources.io_managers import Load, RunOptions, WatermarkIOManager
from resources.platform import Platform
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, NOW, Feed

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def platform_of(feed: Feed) -> Platform:
    project = load_project(feed.folder)
    return Platform(project.state, project.lake, feed.engine, project.source_place)


def run(feed: Feed) -> ExecuteInProcessResult:
    """Run the dataflow's job as the command line and the sensor do."""
    project = load_project(feed.folder)
    definitions = build_definitions(project, platform_of(feed), RunOptions(now=NOW, hold_wait=timedelta(0)))
    with DagsterInstance.ephemeral() as instance:
        return definitions.resolve_job_def(f"load_{NAME}").execute_in_process(
            instance=instance, raise_on_error=False, run_config=QUIET
        )


def materialised(result: ExecuteInProcessResult) -> dict[str, AssetMaterialization]:
    return {
        "/".join(event.asset_key.path): event.step_materialization_data.materialization
        for event in result.all_events
        if event.is_step_materialization and event.asset_key
    }


def values(found: AssetMaterialization) -> Mapping[str, Any]:
    return {key: value.value for key, value in found.metadata.items()}


def test_table_and_watermark_are_materialised_by_one_step_with_what_the_run_measured(feed: Feed) -> None:
    feed.put("1.ndjson", 1, 2)
    result = run(feed)
    assert result.success
    found = materialised(result)
    assert list(found) == [f"bronze/{NAME}", f"watermark/{NAME}"]
    table = values(found[f"bronze/{NAME}"])
    assert {
        key: table[key] for key in ("status", "rows", "files", "slices", "state_number", "table_version")
    } == {
        "status": "committed",
        "rows": 2,
        "files": 1,
        "slices": 1,
        "state_number": 1,
        "table_version": 0,
    }
    assert (table["watermark_before"], table["watermark_after"]) == ({}, {"path": "1.ndjson"})
    assert values(found[f"watermark/{NAME}"])["watermark"] == {"path": "1.ndjson"}


def test_the_checks_of_the_step_pass_on_a_sound_load(feed: Feed) -> None:
    feed.put("1706450400-a.ndjson", 1)
    checks = {each.check_name: each.passed for each in run(feed).get_asset_check_evaluations()}
    assert checks == {"watermark_monotone": True, "rows_accounted": True, "names_sort_by_time": True}


def test_names_that_do_not_sort_by_time_fail_their_check(feed: Feed) -> None:
    feed.put("event-x.ndjson", 1)
    checks = {each.check_name: each.passed for each in run(feed).get_asset_check_evaluations()}
    assert checks["names_sort_by_time"] is False


def test_a_downstream_asset_gets_the_watermark_as_a_dict_and_the_table_as_a_data_frame(feed: Feed) -> None:
    feed.put("1.ndjson", 1, 2)
    seen: dict[str, Any] = {}

    @asset(
        ins={"mark": AssetIn(AssetKey(["watermark", NAME])), "table": AssetIn(AssetKey(["bronze", NAME]))},
        io_manager_key="nothing",
    )
    def report(mark, table) -> Output[None]:  # type: ignore[no-untyped-def]  # noqa: ANN001 - Dagster reads annotations as types
        seen.update(mark=mark, ids=sorted(row["id"] for row in table.collect()))
        return Output(None)

    definitions = build_definitions(
        load_project(feed.folder), platform_of(feed), RunOptions(now=NOW, hold_wait=timedelta(0))
    )
    from dagster import mem_io_manager

    with DagsterInstance.ephemeral() as instance:
        result = materialize(
            [*(definitions.assets or ()), report],  # type: ignore[list-item]
            instance=instance,
            resources={**(definitions.resources or {}), "nothing": mem_io_manager},
            run_config=QUIET,
        )
    assert result.success
    assert seen == {"mark": {"path": "1.ndjson"}, "ids": [1, 2]}


def test_what_was_committed_before_a_failure_is_materialised_and_the_run_fails_with_the_command_line_s_text(
    feed: Feed,
) -> None:
    feed.put("1.ndjson", 1)
    (feed.landing / "2.ndjson").write_text('{"id": "no number"}\n')
    result = run(feed)
    assert not result.success
    found = materialised(result)
    assert list(found) == [f"bronze/{NAME}"]
    assert (values(found[f"bronze/{NAME}"])["rows"], values(found[f"bronze/{NAME}"])["status"]) == (
        1,
        "failed",
    )
    failure = next(event for event in result.all_events if event.is_step_failure).step_failure_data
    assert failure.user_failure_data is not None
    assert str(failure.user_failure_data.description).startswith(
        "file 2.ndjson, line 1: expected a record of the pinned schema"
    )


def test_a_project_file_with_errors_leaves_the_others_loaded_and_fails_when_it_is_materialised(
    make_feed: MakeFeed,
) -> None:
    feed = make_feed()
    (feed.folder / "dataflows/broken.yaml").write_text(
        "layer: silver\nsource: {type: files, pth: x, format: ndjson}\nwatermark: {type: path}\n"
    )
    feed.put("1.ndjson", 1)
    assert run(feed).success
    definitions = build_definitions(load_project(feed.folder), platform_of(feed))
    (broken,) = [each for each in definitions.assets or () if AssetKey(["silver", "broken"]) in each.keys]  # type: ignore[union-attr]
    with DagsterInstance.ephemeral() as instance:
        result = materialize([broken], instance=instance, raise_on_error=False, run_config=QUIET)  # type: ignore[list-item]
    failure = next(event for event in result.all_events if event.is_step_failure).step_failure_data
    assert "dataflows/broken.yaml:2" in str(
        failure.user_failure_data and failure.user_failure_data.description
    )


def test_the_watermark_before_the_table_is_refused(feed: Feed) -> None:
    manager = WatermarkIOManager(platform_of(feed), watermark_metadata)
    with pytest.raises(Exception, match="expected the table first"):
        manager.handle_output(build_output_context(), Load(load_project(feed.folder).dataflows[NAME]))
