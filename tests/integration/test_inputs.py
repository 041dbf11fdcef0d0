"""A dataflow's table as the input of a user's own asset, wherever the table is."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from dagster import (
    AssetIn,
    DagsterInstance,
    DailyPartitionsDefinition,
    Definitions,
    MaterializeResult,
    asset,
)
from deltalake import write_deltalake
from pyspark.sql import DataFrame

from platform_assets.build import build_definitions
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME
from tests.support.projects import project_of

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


def test_steps_after_a_load_read_the_version_that_it_committed(make_feed: MakeFeed) -> None:
    feed = make_feed()
    feed.put("a.ndjson", 1, 2)
    seen: list[list[int]] = []

    @asset(deps=[["bronze", NAME]])
    def another_load() -> None:
        row = {"id": 99, "_source_file": "b.ndjson", "_ingested_at": datetime.now(UTC), "_run_id": "another"}
        write_deltalake(str(feed.table), pa.Table.from_pylist([row]), mode="append", schema_mode="merge")

    @asset(ins={"rows": AssetIn(["bronze", NAME])}, deps=[another_load])
    def in_spark(rows: DataFrame) -> None:
        seen.append(sorted(row["id"] for row in rows.collect()))

    @asset(ins={"rows": AssetIn(["bronze", NAME])}, deps=[another_load])
    def in_pandas(rows: pd.DataFrame) -> None:
        seen.append(sorted(rows["id"]))

    project = load_project(feed.folder)
    platform = Platform(
        project.state, project.lake, feed.engine, project.source_place, lineage=project.lineage
    )
    assets = [another_load, in_spark, in_pandas]
    merged = Definitions.merge(build_definitions(project, platform), Definitions(assets=assets))
    with DagsterInstance.ephemeral() as instance:
        job = merged.resolve_implicit_global_asset_job_def()
        assert job.execute_in_process(instance=instance, run_config=QUIET).success
    assert seen == [[1, 2], [1, 2]]
    assert sorted(feed.ids) == [1, 2, 99]


HOURS = """\
source: {type: table, table: raw/events, window_column: at}
watermark: {type: window, definition: [{name: hour, type: datetime, range: {from: '2026-01-01', to: '-'}}], window: hourly}
target: {load: merge_overwrite, replace_by_watermark: true}
"""


def test_a_partition_without_an_annotation_gets_its_rows_alone_in_spark(
    tmp_path: Path, spark_engine: SparkEngine
) -> None:
    project = load_project(project_of(tmp_path, events=HOURS))
    rows = [{"id": day, "at": datetime(2026, 1, day, day, tzinfo=UTC)} for day in (1, 2, 3)]
    write_deltalake(str(tmp_path / "lake" / "bronze" / "events"), pa.Table.from_pylist(rows))
    days = DailyPartitionsDefinition("2026-01-01", end_date="2026-01-04")
    seen: list[list[int]] = []

    @asset(ins={"rows": AssetIn(["bronze", "events"])}, partitions_def=days)
    def report(rows) -> MaterializeResult[None]:  # type: ignore[no-untyped-def]  # noqa: ANN001 - no annotation
        seen.append([row["id"] for row in rows.collect()])
        return MaterializeResult()

    built = build_definitions(project, replace(build_platform(project), spark=spark_engine))
    job = Definitions.merge(built, Definitions(assets=[report])).resolve_implicit_global_asset_job_def()
    with DagsterInstance.ephemeral() as instance:
        for day in ("2026-01-02", "2026-01-03"):
            job.execute_in_process(
                instance=instance, asset_selection=[report.key], partition_key=day, run_config=QUIET
            )
    assert seen == [[2], [3]]
