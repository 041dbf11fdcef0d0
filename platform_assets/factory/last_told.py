"""What a sensor has told of a check: it looks thousands of times a day, and Dagster keeps each result for ever.

So a result is told when it is another one, and once a day, which shows that somebody still looks.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from datetime import timedelta

from dagster import AssetCheckEvaluation, AssetCheckKey, DagsterEventType, DagsterInstance

AGAIN = timedelta(days=1)
"""After which the same result is told again."""


class LastTold:
    """The last result of one check, as Dagster has it; it is read once a process, and again after :meth:`forget`."""

    def __init__(self, check: AssetCheckKey, result_of: Callable[[AssetCheckEvaluation], Hashable]) -> None:
        """Use a check; ``result_of`` returns what makes a result another one."""
        self._check, self._result_of = check, result_of
        self._told: tuple[Hashable, float] | None = None

    def is_news(self, instance: DagsterInstance, result: Hashable, seconds: float) -> bool:
        """Return whether a result is to be told, and take it as told then.

        Args:
            instance: Dagster's.
            result: as ``result_of`` returns it.
            seconds: the time of the look, epoch seconds.
        """
        if self._told is None:
            self._told = self._stored(instance)
        if self._told is not None:
            told, at = self._told
            if told == result and seconds - at < AGAIN.total_seconds():
                return False
        self._told = result, seconds
        return True

    def forget(self) -> None:
        """Read it again before the next result: others tell of the check, too."""
        self._told = None

    def _stored(self, instance: DagsterInstance) -> tuple[Hashable, float] | None:
        record = instance.get_latest_asset_check_evaluation_record(self._check)
        event = record.event.dagster_event if record and record.event else None
        if record is None or event is None or event.event_type != DagsterEventType.ASSET_CHECK_EVALUATION:
            return None
        return self._result_of(event.asset_check_evaluation_data), record.create_timestamp
