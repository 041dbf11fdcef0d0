"""The last reported result of a check, so that a sensor reports only changes.

A sensor ticks thousands of times a day, and Dagster keeps each result for ever. So a result is reported
when it changes, and once a day to show that the sensor still runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import timedelta

from dagster import AssetCheckEvaluation, AssetCheckKey, DagsterEventType, DagsterInstance

REPEAT_AFTER = timedelta(days=1)
"""How long after its report the same result is reported again."""


class LastReported:
    """The last result of one check in Dagster, read once a process and again after :meth:`forget`."""

    def __init__(self, check: AssetCheckKey, result_of: Callable[[AssetCheckEvaluation], Hashable]) -> None:
        """Watch a check; ``result_of`` returns the parts of a result whose change is reported."""
        self._check, self._result_of = check, result_of
        self._last: tuple[Hashable, float] | None = None

    def should_report(self, instance: DagsterInstance, result: Hashable, seconds: float) -> bool:
        """Return whether to report a result; if so, take it as reported.

        Args:
            instance: the Dagster instance.
            result: a result in the form that ``result_of`` returns.
            seconds: the time of the tick, epoch seconds.
        """
        if self._last is None:
            self._last = self._stored(instance)
        if self._last is not None:
            last_result, at = self._last
            if last_result == result and seconds - at < REPEAT_AFTER.total_seconds():
                return False
        self._last = result, seconds
        return True

    def forget(self) -> None:
        """Read the last result from Dagster again before the next report: runs report the check, too."""
        self._last = None

    def _stored(self, instance: DagsterInstance) -> tuple[Hashable, float] | None:
        record = instance.get_latest_asset_check_evaluation_record(self._check)
        event = record.event.dagster_event if record and record.event else None
        if record is None or event is None or event.event_type != DagsterEventType.ASSET_CHECK_EVALUATION:
            return None
        return self._result_of(event.asset_check_evaluation_data), record.create_timestamp
