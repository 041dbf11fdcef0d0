"""Checks that look at the whole table, run when somebody asks for them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    asset_check,
)

from partitions.dataflow import Dataflow
from partitions.window.ledger import GROWS
from platform_assets.factory.assets import table_key
from platform_assets.ledger_views import ledger_metadata
from resources.loop.loop import clock
from resources.platform import Platform
from resources.sweep import Sweep, unhandled
from resources.watermarks.quarantine import read_quarantine

ROW_ACCOUNTING = "row_accounting"
LATE_FILES = "late_files"
LEDGER = "ledger"
QUARANTINED_FILES = "quarantined_files"

_SHOWN = 50

_POLICIES = {
    "ingest": "the next run loads them",
    "quarantine": "the next step sets them aside until they are released",
    "alert": "they wait for somebody; late_files: ingest loads them, quarantine sets them aside",
    "ignore": "they are left alone",
}
"""What becomes of late files."""


def row_accounting(dataflow: Dataflow, platform: Platform) -> AssetChecksDefinition:
    """The table's rows, as its file statistics count them, are the rows of all entries. No data is scanned."""

    @asset_check(
        asset=table_key(dataflow),
        name=ROW_ACCOUNTING,
        description="Rows in the table (from its file statistics) against rows in the watermark log. Rows that somebody deletes or adds show here.",
    )
    def accounting() -> AssetCheckResult:
        entry = platform.log.newest(dataflow.name)
        in_table, in_log = platform.table(dataflow).count_rows(), entry.total_rows if entry else 0
        return AssetCheckResult(
            passed=in_table == in_log,
            severity=AssetCheckSeverity.WARN,
            metadata={"rows_in_table": in_table, "rows_in_log": in_log},
        )

    return accounting


def quarantined_files(dataflow: Dataflow, platform: Platform) -> AssetChecksDefinition:
    """No file is in quarantine; those that are stand here with their reasons."""

    @asset_check(
        asset=table_key(dataflow),
        name=QUARANTINED_FILES,
        description="Files that were passed over and that nobody has released.",
    )
    def quarantined() -> AssetCheckResult:
        held = read_quarantine(platform.log, platform.log.newest(dataflow.name)).held
        files = "; ".join(f"{one.file.path}: {one.reason}" for one in held[:_SHOWN])
        return AssetCheckResult(
            passed=not held,
            severity=AssetCheckSeverity.WARN,
            metadata={"quarantined_files": len(held), "files": files or "none"},
        )

    return quarantined


def ledger_check(dataflow: Dataflow, platform: Platform) -> AssetChecksDefinition:
    """Every window that is over is loaded, of every unit; what is missing stands here with the reasons."""

    @asset_check(
        asset=table_key(dataflow),
        name=LEDGER,
        description="Windows that are over and not loaded, of all units, and windows that were loaded by two grids.",
    )
    def complete() -> AssetCheckResult:
        found = platform.ledger(dataflow, clock())
        missing = [gap for one in found.units for gap in one.gaps if gap.why != GROWS]
        return AssetCheckResult(
            passed=not missing, severity=AssetCheckSeverity.WARN, metadata=ledger_metadata(found)
        )

    return complete


def late_files(dataflow: Dataflow, platform: Platform) -> AssetChecksDefinition:
    """No late file waits for anybody, as far as the sweep has looked; it says how far that is."""

    @asset_check(
        asset=table_key(dataflow),
        name=LATE_FILES,
        description="Files at or below the watermark that were never ingested and that nobody has dealt with.",
    )
    def late() -> AssetCheckResult:
        passed, metadata = late_findings(dataflow, platform, clock())
        return AssetCheckResult(passed=passed, severity=AssetCheckSeverity.WARN, metadata=metadata)

    return late


def late_evaluation(dataflow: Dataflow, platform: Platform, now: datetime) -> AssetCheckEvaluation:
    """The same, as the sensor reports it."""
    passed, metadata = late_findings(dataflow, platform, now)
    return AssetCheckEvaluation(
        asset_key=table_key(dataflow),
        check_name=LATE_FILES,
        passed=passed,
        severity=AssetCheckSeverity.WARN,
        metadata=metadata,
    )


def late_findings(dataflow: Dataflow, platform: Platform, now: datetime) -> tuple[bool, dict[str, Any]]:
    """Whether no late file waits for anybody, and what there is to show."""
    entry = platform.log.newest(dataflow.name)
    found = unhandled(platform.log, dataflow, entry, now)
    metadata: dict[str, Any] = {
        "late_files": found.count,
        "policy": f"{dataflow.late_files}: {_POLICIES[dataflow.late_files]}",
        "paths": ", ".join(found.first(_SHOWN)) or "none",
        **completeness(Sweep.read(platform.log, dataflow.name, entry.era if entry else 0)),
    }
    return not found.count or dataflow.late_files == "ignore", metadata


def completeness(sweep: Sweep) -> dict[str, Any]:
    """How far the sweep has verified that nothing is missing."""
    if sweep.verified_at is None:
        return {"completeness": "no round of the sweep is over yet"}
    return {"completeness": f"all paths up to {sweep.verified_path} verified at {sweep.verified_at}"}
