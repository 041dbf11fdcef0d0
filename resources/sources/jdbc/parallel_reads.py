"""Cut windows of a database table into parts for several parallel connections.

See docs/reference/databases.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from partitions.column.predicates import ColumnRange, cut_range
from partitions.predicate import Predicate, all_of
from partitions.window.extent import Extent
from partitions.window.predicates import ExtentColumns, extents_predicate
from resources.sources.source import PARTS

MAX_STEPS = 1_000
"""The most steps of the walk along an index that looks for parts."""


def parallel_parts(
    extents: Sequence[Extent],
    column: str,
    columns: ExtentColumns,
    cuts_of: Callable[[ColumnRange], Sequence[Any]],
) -> list[Predicate]:
    """Return at most ``PARTS`` parts of similar size along the time of some extents.

    Empty if one connection reads the rows faster.

    Args:
        extents: windows, of some units or all.
        column: the column with a row's time.
        columns: the columns that identify a row's window and unit.
        cuts_of: returns ascending values of the time, with a part's number of rows of all units between
        two; empty without an index, or for few rows.
    """
    lowers = [extent.lower for extent in extents if extent.lower is not None]
    uppers = [extent.upper for extent in extents if extent.upper is not None]
    if len(lowers) < len(extents) or len(uppers) < len(extents):
        return []
    window = ColumnRange(column, columns.bound(min(lowers)), columns.bound(max(uppers)), True, False)
    row_steps = cuts_of(window)
    if not row_steps:
        return []
    parts = min(PARTS, len(row_steps) + 1)
    cuts = [row_steps[(len(row_steps) + 1) * number // parts - 1] for number in range(1, parts)]
    rows_of_extents = extents_predicate(extents, columns)
    # No outer bounds: when clocks are put back, the last window may end below another window's end.
    return [all_of((rows_of_extents, part.rows)) for part in cut_range(ColumnRange(column, None, None), cuts)]
