"""Slices of the column kind: rows between two bounds, one commit, and the state after it.

See docs/reference/columns.md.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from partitions.column.definition import ColumnWatermark
from partitions.column.predicates import ColumnRange, format_bound, rows_in_ranges
from partitions.column.state import ColumnState, ReadBound
from partitions.errors import BadPart
from partitions.plan import Size, Skip
from partitions.predicate import AllOf, Among, AnyOf, HasValue, Predicate, any_of
from partitions.reconcile.repair import Repaired
from partitions.sentinels import Watermark, serialise
from partitions.watermark import compare_values


@dataclass(frozen=True)
class ColumnSlice:
    """The rows between bounds that one commit loads.

    Attributes:
        before: the state that it starts from.
        ranges: the range of each column, in the definition's order.
        reads_nulls: whether it also reads rows with NULL in every column.
        replaces: whether it deletes the table's rows in the ranges, after a rewind or in a replay.
        version: the source's version; None if it has none.
        cuts: ascending values within the range of the only column. Each ends a part that a connection of
        its own may read.
        source: a text that differs for another source of the same name; None if nothing distinguishes
        them.
        why: ``run``, ``replay`` for a chunk of a replay, or ``reconcile`` for a repair.
        saves: whether the state moves to its upper bounds; else it stays.
        repairs: keys or ranges that a repair reads instead of ``ranges``, which are empty then.
        since: always None: a column watermark has no filtered cold start (:class:`partitions.plan.Slice`).
    """

    before: Watermark
    ranges: tuple[ColumnRange, ...]
    reads_nulls: bool = False
    replaces: bool = False
    version: int | str | None = None
    cuts: tuple[Any, ...] = ()
    source: str | None = None

    why: Literal["run", "replay", "reconcile"] = "run"
    saves: bool = True
    repairs: Repaired | None = None
    since: None = None

    @property
    def rows(self) -> Predicate:
        """The rows that it reads."""
        if self.repairs is not None:
            return any_of(self.repairs.rows_to_read)
        null_rows = AllOf(tuple(Among(range_.column, (None,)) for range_ in self.ranges))
        return (
            AnyOf((*_alternatives(self.rows_with_value), null_rows))
            if self.reads_nulls
            else self.rows_with_value
        )

    @property
    def rows_with_value(self) -> Predicate:
        """The rows that it reads, without those that are NULL in every column."""
        if any(range_.is_bounded for range_ in self.ranges):
            return rows_in_ranges(self.ranges)
        return any_of(HasValue(range_.column) for range_ in self.ranges)

    @property
    def rows_to_fetch(self) -> Predicate:
        """A superset of ``rows``: also all rows with a value in a column that has no bound yet."""
        open_ = [HasValue(range_.column) for range_ in self.ranges if not range_.is_bounded]
        return any_of(dict.fromkeys((*_alternatives(self.rows), *open_)))

    @property
    def lower(self) -> Watermark | None:
        """The lower bounds, after look-back; None on a first run."""
        values = {range_.column: range_.lower for range_ in self.ranges if range_.lower is not None}
        return values or None

    @property
    def effective(self) -> Watermark:
        """The same as ``lower``, but {} in place of None: what it reads from (TellsLowerBound)."""
        return self.lower or {}

    @property
    def upper(self) -> Watermark:
        """The upper bounds, in the form of the state."""
        return self._after(ColumnState())

    @property
    def repeats(self) -> bool:
        """Whether it reads nothing above the state that it starts from."""
        before = ColumnState.of(self.before)
        return self.why == "run" and all(
            range_.upper is not None
            and (bound := before.bounds.get(range_.column)) is not None
            and bound.covers(ReadBound(range_.upper, range_.upper_inclusive))
            for range_ in self.ranges
        )

    @property
    def size(self) -> Size:
        """One range; its number of rows is unknown before the read."""
        return Size(ranges=1)

    @property
    def keys(self) -> Collection[str]:
        """One key, unique among the slices."""
        return [serialise(self.upper)]

    @property
    def failures(self) -> Mapping[str, str]:
        """Always empty: a range is read as a whole, or not at all."""
        return {}

    def contains(self, _bad: BadPart) -> bool:
        """Return False: a bad part of the source cannot be traced to a range of rows."""
        return False

    def up_to(self, bad: BadPart) -> None:
        """Return None: a range cannot be shortened to end before a bad part."""

    def advance(self, before: Watermark) -> Watermark:
        """Return the state after it: each column at its upper bound or higher; unchanged if it saves nothing."""
        return self._after(ColumnState.of(before)) if self.saves else ColumnState.of(before).watermark()

    def _after(self, before: ColumnState) -> Watermark:
        bounds = {
            range_.column: ReadBound(range_.upper, range_.upper_inclusive)
            for range_ in self.ranges
            if range_.upper is not None
        }
        return before.raise_to(bounds).watermark()

    def describe(self) -> list[dict[str, Any]]:
        """Return the predicate, and the bounds as sentinel JSON."""
        return [
            {
                "predicate": self.words,
                "lower": json.loads(serialise(self.lower)) if self.lower else None,
                "upper": json.loads(serialise(self.upper)),
                "lower_inclusive": all(range_.lower_inclusive for range_ in self.ranges),
                "upper_inclusive": all(range_.upper_inclusive for range_ in self.ranges),
                **({"reason": self.why} if self.why != "run" else {}),
            }
        ]

    @property
    def words(self) -> str:
        """The rows in words."""
        if self.repairs is not None:
            return self.repairs.words
        ranges = [range_.words for range_ in self.ranges]
        columns = [range_.column for range_ in self.ranges]
        nulls = (
            [f"{' and '.join(columns)} {'is' if len(columns) == 1 else 'are'} NULL"]
            if self.reads_nulls
            else []
        )
        parts = [*ranges, *nulls]
        return parts[0] if len(parts) == 1 else " or ".join(f"({part})" for part in parts)

    def halve(self) -> tuple[ColumnSlice, ...]:
        """Return only itself: the rows between its bounds are unknown before the read."""
        return (self,)


def _alternatives(predicate: Predicate) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, AnyOf) else (predicate,)


def cut_slice(
    whole: ColumnSlice, cuts: Sequence[Any], parts: int, *, inclusive: bool
) -> tuple[ColumnSlice, ...]:
    """Split a slice of one column so that each result holds at most ``parts`` parts.

    Args:
        whole: the slice. With several columns, it stays as it is.
        cuts: ascending values; each ends a part. Those that end no result stay inside it as its ``cuts``.
        parts: the most parts of a result.
        inclusive: whether rows equal to a cut value go to the lower slice.
    """
    if len(whole.ranges) != 1 or not cuts:
        return (whole,)
    (range_,) = whole.ranges
    slices: list[ColumnSlice] = []
    remaining, before = range_, whole.before
    for first in range(0, len(cuts) + 1, parts):
        inside, end = tuple(cuts[first : first + parts - 1]), cuts[first + parts - 1 : first + parts]
        piece = replace(remaining, upper=end[0], upper_inclusive=inclusive) if end else remaining
        slices.append(
            replace(
                whole,
                before=before,
                ranges=(piece,),
                cuts=inside,
                reads_nulls=whole.reads_nulls and not first,
            )
        )
        before = slices[-1].advance(before)
        remaining = replace(remaining, lower=piece.upper, lower_inclusive=not inclusive)
    return tuple(slices)


def limit_slices(
    definition: ColumnWatermark, slices: Sequence[ColumnSlice]
) -> tuple[tuple[ColumnSlice, ...], tuple[Skip, ...]]:
    """Return the slices of one run, and skips for those that wait for the next run.

    A run takes ``max_slices`` above the watermark, and all slices of the look-back.
    """
    repeated = sum(slice_.repeats for slice_ in slices)  # these come first
    due = tuple(slices[: repeated + definition.max_slices])
    if len(due) == len(slices):
        return due, ()
    (range_,) = due[-1].ranges
    why = (
        f"rows above {format_bound(range_.upper)} wait for the next run (max_slices: {definition.max_slices})"
    )
    return due, (Skip(range_.column, why),)


def mark_replacing(slices: Sequence[ColumnSlice], old_state: ColumnState) -> tuple[ColumnSlice, ...]:
    """Mark as replacing only the slices that begin at or below the old watermark, after a rewind.

    The table holds no rows above it.
    """
    return tuple(replace(slice_, replaces=_begins_below(slice_, old_state)) for slice_ in slices)


def _begins_below(slice_: ColumnSlice, old_state: ColumnState) -> bool:
    return any(
        range_.lower is None
        or (
            (bound := old_state.bounds.get(range_.column)) is not None
            and compare_values(range_.lower, bound.value) <= 0
        )
        for range_ in slice_.ranges
    )
