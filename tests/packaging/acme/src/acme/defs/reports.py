"""The company's own assets: they read Strandline's tables by annotation, a partition at a time."""

import json
import os
from pathlib import Path

import pandas as pd
import polars as pl
from dagster import (
    AssetExecutionContext,
    AssetIn,
    AssetKey,
    AutomationCondition,
    AutomationConditionSensorDefinition,
    BackfillPolicy,
    DailyPartitionsDefinition,
    DefaultSensorStatus,
    Definitions,
    TimeWindowPartitionMapping,
    WeeklyPartitionsDefinition,
    asset,
    definitions,
)
from strandline import WatermarkResource

REPORTS = Path(os.environ["ACME_REPORTS"])
DAYS = DailyPartitionsDefinition("2026-01-04", end_date="2026-01-11")
WEEKS = WeeklyPartitionsDefinition("2026-01-04", end_date="2026-01-11")


def write(name: str, value: object) -> None:
    REPORTS.mkdir(parents=True, exist_ok=True)
    draft = REPORTS / f"{name}.draft"
    draft.write_text(json.dumps(value))
    draft.rename(REPORTS / f"{name}.json")


@asset(
    ins={"orders": AssetIn(AssetKey(["north", "bronze", "orders"]))},
    partitions_def=DAYS,
    backfill_policy=BackfillPolicy.single_run(),
    automation_condition=AutomationCondition.eager().without(AutomationCondition.in_latest_time_window()),
)
def north_days(context: AssetExecutionContext, orders: pd.DataFrame) -> None:
    rows = sorted(orders[["id", "amount"]].itertuples(index=False, name=None))
    write(f"north_{context.partition_keys[0]}", {"days": context.partition_keys, "rows": rows})


@asset(
    ins={
        "orders": AssetIn(
            AssetKey(["south", "bronze", "orders"]), partition_mapping=TimeWindowPartitionMapping()
        )
    },
    partitions_def=WEEKS,
    automation_condition=AutomationCondition.eager(),
)
def south_weeks(
    context: AssetExecutionContext, orders: pl.LazyFrame, strandline_south_watermarks: WatermarkResource
) -> None:
    total = orders.select(pl.col("amount").sum()).collect().item()
    strandline_south_watermarks.save_watermark("south_weeks", {"week": context.partition_key})
    write(f"south_{context.partition_key}", {"amount": total})


@definitions
def defs() -> Definitions:
    automation = AutomationConditionSensorDefinition(
        "automation", target="*", default_status=DefaultSensorStatus.RUNNING, minimum_interval_seconds=5
    )
    return Definitions(assets=[north_days, south_weeks], sensors=[automation])
