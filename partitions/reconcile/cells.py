"""Sums of both sides by range and bucket, and where they differ.

A bucket holds the rows whose key's hash begins with the same hexadecimal digits. A cell is one bucket of
one range.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, TypeVar

from partitions.reconcile.ranges import ABOVE, OUTSIDE

MAX_CELLS = 131_072
"""Most sums that one pass over a side asks for, unless differences fill most of them."""

FETCHED_ROWS = 500_000
"""Rows in differing cells above which a further pass divides the cells, before rows are asked for."""

_BASE = 16


class Cell(NamedTuple):
    """The sum of a side's rows in one bucket of one range.

    Attributes:
        bucket: first digits of the key's hash, hexadecimal in small letters; "" for all rows.
        range: number of the range.
        rows: number of rows.
        checksum: sum of the rows' checksums.
    """

    bucket: str
    range: int
    rows: int
    checksum: int = 0


class CellName(NamedTuple):
    """The place of a cell."""

    bucket: str
    range: int


@dataclass(frozen=True)
class Difference:
    """What a comparison of sums shows.

    Attributes:
        counts: rows of source and table by number of the range.
        cells: cells whose sums differ.
        rows: rows that the side with more of them has in these cells.
    """

    counts: Mapping[int, tuple[int, int]]
    cells: Sequence[CellName]
    rows: int

    @property
    def needs_division(self) -> bool:
        """Whether the cells hold so many rows that a pass which divides them pays."""
        return self.rows > FETCHED_ROWS


def digits_for(ranges: int) -> int:
    """Return how many digits of a hash name a bucket in the first pass."""
    digits = 1
    while ranges * _BASE ** (digits + 1) <= MAX_CELLS:
        digits += 1
    return digits


def difference_of(source: Iterable[Cell], table: Iterable[Cell]) -> Difference:
    """Compare the sums of both sides, each sorted by bucket, then by range."""
    counts: dict[int, tuple[int, int]] = defaultdict(lambda: (0, 0))
    differing, rows = list[CellName](), 0
    for name, at_source, in_table in pair(source, table, lambda cell: CellName(cell.bucket, cell.range)):
        of_source, of_table = (sum(cell.rows for cell in cells) for cells in (at_source, in_table))
        before = counts[name.range]
        counts[name.range] = (before[0] + of_source, before[1] + of_table)
        sums = [sum(cell.checksum for cell in cells) for cells in (at_source, in_table)]
        if of_source != of_table or sums[0] != sums[1]:
            differing.append(name)
            rows += max(of_source, of_table)
    return Difference(dict(counts), differing, rows)


def with_rows_elsewhere(cells: Iterable[CellName]) -> Sequence[CellName]:
    """Return cells, and the rows of their buckets that are in no range: a key may have moved there."""
    named = dict.fromkeys(cells)
    buckets = dict.fromkeys(cell.bucket for cell in named)
    return (*named, *(CellName(bucket, number) for bucket in buckets for number in (ABOVE, OUTSIDE)))


_Row = TypeVar("_Row")
_Name = TypeVar("_Name", bound="CellName | str")


def pair(
    source: Iterable[_Row], table: Iterable[_Row], name_of: Callable[[_Row], _Name]
) -> Iterator[tuple[_Name, list[_Row], list[_Row]]]:
    """Yield each name with its rows on both sides, which are sorted by name."""
    sides = [groupby(side, key=name_of) for side in (source, table)]
    heads = [next(side, None) for side in sides]
    while names := [head[0] for head in heads if head is not None]:
        lowest = min(names)
        rows: list[list[_Row]] = []
        for number, head in enumerate(heads):
            is_next = head is not None and head[0] == lowest
            rows.append(list(head[1]) if head is not None and is_next else [])
            heads[number] = next(sides[number], None) if is_next else head
        yield lowest, rows[0], rows[1]
