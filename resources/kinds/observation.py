"""What a write counts in passing, by a Spark observation (docs/architecture.md)."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import Observation

_PATIENCE = 20.0
"""Seconds for an answer that is there when the write is over; one of a write that was skipped never comes."""


def observed(observation: Observation) -> dict[str, Any]:
    """Return the answer of an observation once its write is over; nothing if it does not come: no row depends on it."""
    answer: dict[str, Any] = {}

    def ask() -> None:
        # Whatever fails here, the rows are committed, and the caller knows what to do without the answer.
        with suppress(Exception):
            answer.update(observation.get or {})

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    return dict(answer)
