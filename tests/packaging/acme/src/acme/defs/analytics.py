"""dbt's models over the tables of the north: dbt-duckdb reads the Delta tables in place."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dagster import (
    AssetExecutionContext,
    AutomationCondition,
    DailyPartitionsDefinition,
    Definitions,
    definitions,
)
from dagster_dbt import DagsterDbtTranslator, DbtCliResource, dbt_assets

PROJECT = Path(__file__).parents[3] / "analytics"
MANIFEST = PROJECT / "target/manifest.json"
DAYS = DailyPartitionsDefinition("2026-01-04", end_date="2026-01-11")


class Eager(DagsterDbtTranslator):
    """Models are built when a table above them has changed."""

    def get_automation_condition(
        self, dbt_resource_props: Mapping[str, Any]
    ) -> AutomationCondition[Any] | None:
        return AutomationCondition.eager().without(AutomationCondition.in_latest_time_window())


@dbt_assets(manifest=MANIFEST, exclude="daily_orders", dagster_dbt_translator=Eager(), pool="warehouse")
def models(context: AssetExecutionContext, dbt: DbtCliResource) -> Iterator[Any]:
    yield from dbt.cli(["build"], context=context).stream()


@dbt_assets(
    manifest=MANIFEST,
    select="daily_orders",
    partitions_def=DAYS,
    dagster_dbt_translator=Eager(),
    pool="warehouse",
)
def days(context: AssetExecutionContext, dbt: DbtCliResource) -> Iterator[Any]:
    window = context.partition_time_window
    bounds = json.dumps({"start": window.start.isoformat(), "end": window.end.isoformat()})
    yield from dbt.cli(["build", "--vars", bounds], context=context).stream()


@definitions
def defs() -> Definitions:
    return Definitions(
        assets=[models, days],
        resources={"dbt": DbtCliResource(project_dir=str(PROJECT), profiles_dir=str(PROJECT))},
    )
