"""Names of the tables that a dataflow makes beside its own for itself alone."""

from __future__ import annotations

from collections.abc import Mapping

from partitions.dataflow import Dataflow
from partitions.stream.side_table_names import stream_side_tables

TOMBSTONES = "tombstones"
"""Short name of the side table with the keys that rows of the source have deleted."""

REJECTED = "rejected"
"""Short name of the side table with the rows that failed a rule."""


def side_tables(dataflow: Dataflow) -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Return the side tables of a dataflow by short name: table name, and partition columns.

    A run writes them before the slice's own rows, under the same number.
    """
    # Whatever the rules say now: earlier ones may have rejected rows.
    rejected = {REJECTED: (rejected_table(dataflow), ())} if dataflow.rules else {}
    if dataflow.target.keep_tombstones is not None:
        return {TOMBSTONES: (f"{dataflow.table}__{TOMBSTONES}", ()), **rejected}
    return {**stream_side_tables(dataflow), **rejected}


def rejected_table(dataflow: Dataflow) -> str:
    """Return the name of the dataflow's own table of rejected rows."""
    return f"{_name_beside(dataflow)}_{REJECTED}"


def _name_beside(dataflow: Dataflow) -> str:
    """Return a name that no other dataflow's table begins with, even if the table is shared."""
    return dataflow.asset if dataflow.target.shared else dataflow.table


def bad_records_table(dataflow: Dataflow) -> str | None:
    """Return the name of the dataflow's own table of bad records; None if it sets none aside."""
    return f"{_name_beside(dataflow)}_bad_records" if dataflow.max_bad_records else None
