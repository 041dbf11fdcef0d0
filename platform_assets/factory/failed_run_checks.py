"""The checks of a run that failed: why the table is not up to date, and the others' last results.

Dagster shows a check that a failed run did not evaluate as failed. But nobody has looked, so the last result
still holds. The checks of the table ask the log alone, so they are evaluated after a failure, too.

All are evaluations of the table's newest event: Dagster ties a result to the last event of the run's
partition, and shows it as "Not Evaluated" if another partition has a newer one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from dagster import AssetCheckEvaluation, AssetCheckKey, AssetKey, DagsterInstance, Failure

from partitions.checks import UP_TO_DATE
from partitions.errors import StrandlineError
from partitions.instants import time_text
from platform_assets.dagster_internals import CheckedEvent
from platform_assets.factory.check_results import ERROR, CheckFinding, DataflowChecks, TableCheck
from platform_assets.run_metadata import error_metadata
from resources.platform.platform import Platform

_SINCE = "evaluated_at"

_MAX_PLANNED = 25
"""The most planned evaluations of other failed runs that are skipped in search of the last result."""


def results_of_failed_run(
    instance: DagsterInstance,
    dataflow_checks: DataflowChecks,
    checks: Collection[AssetCheckKey],
    failure: Failure,
    why: Mapping[str, Any],
    findings: Mapping[str, CheckFinding],
) -> Iterator[AssetCheckEvaluation]:
    """Yield an evaluation for each check of a run that failed before it evaluated them.

    Args:
        instance: the Dagster instance with the earlier results.
        dataflow_checks: the dataflow's checks.
        checks: the checks that the run was to evaluate.
        failure: why it failed, with the commands that help as metadata.
        why: the metadata that says what is not loaded and why.
        findings: what the run found out about checks before it failed, by their names.
    """
    message = failure.description or "see the run"
    choices = [str(value.value) for name, value in failure.metadata.items() if name.startswith("choice ")]
    for check in checks:
        if check.name == UP_TO_DATE:
            finding = CheckFinding(
                UP_TO_DATE,
                passed=False,
                severity=ERROR,
                description=f"The last run failed: {message}",
                metadata={**error_metadata(message, choices, None), **why},
            )
        else:
            finding = findings.get(check.name) or _last_result(instance, check)
        yield dataflow_checks.evaluation(finding, _newest_event(instance, check.asset_key))


def table_checks_after_failure(
    instance: DagsterInstance,
    dataflow_checks: DataflowChecks,
    platform: Platform,
    checks: Iterable[TableCheck],
) -> Iterator[AssetCheckEvaluation]:
    """Yield an evaluation of each check of the table that the run's job has.

    The steps of these checks follow the load, and Dagster skips them if it fails.
    """
    table = dataflow_checks.names.table
    for check in checks:
        if check.with_runs:
            try:
                finding = check.evaluate(dataflow_checks.dataflow, platform)
            except StrandlineError:  # whatever it is, the run's own error says it
                finding = _last_result(instance, AssetCheckKey(table, check.name))
            yield dataflow_checks.evaluation(finding, _newest_event(instance, table))


def _newest_event(instance: DagsterInstance, asset: AssetKey) -> CheckedEvent | None:
    """Return the newest materialisation of an asset; None if there is none."""
    for record in instance.fetch_materializations(asset, limit=1).records:
        return CheckedEvent(storage_id=record.storage_id, run_id=record.run_id, timestamp=record.timestamp)
    return None


def _last_result(instance: DagsterInstance, check: AssetCheckKey) -> CheckFinding:
    """Return the last result again, and since when it holds; passed if there is none."""
    records = instance.event_log_storage.get_asset_check_execution_history(check, limit=_MAX_PLANNED)
    for record in records:
        event = record.event.dagster_event if record.event else None
        if event and isinstance(event.event_specific_data, AssetCheckEvaluation):
            return _repeated(event.event_specific_data, record.create_timestamp)
    return CheckFinding(check.name, passed=True, description="Not evaluated yet: the run failed before")


def _repeated(last: AssetCheckEvaluation, seconds: float) -> CheckFinding:
    first_time = last.metadata.get(_SINCE)
    since = str(first_time.value) if first_time else _time_of(seconds)
    return CheckFinding(
        last.check_name,
        passed=last.passed,
        severity=last.severity,
        description=f"Not evaluated, since the run failed. The result is of {since}",
        metadata={**last.metadata, _SINCE: since},
    )


def _time_of(seconds: float) -> str:
    return time_text(datetime.fromtimestamp(seconds, UTC).isoformat())
