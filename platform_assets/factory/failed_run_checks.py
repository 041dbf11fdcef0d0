"""The checks of a run that failed: why the table is not up to date, and the others' last results.

Dagster shows a check that a failed run did not evaluate as failed. But nobody has looked, so the last result
still holds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from dagster import (
    AssetCheckEvaluation,
    AssetCheckKey,
    AssetCheckResult,
    AssetCheckSeverity,
    DagsterInstance,
    Failure,
)

from partitions.instants import time_text
from platform_assets.factory.asset_checks import UP_TO_DATE
from platform_assets.run_metadata import error_metadata

_SINCE = "evaluated_at"

_MAX_PLANNED = 25
"""The most planned evaluations of other failed runs that are skipped in search of the last result."""


def results_of_failed_run(
    instance: DagsterInstance,
    checks: Collection[AssetCheckKey],
    failure: Failure,
    why: Mapping[str, Any],
) -> Iterator[AssetCheckResult]:
    """Yield a result for each check of a run that failed before it evaluated them.

    Args:
        instance: the Dagster instance with the earlier results.
        checks: the checks that the run was to evaluate.
        failure: why it failed, with the commands that help as metadata.
        why: the metadata that says what is not loaded and why.
    """
    message = failure.description or "see the run"
    choices = [str(value.value) for name, value in failure.metadata.items() if name.startswith("choice ")]
    for check in checks:
        if check.name == UP_TO_DATE:
            yield AssetCheckResult(
                passed=False,
                asset_key=check.asset_key,
                check_name=check.name,
                severity=AssetCheckSeverity.ERROR,
                description=f"The last run failed: {message}",
                metadata={**error_metadata(message, choices), **why},
            )
        else:
            yield _last_result(instance, check)


def _last_result(instance: DagsterInstance, check: AssetCheckKey) -> AssetCheckResult:
    """Return the last result again, and since when it holds; passed if there is none."""
    records = instance.event_log_storage.get_asset_check_execution_history(check, limit=_MAX_PLANNED)
    for record in records:
        event = record.event.dagster_event if record.event else None
        if event and isinstance(event.event_specific_data, AssetCheckEvaluation):
            return _repeated(event.event_specific_data, record.create_timestamp)
    return AssetCheckResult(
        passed=True,
        asset_key=check.asset_key,
        check_name=check.name,
        description="Not evaluated yet: the run failed before",
    )


def _repeated(last: AssetCheckEvaluation, seconds: float) -> AssetCheckResult:
    first_time = last.metadata.get(_SINCE)
    since = str(first_time.value) if first_time else _time_of(seconds)
    return AssetCheckResult(
        passed=last.passed,
        asset_key=last.asset_key,
        check_name=last.check_name,
        severity=last.severity,
        description=f"Not evaluated, since the run failed. The result is of {since}",
        metadata={**last.metadata, _SINCE: since},
    )


def _time_of(seconds: float) -> str:
    return time_text(datetime.fromtimestamp(seconds, UTC).isoformat())
