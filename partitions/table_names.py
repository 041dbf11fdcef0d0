"""Names of the tables that a dataflow makes beside its own for itself alone."""

from __future__ import annotations

from collections.abc import Mapping

from partitions.dataflow import Dataflow
from partitions.stream.side_table_names import stream_side_tables

TOMBSTONES = "tombstones"
"""Short name of the side table with the keys that rows of the source have deleted."""


def side_tables(dataflow: Dataflow) -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Return the side tables of a dataflow by short name: table name, and partition columns.

    A run writes them before the slice's own rows, under the same number.
    """
    if dataflow.target.keep_tombstones is not None:
        return {TOMBSTONES: (f"{dataflow.table}__{TOMBSTONES}", ())}
    return stream_side_tables(dataflow)


def bad_records_table(dataflow: Dataflow) -> str | None:
    """Return the name of the dataflow's own table of bad records; None if it sets none aside."""
    beside = dataflow.asset if dataflow.target.shared else dataflow.table
    return f"{beside}_bad_records" if dataflow.max_bad_records else None
