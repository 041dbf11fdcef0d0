"""What the tables are called that a dataflow makes beside its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from partitions.dataflow import Dataflow


def late_rows(name: str) -> str:
    """Return the name of the table, or of its asset, for late rows of a stream, by that of the stream's own."""
    return f"{name}__late"


def bad_records_table(dataflow: Dataflow) -> str | None:
    """Return the name of the table for records that do not parse, which no other dataflow writes; None if none may be set aside."""
    beside = dataflow.asset if dataflow.target.shared else dataflow.table
    return f"{beside}_bad_records" if dataflow.max_bad_records else None
