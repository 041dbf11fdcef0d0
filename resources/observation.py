"""The counts of a write, by a Spark observation (docs/explanation/architecture.md)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from resources.background import in_background

if TYPE_CHECKING:
    from pyspark.sql import Observation

_PATIENCE = 20.0
"""Seconds to wait for the values, which exist when the write is over; a skipped write has none."""


def observed_values(observation: Observation) -> dict[str, Any]:
    """Return the values of an observation once its write is over; {} if none come in 20 seconds.

    A Connect server waits only a tenth of a second for them (Spark 4.1). So on a busy server they may be
    missing, and each caller has another way.
    """
    # Whatever fails here, the rows are written, and the caller can do without the values.
    with suppress(Exception):
        return dict(in_background(lambda: observation.get, "observation").result(_PATIENCE) or {})
    return {}
