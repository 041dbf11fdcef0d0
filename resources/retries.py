"""Retry transient failures after growing pauses, each of which is logged.

The caller defines what is transient.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

import stamina
from stamina.instrumentation import RetryDetails, set_on_retry_hooks

_LOG = logging.getLogger(__name__)


def retry_attempts(
    passing: type[Exception] | Callable[[Exception], bool | float], **limits: Any
) -> Iterable[stamina.Attempt]:
    """Return the attempts of a retry, each a context; a transient failure leads to another one.

    Args:
        passing: the transient errors; or a function that returns whether an error is, or the seconds to
        wait.
        limits: of stamina: ``attempts``, ``timeout``, ``wait_initial``, ``wait_max``, ``wait_jitter``.
    """
    # By itself stamina prints on stdout if structlog is installed, into the JSON of a command.
    set_on_retry_hooks([_log_retry])
    return stamina.retry_context(passing, **limits)


def _log_retry(details: RetryDetails) -> None:
    reason, _, _ = str(details.caused_by).partition(". ")  # the rest says what to do if no attempt helps
    _LOG.warning("%s; trying again in %.1f s", reason, details.wait_for)
