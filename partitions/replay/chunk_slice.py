"""The slice of a chunk: its range, independent of the watermark (docs/reference/replay.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from partitions.column.predicates import ColumnRange
from partitions.column.slices import ColumnSlice
from partitions.column.state import ColumnState
from partitions.predicate import Predicate
from partitions.replay.chunks import Chunk
from partitions.request import Replay
from partitions.target import Target
from partitions.watermark import compare_values


def chunk_slice(
    target: Target, columns: Sequence[str], state: ColumnState, request: Replay, version: int | str | None
) -> ColumnSlice | None:
    """Return the slice of a chunk; None if all of it is left to the next run.

    Args:
        target: the load's target.
        columns: the watermark's columns.
        state: the state of the newest entry.
        request: the chunk, and its effect on state and table.
        version: the source's version.
    """
    range_ = request.chunk.range
    if request.leaves_above and adds_above(target, columns, state):
        range_ = _up_to(range_, state)
    if range_.is_empty:
        return None
    return ColumnSlice(
        state.watermark(),
        (range_,),
        replaces=request.replaces,
        version=version,
        why="replay",
        saves=request.saves,
    )


def adds_above(target: Target, columns: Sequence[str], state: ColumnState) -> bool:
    """Return whether the next run adds rows above the state beside existing ones, not in their place.

    A replace by watermark only replaces rows from a stored value on.
    """
    if target.only_adds:
        return True
    return target.way == "replace_by_watermark" and any(name not in state.bounds for name in columns)


def is_done(chunk: Chunk, upper: Mapping[str, Any]) -> bool:
    """Return whether an upper bound of the same replay lies at or above this chunk's."""
    return chunk.column in upper and compare_values(chunk.upper, upper[chunk.column]) <= 0


def later_rows(slice_: ColumnSlice) -> Predicate:
    """Return the rows above a chunk; rows of the same key within it are older."""
    (range_,) = slice_.ranges
    return replace(range_, lower=range_.upper, lower_inclusive=not range_.upper_inclusive, upper=None).rows


def _up_to(range_: ColumnRange, state: ColumnState) -> ColumnRange:
    mark = state.bounds.get(range_.column)
    if mark is None:
        return replace(range_, upper=range_.lower)
    if compare_values(range_.upper, mark.value) <= 0:
        return range_
    return replace(range_, upper=mark.value, upper_inclusive=mark.inclusive)
