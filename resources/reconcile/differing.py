"""Find the keys that differ among rows in Arrow, sorted by the key's hash: most rows are equal.

A Python object is made only of the rows of such keys, so a million equal rows take about a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from resources.reconcile.expressions import KEY_HASH, RANGE, ROW_HASH

if TYPE_CHECKING:
    import pyarrow as pa


def differing_rows(
    source: Iterator[pa.Table], table: Iterator[pa.Table]
) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield the rows of keys that are not one equal row on both sides, in parts with the same keys.

    Args:
        source: rows of the source as a side yields them.
        table: rows of the table.
    """
    for source_rows, table_rows in _parts(_SortedRows(source), _SortedRows(table)):
        keys = _differing_keys(source_rows, table_rows)
        if len(keys):
            yield _of_keys(source_rows, keys), _of_keys(table_rows, keys)


class _SortedRows:
    """The rows of one side that are read and not taken yet.

    Attributes:
        rows: the rows.
        has_more: whether the side may yield more of them.
    """

    def __init__(self, tables: Iterator[pa.Table]) -> None:
        self._tables = tables
        self.rows: pa.Table | None = None
        self.has_more = True

    def read_on(self) -> None:
        """Read the next table that has rows."""
        import pyarrow as pa

        table = next((table for table in self._tables if table.num_rows), None)
        if table is None:
            self.has_more = False
        else:
            self.rows = table if self.rows is None else pa.concat_tables([self.rows, table])

    @property
    def last(self) -> str | None:
        """The last hash that was read."""
        return str(self.rows[KEY_HASH][-1]) if self.rows is not None and self.rows.num_rows else None

    def take_below(self, bound: str | None) -> pa.Table | None:
        """Take the rows whose hash is lower than a bound; None: all rows."""
        import pyarrow.compute as pc

        if self.rows is None:
            return None
        below = self.rows
        if bound is not None:
            below = self.rows.slice(0, pc.sum(pc.less(self.rows[KEY_HASH], bound)).as_py() or 0)
        self.rows = self.rows.slice(below.num_rows)
        return below


def _parts(source: _SortedRows, table: _SortedRows) -> Iterator[tuple[pa.Table, pa.Table]]:
    """Yield rows of both sides so that all rows of a key are in one part."""
    sides = (source, table)
    while any(side.has_more for side in sides):
        for side in sides:
            if side.has_more and side.last is None:
                side.read_on()
        ends = [side.last for side in sides if side.has_more and side.last is not None]
        bound = min(ends, default=None)
        yield from _part(source.take_below(bound), table.take_below(bound))
        for side in sides:
            if side.has_more and side.last == bound:
                side.read_on()  # its last key may have more rows
    yield from _part(source.take_below(None), table.take_below(None))


def _part(source: pa.Table | None, table: pa.Table | None) -> Iterator[tuple[pa.Table, pa.Table]]:
    some = source if source is not None else table
    if some is not None:
        none = some.slice(0, 0)
        yield (none if source is None else source), (none if table is None else table)


def _differing_keys(source: pa.Table, table: pa.Table) -> pa.Array:
    """Return the hashes of keys with a row that the other side lacks, or with several rows on a side."""
    import pyarrow as pa
    import pyarrow.compute as pc

    texts = [
        pc.binary_join_element_wise(rows[KEY_HASH], rows[RANGE].cast("string"), rows[ROW_HASH], ":")
        for rows in (source, table)
    ]
    keys = list[pa.ChunkedArray]()
    for rows, own, others in ((source, *texts), (table, *reversed(texts))):
        keys.append(rows[KEY_HASH].filter(pc.invert(pc.is_in(own, value_set=others))))
        later = rows[KEY_HASH].slice(1)
        keys.append(later.filter(pc.equal(later, rows[KEY_HASH].slice(0, len(later)))))
    return pa.chunked_array([chunk for column in keys for chunk in column.chunks], "string").unique()


def _of_keys(rows: pa.Table, keys: pa.Array) -> pa.Table:
    import pyarrow.compute as pc

    return rows.filter(pc.is_in(rows[KEY_HASH], value_set=keys))
