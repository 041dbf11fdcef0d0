"""How tries that are made again are told: in the log, once each, by the words of the error."""

from __future__ import annotations

import logging

from stamina.instrumentation import RetryDetails, set_on_retry_hooks

_LOG = logging.getLogger(__name__)


def log_retries() -> None:
    """Have each try that is made again written to the log. By itself stamina prints on stdout if structlog is installed, into the JSON of a command."""
    set_on_retry_hooks([_log_retry])


def _log_retry(details: RetryDetails) -> None:
    _LOG.warning("%s; trying again in %.1f s", details.caused_by, details.wait_for)
