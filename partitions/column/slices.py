"""Slices of the column kind: the rows between two bounds of each column, one commit, and the state after it (docs/reference/columns.md)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from partitions.column.definition import ColumnWatermark
from partitions.column.predicates import Range, rows_in, shown
from partitions.column.state import ColumnState, Mark
from partitions.errors import BadPart
from partitions.plan import Size, Skip
from partitions.predicate import AllOf, Among, AnyOf, HasValue, Predicate, any_of
from partitions.sentinels import Watermark, serialise
from partitions.watermark import compare_values


@dataclass(frozen=True)
class ColumnSlice:
    """The rows between bounds, one commit.

    Attributes:
        before: the state below it.
        ranges: by column, in the definition's order.
        reads_nulls: whether rows with NULL in every column are read, too.
        replaces: whether rows in the ranges that are in the table already make room, after a rewind.
        version: of the source; None if it has none.
        why: what is above the state, or a chunk that is read again.
        saves: whether the state after it is its bounds; else it stays.
        source: what tells the source from others of its name; None: nothing does.
        cuts: values within the range of the only column, ascending: each ends a part that may be read by a connection of its own.
    """

    before: Watermark
    ranges: tuple[Range, ...]
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
        """The rows that it reads, but those with NULL in every column."""
        if any(range_.is_bounded for range_ in self.ranges):
            return rows_in(self.ranges)
        return any_of(HasValue(range_.column) for range_ in self.ranges)

    @property
    def rows_to_fetch(self) -> Predicate:
        """The rows that it may read, before anything tells how far a column without a bound goes."""
        open_ = [HasValue(range_.column) for range_ in self.ranges if not range_.is_bounded]
        return any_of(dict.fromkeys((*_parts(self.rows), *open_)))

    @property
    def lower(self) -> Watermark | None:
        """The lower bounds, after look-back. None on a first run."""
        values = {range_.column: range_.lower for range_ in self.ranges if range_.lower is not None}
        return values or None

    @property
    def effective(self) -> Watermark:
        """The lower bounds that it reads from; nothing on a first run."""
        return self.lower or {}

    @property
    def upper(self) -> Watermark:
        """The upper bounds, as the state would have them."""
        return self._after(ColumnState())

    @property
    def repeats(self) -> bool:
        """Whether it only reads again what a run has read: nothing of it lies above the state that it goes on from."""
        before = ColumnState.of(self.before)
        return self.why == "run" and all(
            range_.upper is not None
            and (mark := before.marks.get(range_.column)) is not None
            and mark.covers(Mark(range_.upper, range_.upper_inclusive))
            for range_ in self.ranges
        )

    @property
    def size(self) -> Size:
        """One range of rows; how many is unknown before the read."""
        return Size(ranges=1)

    @property
    def keys(self) -> Collection[str]:
        """What tells it from other slices."""
        return [serialise(self.upper)]

    @property
    def failures(self) -> Mapping[str, str]:
        """None: a range is read whole, or not at all."""
        return {}

    def contains(self, _bad: BadPart) -> bool:
        """No: rows are not told apart by a part of the source."""
        return False

    def up_to(self, bad: BadPart) -> None:
        """None: no part of it comes before a bad one."""

    def advance(self, before: Watermark) -> Watermark:
        """The state after it: each column at its upper bound, and never lower than it was; or as it was."""
        return self._after(ColumnState.of(before)) if self.saves else ColumnState.of(before).watermark()

    def _after(self, before: ColumnState) -> Watermark:
        marks = {
            range_.column: Mark(range_.upper, range_.upper_inclusive)
            for range_ in self.ranges
            if range_.upper is not None
        }
        return before.raised(marks).watermark()

    def describe(self) -> list[dict[str, Any]]:
        """The predicate, and the bounds as sentinel JSON."""
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
        """Only itself: what lies between its bounds is the source's to know."""
        return (self,)


def _parts(predicate: Predicate) -> tuple[Predicate, ...]:
    return predicate.parts if isinstance(predicate, AnyOf) else (predicate,)


def cut_at(
    whole: ColumnSlice, cuts: Sequence[Any], parts: int, *, inclusive: bool
) -> tuple[ColumnSlice, ...]:
    """Cut a slice of one column at values, each of which is read by the slice that ends with it, or by the next if it is not inclusive."""
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


def slices_of_run(
    definition: ColumnWatermark, slices: Sequence[ColumnSlice]
) -> tuple[tuple[ColumnSlice, ...], tuple[Skip, ...]]:
    """Return the slices of one run, and what waits for the next: ``max_slices`` above the watermark, and all that a look-back reads again."""
    repeated = sum(slice_.repeats for slice_ in slices)  # these come first
    due = tuple(slices[: repeated + definition.max_slices])
    if len(due) == len(slices):
        return due, ()
    (range_,) = due[-1].ranges
    why = f"rows above {shown(range_.upper)} wait for the next run (max_slices: {definition.max_slices})"
    return due, (Skip(range_.column, why),)


def replacing_below(slices: Sequence[ColumnSlice], until: ColumnState) -> tuple[ColumnSlice, ...]:
    """Of slices after a rewind only those below the old watermark meet rows of the table."""
    return tuple(replace(slice_, replaces=_begins_below(slice_, until)) for slice_ in slices)


def _begins_below(slice_: ColumnSlice, until: ColumnState) -> bool:
    return any(
        range_.lower is None
        or (
            (mark := until.marks.get(range_.column)) is not None
            and compare_values(range_.lower, mark.value) <= 0
        )
        for range_ in slice_.ranges
    )
