"""Runs assets of a user's own that return DataFrames of a Spark in their own process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dagster import DailyPartitionsDefinition, asset

from platform_assets.project_resources import SparkResource
from tests.support.environment import clean_environment
from tests.support.forks import forked
from tests.support.own_assets import OwnProject, below

DAYS = DailyPartitionsDefinition("2026-01-01", end_date="2026-01-10")


def run_assets(project: OwnProject) -> None:
    """Store ``silver/days`` and ``silver/all`` twice each, and read them as frames of Spark."""
    ended = forked(__name__, [str(project.folder)], clean_environment())
    assert ended.code == 0, ended.output


def main(folder: str) -> None:
    """Run the assets."""
    project = OwnProject.at(Path(folder))

    @asset(
        key=["silver", "days"],
        io_manager_key="strandline_table",
        partitions_def=DAYS,
        metadata={"strandline/window_column": "day"},
    )
    def days(context, strandline_spark: SparkResource) -> Any:  # type: ignore[no-untyped-def]  # noqa: ANN001 - Dagster's context
        return strandline_spark.session().sql(
            f"SELECT date'{context.partition_key}' AS day, id FROM range(2)"
        )

    @asset(key=["silver", "all"], io_manager_key="strandline_table")
    def whole(strandline_spark: SparkResource) -> Any:
        return strandline_spark.session().range(2)

    reader, seen = below("silver/all", Any)
    for day in ("2026-01-01", "2026-01-02", "2026-01-02"):
        project.run(days, partition=day)
    for _ in range(2):
        project.run(whole, reader)
    assert [sorted(row.id for row in frame.collect()) for frame in seen] == [[0, 1], [0, 1]]
    assert [type(frame).__module__ for frame in seen] == ["pyspark.sql.classic.dataframe"] * 2
