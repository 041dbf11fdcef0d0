"""What a dataflow's file says of its runs, in Dagster's own classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dagster import AutomationCondition, Backoff, Jitter, RetryPolicy

from partitions.dataflow import Dataflow
from partitions.run_settings import OnCron

_BACKOFFS = {"linear": Backoff.LINEAR, "exponential": Backoff.EXPONENTIAL}
_JITTERS = {"full": Jitter.FULL, "plus_minus": Jitter.PLUS_MINUS}
_CONDITIONS: Mapping[str, Callable[[], AutomationCondition[Any]]] = {
    "eager": AutomationCondition.eager,
    "on_missing": AutomationCondition.on_missing,
}


def retry_policy(dataflow: Dataflow) -> RetryPolicy | None:
    """Return how Dagster tries a failed load again; None leaves it to the instance."""
    retry = dataflow.retry
    if retry is None:
        return None
    return RetryPolicy(
        max_retries=retry.max,
        delay=retry.delay.total_seconds() if retry.delay else None,
        backoff=_BACKOFFS[retry.backoff] if retry.backoff else None,
        jitter=_JITTERS[retry.jitter] if retry.jitter else None,
    )


def automation_condition(dataflow: Dataflow) -> AutomationCondition[Any] | None:
    """Return when Dagster's automation materialises the table; None: it does not."""
    match dataflow.automation_condition:
        case None:
            return None
        case OnCron(on_cron=cron, timezone=zone):
            return AutomationCondition.on_cron(cron, zone)
        case name:
            return _CONDITIONS[name]()
