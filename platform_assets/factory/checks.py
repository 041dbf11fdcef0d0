"""Checks that look at the whole table, run when somebody asks for them."""

from __future__ import annotations

from dagster import AssetCheckResult, AssetChecksDefinition, AssetCheckSeverity, asset_check

from partitions.dataflow import Dataflow
from platform_assets.factory.assets import table_key
from resources.platform import Platform

ROW_ACCOUNTING = "row_accounting"


def row_accounting(dataflow: Dataflow, platform: Platform) -> AssetChecksDefinition:
    """The table's rows, as its file statistics count them, are the rows of all entries. No data is scanned."""

    @asset_check(
        asset=table_key(dataflow),
        name=ROW_ACCOUNTING,
        description="Rows in the table (from its file statistics) against rows in the watermark log. Rows that somebody deletes or adds show here.",
    )
    def accounting() -> AssetCheckResult:
        entry = platform.log.newest(dataflow.name)
        in_table, in_log = platform.target(dataflow).count_rows(), entry.total_rows if entry else 0
        return AssetCheckResult(
            passed=in_table == in_log,
            severity=AssetCheckSeverity.WARN,
            metadata={"rows_in_table": in_table, "rows_in_log": in_log},
        )

    return accounting
