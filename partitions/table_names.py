"""Names of the tables that a dataflow makes beside its own for itself alone."""

from __future__ import annotations

from partitions.dataflow import Dataflow


def bad_records_table(dataflow: Dataflow) -> str | None:
    """Return the name of the dataflow's own table of bad records; None if it sets none aside."""
    beside = dataflow.asset if dataflow.target.shared else dataflow.table
    return f"{beside}_bad_records" if dataflow.max_bad_records else None
