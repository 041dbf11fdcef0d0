"""The rows that a promote swaps (docs/reference/replay.md, What a promote does).

They are the rows of the replayed range, except those that the live dataflow has loaded since.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from partitions.column.predicates import ColumnRange
from partitions.column.state import ColumnState, ReadBound
from partitions.predicate import AllOf, Among, AnyOf, HasValue, Predicate, all_of, any_of
from partitions.replay.chunks import Chunk
from partitions.watermark import compare_values


@dataclass(frozen=True)
class LoadedEntry:
    """The bounds of what an entry of the live dataflow has read.

    Attributes:
        number: the entry's number.
        lower: None: no lower bound.
        upper: None: no bound is known.
    """

    number: int
    lower: ColumnState | None
    upper: ColumnState | None


def promoted_rows(
    range_: Chunk,
    columns: Sequence[str],
    start_state: ColumnState,
    now: ColumnState,
    *,
    keeps_boundary: bool,
    leaves_above: bool,
) -> Predicate:
    """Return the predicate of rows that the isolated table replaces in the live table.

    Rows that the live dataflow has loaded since the replay started are up to date, and stay: they lie
    above the state at that time, and not above the state now. Rows above the state now are only in the
    isolated table; the next run reads them anyway.

    Args:
        range_: the replayed range.
        columns: the watermark's columns.
        start_state: the live state when the replay started.
        now: the live state.
        keeps_boundary: whether runs read the stored value itself again, so a row with it may have been
        loaded since.
        leaves_above: whether rows above the live state are left to the next run, which would add them once
        more.
    """
    bounds = ColumnRange(
        range_.column, range_.lower, range_.upper, lower_inclusive=True, upper_inclusive=False
    )
    same = not leaves_above and now.bounds == start_state.bounds and not keeps_boundary
    if same or lies_below(range_, columns, start_state):
        return bounds.rows
    not_new = all_of(
        _not_above_mark(name, start_state.bounds.get(name), inclusive=not keeps_boundary) for name in columns
    )
    if leaves_above:
        return AllOf((bounds.rows, *_parts(not_new)))
    return AllOf(
        (bounds.rows, any_of((not_new, *(_above_mark(name, now.bounds.get(name)) for name in columns))))
    )


def swaps_nothing(
    range_: Chunk, columns: Sequence[str], start_state: ColumnState, now: ColumnState, *, leaves_above: bool
) -> bool:
    """Return whether :func:`promoted_rows` matches no row of the range.

    Then all rows lie above the state when the replay started, and runs have loaded them since or will load
    them.

    Args:
        range_: the replayed range.
        columns: the watermark's columns.
        start_state: the live state when the replay started.
        now: the live state.
        leaves_above: as in :func:`promoted_rows`.
    """
    old, new = start_state.bounds.get(range_.column), now.bounds.get(range_.column)
    if old is not None and compare_values(old.value, range_.lower) >= 0:
        return False
    passed = new is not None and compare_values(range_.upper, new.value) <= 0
    return leaves_above or (len(columns) == 1 and passed)


def loaded_again(
    entries: Iterable[LoadedEntry], range_: Chunk, columns: Sequence[str], start_state: ColumnState
) -> Iterator[LoadedEntry]:
    """Yield the entries that may have loaded rows of the range again.

    Such rows lie at or below the live state when the replay started.

    Args:
        entries: the entries of the live dataflow since then; one without rows may have deleted some.
        range_: the replayed range.
        columns: the watermark's columns.
        start_state: the live state then.
    """
    for entry in entries:
        if not any(_reaches_below(entry, name, start_state.bounds.get(name)) for name in columns):
            continue
        if len(columns) > 1 or _touches(entry, range_):
            yield entry


def _reaches_below(entry: LoadedEntry, column: str, start_mark: ReadBound | None) -> bool:
    if start_mark is None:  # nothing of it was loaded by this column
        return False
    lower = entry.lower.bounds.get(column) if entry.lower else None
    return lower is None or compare_values(lower.value, start_mark.value) < 0


def _touches(entry: LoadedEntry, range_: Chunk) -> bool:
    lower = entry.lower.bounds.get(range_.column) if entry.lower else None
    upper = entry.upper.bounds.get(range_.column) if entry.upper else None
    if lower is not None and compare_values(lower.value, range_.upper) >= 0:
        return False
    return upper is None or compare_values(upper.value, range_.lower) >= 0


def lies_below(range_: Chunk, columns: Sequence[str], start_state: ColumnState) -> bool:
    """Return whether all of a range was read; with several columns its upper bound does not tell."""
    mark = start_state.bounds.get(range_.column)
    return len(columns) == 1 and mark is not None and compare_values(range_.upper, mark.value) <= 0


def _not_above_mark(column: str, mark: ReadBound | None, *, inclusive: bool) -> Predicate:
    """Return the predicate of rows that are not new by a column."""
    without = Among(column, (None,))
    if mark is None:
        return without
    rows = ColumnRange(column, None, mark.value, upper_inclusive=mark.inclusive and inclusive).rows
    return AnyOf((rows, without))


def _above_mark(column: str, mark: ReadBound | None) -> Predicate:
    if mark is None:
        return HasValue(column)
    return ColumnRange(column, mark.value, None, lower_inclusive=not mark.inclusive).rows


def _parts(predicate: Predicate) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, AllOf) else (predicate,)
