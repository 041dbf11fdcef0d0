"""What a sensor reports of its looks and pauses on a table's page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dagster import AssetCheckEvaluation, AssetObservation, DagsterInstance, MetadataValue

from partitions.checks import UP_TO_DATE
from partitions.dataflow import Dataflow
from platform_assets.factory.asset_checks import (
    NEXT_ATTEMPT,
    failed_look,
    failing_text,
    nothing_new_text,
    reported_part,
    up_to_date_key,
    why_metadata,
)
from platform_assets.factory.check_results import CheckFinding, DataflowChecks
from platform_assets.factory.last_reported import LastReported
from platform_assets.factory.ticks import NoWork, Tick
from platform_assets.run_metadata import error_metadata
from resources.dagster.names import DagsterDataflowNames
from resources.notes.last_run import Attempt, last_attempt
from resources.platform.platform import Platform


class LookReports:
    """Reports the check ``up_to_date`` of a table by the looks of its sensor: changes, and once a day."""

    def __init__(
        self, dataflow: Dataflow, platform: Platform, names: DagsterDataflowNames, interval: int
    ) -> None:
        self._dataflow, self._platform, self._interval = dataflow, platform, interval
        self._checks = DataflowChecks(dataflow, names)
        self._last = LastReported(
            up_to_date_key(names), lambda evaluation: reported_part(evaluation.description)
        )
        self._store_fails_since: str | None = None

    def of_nothing_new(
        self, instance: DagsterInstance, seconds: float, no_work: NoWork
    ) -> Sequence[AssetCheckEvaluation]:
        """Return the result of a look that found nothing; nothing if it was reported already."""
        self._store_fails_since = None
        text = nothing_new_text(no_work.why)
        if not self._last.should_report(instance, reported_part(text), seconds):
            return []
        why = why_metadata(self._platform, self._dataflow, datetime.fromtimestamp(seconds, UTC))
        finding = CheckFinding(UP_TO_DATE, passed=True, description=text, metadata=why)
        return [self._checks.evaluation(finding)]

    def report_failure(self, instance: DagsterInstance, seconds: float, look: Attempt) -> None:
        """Report a look that failed. Its tick fails, too, and a tick that fails has no events of its own."""
        is_noted = look.failed_looks > 0
        self._store_fails_since = None if is_noted else self._store_fails_since or look.time
        look = replace(look, failing_since=self._store_fails_since or look.failing_since)
        if self._last.should_report(instance, reported_part(failing_text(look)), seconds):
            next_look = datetime.fromtimestamp(seconds + self._interval, UTC)
            now = datetime.fromtimestamp(seconds, UTC)
            # A store that does not answer is not waited for once more.
            why = why_metadata(self._platform, self._dataflow, now) if is_noted else {}
            instance.report_runless_asset_event(
                self._checks.evaluation(failed_look(look, next_look, why, self._platform.env))
            )

    def forget(self) -> None:
        """Report the next look whatever it finds: a run reports the check, too."""
        self._store_fails_since = None
        self._last.forget()


def pause_events(
    dataflow: Dataflow,
    platform: Platform,
    names: DagsterDataflowNames,
    reason: str,
    tick: Tick,
    seconds_left: float,
) -> Sequence[Any]:
    """Return the events that show on the table's page why nothing runs; called once for each pause.

    They include the error of the last attempt and the time of the next one.
    """
    until = datetime.fromtimestamp(tick.seconds + seconds_left, UTC)
    metadata: dict[str, Any] = {
        "why_nothing_runs": reason,
        NEXT_ATTEMPT: MetadataValue.timestamp(until),
    }
    attempt = last_attempt(platform.log, dataflow.name)
    if attempt is not None and attempt.error is not None:
        metadata |= error_metadata(attempt.error["message"], attempt.error["choices"], platform.env)
        metadata |= {"failing_since": attempt.failing_since} if attempt.failing_since else {}
    why = {
        NEXT_ATTEMPT: MetadataValue.timestamp(until),
        **why_metadata(platform, dataflow, tick.now),
    }
    waits = CheckFinding(UP_TO_DATE, passed=False, description=f"New data waits: {reason}", metadata=why)
    evaluation = DataflowChecks(dataflow, names).evaluation(waits)
    return AssetObservation(names.table, metadata=metadata), evaluation
