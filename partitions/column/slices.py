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
from partitions.sentinels import Watermark, serialise
from partitions.watermark import compare_values


@dataclass(frozen=True)
class ColumnSlice:
    """The rows between bounds that one commit loads.

    Attributes:
        before: the state below it.
        ranges: by column, in the definition's order.
        reads_nulls: whether it also reads rows with NULL in every column.
        replaces: whether it deletes the table's rows in the ranges, after a rewind.
        version: version of the source; None if it has none.
        cuts: ascending values within the range of the only column: each ends a part that a connection of
        its own may read.
        source: a text that differs for another source of the same name; None: nothing tells them apart.
        why: new rows above the state, or a chunk of a replay.
        saves: whether the state moves to its upper bounds; else it stays.
    """

    before: Watermark
    ranges: tuple[ColumnRange, ...]
    reads_nulls: bool = False
    replaces: bool = False
    version: int | str | None = None
    cuts: tuple[Any, ...] = ()
    source: str | None = None

    why: Literal["run", "replay"] = "run"
    saves: bool = True
    since: None = None

    @property
    def rows(self) -> Predicate:
        """The rows that it reads."""
        without = AllOf(tuple(Among(range_.column, (None,)) for range_ in self.ranges))
        return AnyOf((*_parts(self.rows_with_value), without)) if self.reads_nulls else self.rows_with_value

    @property
    def rows_with_value(self) -> Predicate:
        """The rows that it reads, without those that are NULL in every column."""
        if any(range_.is_bounded for range_ in self.ranges):
            return rows_in_ranges(self.ranges)
        return any_of(HasValue(range_.column) for range_ in self.ranges)

    @property
    def rows_to_fetch(self) -> Predicate:
        """The rows that it may read, as long as columns without a bound may reach any value."""
        open_ = [HasValue(range_.column) for range_ in self.ranges if not range_.is_bounded]
        return any_of(dict.fromkeys((*_parts(self.rows), *open_)))

    @property
    def lower(self) -> Watermark | None:
        """The lower bounds, after look-back; None on a first run."""
        values = {range_.column: range_.lower for range_ in self.ranges if range_.lower is not None}
        return values or None

    @property
    def effective(self) -> Watermark:
        """The lower bounds that it reads from; empty on a first run."""
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
        """A key that no other slice has."""
        return [serialise(self.upper)]

    @property
    def failures(self) -> Mapping[str, str]:
        """Always empty: a range is read as a whole, or not at all."""
        return {}

    def contains(self, _bad: BadPart) -> bool:
        """Return False: no part of the source belongs to certain rows."""
        return False

    def up_to(self, bad: BadPart) -> None:
        """Return None: no part of it comes before a bad one."""

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
                **({"reason": self.why} if self.why == "replay" else {}),
            }
        ]

    @property
    def words(self) -> str:
        """The rows for people."""
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


def _parts(predicate: Predicate) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, AnyOf) else (predicate,)


def cut_slice(
    whole: ColumnSlice, cuts: Sequence[Any], parts: int, *, inclusive: bool
) -> tuple[ColumnSlice, ...]:
    """Cut a slice of one column at values.

    The rows at a value belong to the slice that ends with it, or to the next one if ``inclusive`` is
    false.
    """
    if len(whole.ranges) != 1 or not cuts:
        return (whole,)
    (range_,) = whole.ranges
    slices: list[ColumnSlice] = []
    begins, before = range_, whole.before
    for first in range(0, len(cuts) + 1, parts):
        inside, end = tuple(cuts[first : first + parts - 1]), cuts[first + parts - 1 : first + parts]
        ends = replace(begins, upper=end[0], upper_inclusive=inclusive) if end else begins
        slices.append(
            replace(
                whole, before=before, ranges=(ends,), cuts=inside, reads_nulls=whole.reads_nulls and not first
            )
        )
        before = slices[-1].advance(before)
        begins = replace(begins, lower=ends.upper, lower_inclusive=not inclusive)
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


def mark_replacing(slices: Sequence[ColumnSlice], until: ColumnState) -> tuple[ColumnSlice, ...]:
    """Let only the slices below the old watermark replace rows, after a rewind.

    The table has no rows for the others.
    """
    return tuple(replace(slice_, replaces=_begins_below(slice_, until)) for slice_ in slices)


def _begins_below(slice_: ColumnSlice, until: ColumnState) -> bool:
    return any(
        range_.lower is None
        or (
            (bound := until.bounds.get(range_.column)) is not None
            and compare_values(range_.lower, bound.value) <= 0
        )
        for range_ in slice_.ranges
    )
