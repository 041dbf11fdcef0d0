"""The checks of files: names that sort by time, files in quarantine, late files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckResult,
    AssetChecksDefinition,
    AssetCheckSeverity,
    AssetCheckSpec,
    asset_check,
)

from partitions.dataflow import LATE_POLICIES, Dataflow
from partitions.path.layout import naming_report
from partitions.path.slices import PathSlice
from platform_assets.factory.asset_checks import RunCheck, warning_evaluation
from platform_assets.factory.dagster_names import table_key
from platform_assets.kinds.path.words import verified_in_words
from resources.kinds.path.sweep import Sweep, unhandled
from resources.loop.loop import clock
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.watermarks.quarantine_list import read_quarantine

LATE_FILES = "late_files"
QUARANTINED_FILES = "quarantined_files"

_SHOWN = 50


def naming_check(dataflow: Dataflow) -> RunCheck:
    """Return the check that the names of a run's files sort by time."""
    spec = AssetCheckSpec(
        "names_sort_by_time",
        asset=table_key(dataflow),
        description="In a sample of the new files, names sort by time.",
    )
    return RunCheck((spec,), _check_naming)


def _check_naming(dataflow: Dataflow, _: Platform, outcome: Outcome) -> Sequence[AssetCheckResult]:
    slices = outcome.plan.slices if outcome.plan else ()
    files = [file for slice_ in slices if isinstance(slice_, PathSlice) for file in slice_.files]
    report = naming_report(dataflow.path, files)
    result = AssetCheckResult(
        passed=report.sorts,
        check_name="names_sort_by_time",
        asset_key=table_key(dataflow),
        severity=AssetCheckSeverity.WARN,
        metadata={"sample": report.sample_size, "findings": "\n".join(report.findings) or "none"},
    )
    return (result,)


def quarantined_files_check(dataflow: Dataflow, platform: Platform) -> AssetChecksDefinition:
    """Return the check that no file is in quarantine; it lists those files with their reasons."""

    @asset_check(
        asset=table_key(dataflow),
        name=QUARANTINED_FILES,
        description="Files in quarantine that are not released.",
    )
    def quarantined() -> AssetCheckResult:
        quarantined = read_quarantine(platform.log, platform.log.newest(dataflow.name)).waiting
        files = "; ".join(f"{file.file.path}: {file.reason}" for file in quarantined[:_SHOWN])
        return AssetCheckResult(
            passed=not quarantined,
            severity=AssetCheckSeverity.WARN,
            metadata={"quarantined_files": len(quarantined), "files": files or "none"},
        )

    return quarantined


def late_files_check(dataflow: Dataflow, platform: Platform) -> AssetChecksDefinition:
    """Return the check that no late file waits, as far as the sweep has got; it shows how far."""

    @asset_check(
        asset=table_key(dataflow),
        name=LATE_FILES,
        description="Files at or below the watermark that no run ingested and no entry lists.",
    )
    def late() -> AssetCheckResult:
        passed, metadata = check_late_files(dataflow, platform, clock())
        return AssetCheckResult(passed=passed, severity=AssetCheckSeverity.WARN, metadata=metadata)

    return late


def late_evaluation(dataflow: Dataflow, platform: Platform, now: datetime) -> AssetCheckEvaluation:
    """Return a result of the check of late files for a sensor to report."""
    passed, metadata = check_late_files(dataflow, platform, now)
    return warning_evaluation(dataflow, LATE_FILES, passed=passed, metadata=metadata)


def late_result(evaluation: AssetCheckEvaluation) -> tuple[Any, bool]:
    """Return the parts of a result that make it worth a report: the number of late files, and success."""
    count = evaluation.metadata.get("late_files")
    return count.value if count is not None else None, evaluation.passed


def check_late_files(dataflow: Dataflow, platform: Platform, now: datetime) -> tuple[bool, dict[str, Any]]:
    """Return whether no late file waits, or late files are ignored, with the metadata of the check."""
    entry = platform.log.newest(dataflow.name)
    late = unhandled(platform.log, dataflow, entry, now)
    metadata: dict[str, Any] = {
        "late_files": late.count,
        "policy": f"{dataflow.late_files}: {LATE_POLICIES[dataflow.late_files]}",
        "paths": ", ".join(late.first(_SHOWN)) or "none",
        **completeness_metadata(Sweep.read(platform.log, dataflow.name, entry.era if entry else 0)),
    }
    return not late.count or dataflow.late_files == "ignore", metadata


def completeness_metadata(sweep: Sweep) -> dict[str, Any]:
    """Return how far the sweep has verified that nothing is missing."""
    if sweep.verified_at is None:
        return {"completeness": "the sweep has not finished a round yet"}
    return {"completeness": verified_in_words(sweep.verified_path, sweep.verified_at)}
