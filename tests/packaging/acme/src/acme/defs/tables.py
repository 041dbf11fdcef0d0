"""The company's own tables beside Strandline's, stored by its IO manager, and a check of its own."""

from decimal import Decimal
from typing import Any

import pandas as pd
import polars as pl
from dagster import (
    AssetCheckResult,
    AssetIn,
    AssetKey,
    AutomationCondition,
    BackfillPolicy,
    DailyPartitionsDefinition,
    asset,
    asset_check,
)
from strandline import SparkResource

DAYS = DailyPartitionsDefinition("2026-01-04", end_date="2026-01-06")


@asset(
    key=["north", "gold", "refunds_per_day"],
    ins={"refunds": AssetIn(AssetKey(["north", "bronze", "refunds"]))},
    partitions_def=DAYS,
    backfill_policy=BackfillPolicy.single_run(),
    automation_condition=AutomationCondition.eager().without(AutomationCondition.in_latest_time_window()),
    io_manager_key="strandline_north_table",
    metadata={
        "strandline/window_column": "day",
        "strandline/schema": "amount decimal(12,2)",
    },
)
def refunds_per_day(refunds: pl.DataFrame) -> pd.DataFrame:
    """The sum of each day, in Python's decimals."""
    sums: dict[Any, Decimal] = {}
    for day, amount in refunds.select("day", "amount").iter_rows():
        sums[day] = sums.get(day, Decimal(0)) + amount
    return pd.DataFrame({"day": list(sums), "amount": list(sums.values())})


@asset(
    key=["south", "gold", "total"],
    ins={"orders": AssetIn(AssetKey(["south", "bronze", "orders"]))},
    automation_condition=AutomationCondition.eager(),
    io_manager_key="strandline_south_table",
)
def total(orders: pl.DataFrame, strandline_south_spark: SparkResource) -> Any:
    """The sum of all orders, as a frame of Spark."""
    return strandline_south_spark.session().createDataFrame([(orders["amount"].sum(),)], "amount long")


@asset_check(asset=AssetKey(["north", "bronze", "orders"]))
def amounts_are_positive(orders: pd.DataFrame) -> AssetCheckResult:
    """A check that runs with each load."""
    return AssetCheckResult(passed=bool((orders["amount"] > 0).all()), metadata={"rows": len(orders)})
