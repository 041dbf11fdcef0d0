"""Cut windows of a database table into parts that several connections read at once (docs/reference/databases.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from partitions.column.predicates import ColumnRange, cut_range
from partitions.predicate import Predicate, all_of
from partitions.window.extent import Extent
from partitions.window.predicates import WindowColumns, extents_predicate
from resources.sources.source import PARTS

MOST_STEPS = 1_000
"""Of the walk along an index that looks for parts."""


def parallel_parts(
    extents: Sequence[Extent],
    column: str,
    columns: WindowColumns,
    cuts_of: Callable[[ColumnRange], Sequence[Any]],
) -> list[Predicate]:
    """Return the rows of some extents in at most ``PARTS`` parts of about the same size along their time; none if one connection reads them sooner.

    Args:
        extents: windows, of some units or all.
        column: their time.
        columns: how a row's window and unit are told.
        cuts_of: gives values of the time, ascending, with a part's worth of rows of all units between two; none without an index, or if
            the rows are few.
    """
    lowers = [extent.lower for extent in extents if extent.lower is not None]
    uppers = [extent.upper for extent in extents if extent.upper is not None]
    if len(lowers) < len(extents) or len(uppers) < len(extents):
        return []
    window = ColumnRange(column, columns.bound(min(lowers)), columns.bound(max(uppers)), True, False)
    steps = cuts_of(window)
    if not steps:
        return []
    parts = min(PARTS, len(steps) + 1)
    cuts = [steps[(len(steps) + 1) * number // parts - 1] for number in range(1, parts)]
    rows_of_extents = extents_predicate(extents, columns)
    # Without outer bounds: when clocks are put back, the end of the last window may lie below that of another.
    return [all_of((rows_of_extents, part.rows)) for part in cut_range(ColumnRange(column, None, None), cuts)]
