"""The checks of files: names that sort by time, files in quarantine, late files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from dagster import AssetCheckEvaluation

from partitions.checks import LATE_FILES, NAMES_SORT_BY_TIME, QUARANTINED_FILES
from partitions.dataflow import LATE_POLICIES, Dataflow
from partitions.path.layout import naming_report
from partitions.path.slices import PathSlice
from platform_assets.factory.check_results import CheckFinding, RunCheck, TableCheck
from platform_assets.kinds.path.words import verified_in_words
from resources.kinds.path.sweep import Sweep, unhandled
from resources.loop.loop import clock
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.watermarks.quarantine_list import read_quarantine

_SHOWN = 50


def _check_naming(dataflow: Dataflow, _: Platform, outcome: Outcome) -> Sequence[CheckFinding]:
    slices = outcome.plan.slices if outcome.plan else ()
    files = [file for slice_ in slices if isinstance(slice_, PathSlice) for file in slice_.files]
    report = naming_report(dataflow.path, files)
    finding = CheckFinding(
        NAMES_SORT_BY_TIME,
        passed=report.sorts,
        metadata={"sample": report.sample_size, "findings": "\n".join(report.findings) or "none"},
    )
    return (finding,)


NAMING_CHECK = RunCheck(
    {NAMES_SORT_BY_TIME: "In a sample of the new files, names sort by time."}, _check_naming
)


def _check_quarantined(dataflow: Dataflow, platform: Platform) -> CheckFinding:
    """Check that no file is in quarantine; list those files with their reasons."""
    quarantined = read_quarantine(platform.log, platform.log.newest(dataflow.name)).waiting
    files = "; ".join(f"{file.file.path}: {file.reason}" for file in quarantined[:_SHOWN])
    return CheckFinding(
        QUARANTINED_FILES,
        passed=not quarantined,
        metadata={"quarantined_files": len(quarantined), "files": files or "none"},
    )


QUARANTINED_FILES_CHECK = TableCheck(
    QUARANTINED_FILES, "Files in quarantine that are not released.", _check_quarantined
)


def late_result(evaluation: AssetCheckEvaluation) -> tuple[Any, bool]:
    """Return the parts of a result that make it worth a report: the number of late files, and success."""
    count = evaluation.metadata.get("late_files")
    return count.value if count is not None else None, evaluation.passed


def check_late_files(dataflow: Dataflow, platform: Platform, now: datetime | None = None) -> CheckFinding:
    """Check that no late file waits as far as the sweep has got, or late files are ignored; show how far.

    ``now`` is the time of the tick; None: the clock's.
    """
    entry = platform.log.newest(dataflow.name)
    late = unhandled(platform.log, dataflow, entry, now or clock())
    metadata: dict[str, Any] = {
        "late_files": late.count,
        "policy": f"{dataflow.late_files}: {LATE_POLICIES[dataflow.late_files]}",
        "paths": ", ".join(late.first(_SHOWN)) or "none",
        **completeness_metadata(Sweep.read(platform.log, dataflow.name, entry.era if entry else 0)),
    }
    passed = not late.count or dataflow.late_files == "ignore"
    return CheckFinding(LATE_FILES, passed=passed, metadata=metadata)


LATE_FILES_CHECK = TableCheck(
    LATE_FILES,
    "Files at or below the watermark that no run ingested and no entry lists.",
    check_late_files,
)


def completeness_metadata(sweep: Sweep) -> dict[str, Any]:
    """Return how far the sweep has verified that nothing is missing."""
    if sweep.verified_at is None:
        return {"completeness": "the sweep has not finished a round yet"}
    return {"completeness": verified_in_words(sweep.verified_path, sweep.verified_at)}
