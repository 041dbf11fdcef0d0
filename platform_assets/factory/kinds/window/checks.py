"""The check of windows: the ledger has no gap."""

from __future__ import annotations

from dagster import AssetCheckResult, AssetChecksDefinition, AssetCheckSeverity, asset_check

from partitions.dataflow import Dataflow
from platform_assets.factory.dagster_names import table_key
from platform_assets.factory.kinds.window.pictures import ledger_metadata
from resources.kinds.window.unit_ledger import unit_ledger
from resources.loop.loop import clock
from resources.platform.platform import Platform

LEDGER = "ledger"


def ledger_check(dataflow: Dataflow, platform: Platform) -> AssetChecksDefinition:
    """Return the check that every window that is over is loaded, for every unit; it shows the gaps with their reasons."""

    @asset_check(
        asset=table_key(dataflow),
        name=LEDGER,
        description="Windows that are over and not loaded, of all units, and windows that were loaded by two grids.",
    )
    def complete() -> AssetCheckResult:
        ledger = unit_ledger(platform, dataflow, clock())
        return AssetCheckResult(
            passed=not ledger.missing, severity=AssetCheckSeverity.WARN, metadata=ledger_metadata(ledger)
        )

    return complete
