"""A dataflow's table as the input of a user's own asset, wherever the table is."""

from __future__ import annotations

from typing import Any

import pytest
from dagster import AssetIn, DagsterInstance, Definitions, MaterializeResult, asset

from platform_assets.build import build_definitions
from platform_assets.project import load_project
from resources.platform.platform import Platform
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@pytest.mark.parametrize("table", [None, "silver/elsewhere"])
def test_the_input_is_the_table_under_any_name(make_feed: MakeFeed, table: str | None) -> None:
    feed = make_feed(target={"table": table})
    feed.put("a.ndjson", 1, 2)
    feed.load()
    seen: dict[str, Any] = {}

    @asset(ins={"rows": AssetIn(["bronze", NAME]), "mark": AssetIn(["watermark", NAME])})
    def report(rows, mark) -> MaterializeResult[None]:  # type: ignore[no-untyped-def]  # noqa: ANN001 - Dagster reads annotations as types
        seen.update(ids=sorted(row["id"] for row in rows.collect()), mark=mark)
        return MaterializeResult()

    project = load_project(feed.folder)
    platform = Platform(
        project.state, project.lake, feed.engine, project.source_place, lineage=project.lineage
    )
    merged = Definitions.merge(build_definitions(project, platform), Definitions(assets=[report]))
    job = merged.resolve_implicit_global_asset_job_def()
    with DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance, asset_selection=[report.key], run_config=QUIET)
    assert result.success
    assert seen == {"ids": [1, 2], "mark": {"path": "a.ndjson"}}
