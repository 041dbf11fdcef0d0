"""What the tables are called that a dataflow makes beside its own."""

from __future__ import annotations

from collections.abc import Mapping

from partitions.dataflow import Dataflow
from partitions.stream.definition import StreamWatermark


def late_asset(dataflow: Dataflow) -> str:
    """Return the name of the asset of a stream's late rows."""
    return f"{dataflow.asset}__late"


def late_table(dataflow: Dataflow) -> str | None:
    """Return the name of the table of a stream's late rows; None if none are kept."""
    watermark = dataflow.watermark
    keeps_late = isinstance(watermark, StreamWatermark) and watermark.late == "divert"
    return f"{dataflow.table}__late" if keeps_late else None


def tables_beside(dataflow: Dataflow) -> Mapping[str, str]:
    """Return, by their assets, the tables that others may read."""
    table = late_table(dataflow)
    return {late_asset(dataflow): table} if table is not None else {}


def bad_records_table(dataflow: Dataflow) -> str | None:
    """Return the name of the table for records that do not parse, which no other dataflow writes; None if none may be set aside."""
    beside = dataflow.asset if dataflow.target.shared else dataflow.table
    return f"{beside}_bad_records" if dataflow.max_bad_records else None
