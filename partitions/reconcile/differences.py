"""Which rows differ: missing in the table, extra in the table, or different, by their keys' hashes."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from partitions.reconcile.cells import pair
from partitions.reconcile.ranges import ABOVE

Key = Mapping[str, Any]
"""Values of the merge keys, by column."""


class RowSum(NamedTuple):
    """A row of a differing cell, without its values.

    Attributes:
        key_hash: hash of its key, hexadecimal; without keys of all its compared columns.
        range: number of its range, or ``ABOVE`` or ``OUTSIDE``.
        row_hash: hash of what is compared.
        position: its value in the first watermark column; None for NULL. Both are canonical texts until a
        :data:`RowReader` reads them.
        key: its key; empty without keys.
    """

    key_hash: str
    range: int
    row_hash: str
    position: Any = None
    key: Sequence[Any] = ()


RowReader = Callable[[RowSum], RowSum]
"""Returns a row with the values of its position and key in place of their texts."""


def _as_it_is(row: RowSum) -> RowSum:
    return row


@dataclass
class RangeCounts:
    """Differing rows of one range."""

    missing: int = 0
    extra: int = 0
    different: int = 0


@dataclass
class Differences:
    """Differing rows: counts by range, and the first keys of each sort.

    Attributes:
        limit: most keys of each sort that are kept.
        key_columns: merge keys; without them no key is kept.
        ranges: counts by number of the range.
        missing: keys that the table lacks.
        extra: keys that the source lacks, or that the table holds more often.
        different: keys whose rows differ.
    """

    limit: int
    key_columns: Sequence[str] = ()
    ranges: dict[int, RangeCounts] = field(default_factory=lambda: defaultdict(RangeCounts))
    missing: list[Key] = field(default_factory=list)
    extra: list[Key] = field(default_factory=list)
    different: list[Key] = field(default_factory=list)

    def add(self, sort: str, row: RowSum, number: int) -> None:
        """Count a row of a range, and keep its key if few are kept so far."""
        counts, keys = self.ranges[number], getattr(self, sort)
        setattr(counts, sort, getattr(counts, sort) + 1)
        if self.key_columns and len(keys) < self.limit:
            keys.append(dict(zip(self.key_columns, row.key, strict=True)))


def find_differences(
    parts: Iterable[tuple[Iterable[RowSum], Iterable[RowSum]]],
    limit: int,
    key_columns: Sequence[str],
    *,
    keeps_several: bool = False,
    readers: tuple[RowReader, RowReader] = (_as_it_is, _as_it_is),
) -> Differences:
    """Compare the rows of both sides.

    A key with a row above the watermark on either side takes no part: the next run loads it. Of several
    rows of a key at the source the one with the highest position counts, since the table keeps one. Without
    keys, rows are compared as a multiset.

    Args:
        parts: rows of source and table, each sorted by the key's hash; all rows of a key are in one part.
        limit: most keys of each sort to keep.
        key_columns: merge keys; empty: there are none.
        keeps_several: whether the table keeps all rows that one read had of a key.
        readers: read the rows of source and table; most rows are equal, and need not be read.
    """
    result = Differences(limit, tuple(key_columns))
    of_keys = (names for part in parts for names in pair(*part, lambda row: row.key_hash))
    for _, source_rows, table_rows in of_keys:
        if len(source_rows) == len(table_rows) == 1 and _is_equal(source_rows[0], table_rows[0]):
            continue
        if not key_columns:
            _compare_counts(result, source_rows, table_rows)
            continue
        at_source, in_table = list(map(readers[0], source_rows)), list(map(readers[1], table_rows))
        if keeps_several and len(at_source) > 1:
            _compare_rows_of_key(result, at_source, in_table)
        else:
            _compare_key(result, at_source, in_table)
    return result


def _compare_key(result: Differences, at_source: Sequence[RowSum], in_table: Sequence[RowSum]) -> None:
    if any(row.range == ABOVE for row in (*at_source, *in_table)):
        return
    newest = _newest(at_source)
    if not newest:
        _add_all(result, "extra", in_table)
        return
    same = next((row for row in in_table if any(_is_equal(row, other) for other in newest)), None)
    counterpart = same or (in_table[0] if in_table else None)
    if counterpart is None:
        _add_all(result, "missing", newest[:1])
        return
    if same is None:
        row = newest[0]
        number = row.range if row.range >= 0 else counterpart.range
        if number >= 0:
            result.add("different", row, number)
    _add_all(result, "extra", [row for row in in_table if row is not counterpart])


def _compare_rows_of_key(
    result: Differences, at_source: Sequence[RowSum], in_table: Sequence[RowSum]
) -> None:
    """Compare several rows of a key: the table has those of the last read, which no one knows exactly.

    They include the newest ones, each as often as the source has it.
    """
    if any(row.range == ABOVE for row in (*at_source, *in_table)):
        return
    newest = _newest(at_source)
    all_rows, newest_rows, table_rows = (
        Counter((row.row_hash, row.range) for row in rows) for rows in (at_source, newest, in_table)
    )
    if newest_rows <= table_rows <= all_rows:
        return
    if not in_table:
        _add_all(result, "missing", newest)
        return
    place = next((row.range for row in (*newest, *in_table) if row.range >= 0), None)
    if place is not None:
        result.add("different", newest[0], place)


def _newest(rows: Sequence[RowSum]) -> Sequence[RowSum]:
    """Return the rows of a key with the highest position; a row without one is the lowest."""
    if len(rows) < 2:
        return rows
    positions = [row.position for row in rows if row.position is not None]
    highest = max(positions, default=None)
    return [row for row in rows if row.position == highest]


def _is_equal(row: RowSum, other: RowSum) -> bool:
    return row.row_hash == other.row_hash and row.range == other.range


def _compare_counts(result: Differences, at_source: Sequence[RowSum], in_table: Sequence[RowSum]) -> None:
    """Compare rows without a key: the table may hold one more or less often."""
    counts = Counter(row.range for row in at_source)
    counts.subtract(Counter(row.range for row in in_table))
    rows = (*at_source, *in_table)
    for number, surplus in counts.items():
        sort = "missing" if surplus > 0 else "extra"
        _add_all(result, sort, [row for row in rows if row.range == number][: abs(surplus)])


def _add_all(result: Differences, sort: str, rows: Sequence[RowSum]) -> None:
    for row in rows:
        if row.range >= 0:
            result.add(sort, row, row.range)
