"""What becomes of commits that change or remove rows of the table above."""

from __future__ import annotations

from partitions.sources.table import OnChange, TableSource
from partitions.target import Target

CHANGE_COLUMNS = ("_change_type", "_commit_version", "_commit_timestamp")
"""Columns of a row with what its commit did to it, the number of the commit, and its time."""

_BY_KEY = ("merge_upsert", "scd2")
"""The loads that find the row that an update or delete means."""


def change_treatment(source: TableSource, target: Target) -> OnChange:
    """Return ``on_change``, or the default of the load: keyed loads apply changes, others stop."""
    return source.on_change or ("apply" if target.load in _BY_KEY else "stop")
