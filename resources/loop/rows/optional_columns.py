"""The columns that rows may lack while a rule names them: the rows have NULL there.

A source may lose a column that the table keeps: its rows have no value there. But if the definition decides
which columns rows have, and leaves one out, nobody knows its values. Then no condition on it can be tested.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from partitions.loads import ReplaceAll
from partitions.target import DATAFLOW_COLUMN
from resources.kinds.contract.slices import SliceT
from resources.loop.context import RunContext
from resources.loop.rows.delete_marks import OptionalColumns
from resources.watermarks.entry import Intent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def optional_columns(
    run: RunContext[SliceT], intent: Intent, slice_: SliceT | None, rows: DataFrame
) -> OptionalColumns:
    """Return which columns the rows that a commit writes may lack.

    Args:
        run: the run.
        intent: the intent of the commit.
        slice_: the slice; None for rows that come from another table of the lake.
        rows: the rows.
    """

    def kept_by_the_table() -> Collection[str]:
        decides_columns = run.dataflow.has_step or run.dataflow.operators
        if decides_columns or (run.live_table is None and _replaces_table(run, intent, slice_, rows)):
            return {DATAFLOW_COLUMN}
        table = run.table if run.live_table is None else run.live_table
        return {DATAFLOW_COLUMN, *(name.casefold() for name in table.contents.columns())}

    return kept_by_the_table


def _replaces_table(run: RunContext[SliceT], intent: Intent, slice_: SliceT | None, rows: DataFrame) -> bool:
    """Return whether the commit takes all rows out of the table; its columns go with them."""
    if intent.replaces == "table" or slice_ is None:
        return intent.replaces == "table"
    return isinstance(run.kind.writing.load(slice_, rows), ReplaceAll)
