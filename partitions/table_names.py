"""What the tables are called that a dataflow makes beside its own and that no other may read."""

from __future__ import annotations

from partitions.dataflow import Dataflow


def bad_records_table(dataflow: Dataflow) -> str | None:
    """Return the name of the table for records that do not parse, which no other dataflow writes; None if none may be set aside."""
    beside = dataflow.asset if dataflow.target.shared else dataflow.table
    return f"{beside}_bad_records" if dataflow.max_bad_records else None
