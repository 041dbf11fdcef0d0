"""Where Dagster shows units: as partitions, in buckets, or in the ledger only.

See docs/reference/dagster.md.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from partitions.model import Model

MAX_KEYS = 10_000
"""The most keys of one dimension that Dagster and its UI can handle."""

MANY = (
    "Set dagster_units: {buckets: 64}, and Dagster shows buckets of units; or dagster_units: ledger, and Dagster shows "
    "only the windows. The ledger shows every unit"
)
"""The remedy for more keys."""


class Buckets(Model):
    """A fixed number of buckets for units; a hash of a unit's identity selects its bucket."""

    buckets: Annotated[int, Field(ge=1, le=MAX_KEYS, strict=True)]


DagsterUnits = Literal["auto", "partitions", "ledger"] | Buckets
"""Where Dagster shows units: as partitions, in buckets of partitions, or in the ledger only."""
