"""Expressions over the rows of one side, in its SQL: range, bucket, hashes and key of a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.predicate import Between, Predicate
from partitions.reconcile.cells import CellName
from partitions.reconcile.differences import RowSum
from partitions.reconcile.families import family_of, read_canonical
from partitions.reconcile.ranges import ABOVE, OUTSIDE, Ranges
from partitions.sources.database_types import ColumnType
from resources.dialects.dialect import SqlSyntax
from resources.dialects.predicates import predicate_sql
from resources.reconcile.canonical.canonical_sql import CanonicalSql, is_ascii

if TYPE_CHECKING:
    import pyarrow as pa

BUCKET, RANGE, CHECKSUM, ROWS = "bucket", "range_number", "checksum", "row_count"
KEY_HASH, ROW_HASH, CELL = "key_hash", "row_hash", "cell"
"""Names of columns in a side's queries."""

NamedColumn = tuple[str, ColumnType]
"""A column of a side, with its type there."""


@dataclass(frozen=True)
class HashedColumns:
    """The columns of one side that a comparison reads.

    Attributes:
        ranges: the ranges, and the rows that take part.
        keys: merge keys; empty: rows have no key.
        compared: columns whose values are compared; empty: only rows are counted.
        position: first watermark column.
    """

    ranges: Ranges
    keys: Sequence[NamedColumn]
    compared: Sequence[NamedColumn]
    position: NamedColumn

    @property
    def identifying(self) -> Sequence[NamedColumn]:
        """Columns whose hash names a row's bucket."""
        return self.keys or self.compared

    @property
    def named(self) -> Sequence[NamedColumn]:
        """Columns whose values a differing row tells: its position, then its key."""
        return (self.position, *self.keys)

    @property
    def rows_to_fetch(self) -> Predicate:
        """Rows among which differing ones are sought: a key may have moved to another range."""
        return self.ranges.also if self.keys else self.ranges.rows

    @property
    def names_of_rows(self) -> Sequence[str]:
        """Names of the columns of :meth:`Expressions.of_rows`."""
        return (KEY_HASH, RANGE, ROW_HASH, *(f"named_{place}" for place in range(len(self.named))))

    def row_sums(self, rows: pa.Table) -> Iterator[RowSum]:
        """Yield rows with these columns, with canonical texts, which :meth:`read` reads."""
        columns = [rows[name].to_pylist() for name in self.names_of_rows]
        for key_hash, number, row_hash, position, *key in zip(*columns, strict=True):
            yield RowSum(key_hash, int(number), row_hash, position, key)

    def read(self, row: RowSum) -> RowSum:
        """Return a row of :meth:`row_sums` with values in place of texts."""
        texts = (row.position, *row.key)
        values = [
            read_canonical(text, family)
            for text, (_, type_) in zip(texts, self.named, strict=True)
            if (family := family_of(type_)) is not None
        ]
        return row._replace(position=values[0], key=tuple(values[1:]))


@dataclass(frozen=True)
class Expressions:
    """The SQL of one side.

    Attributes:
        syntax: names, literals and conditions of its dialect.
        texts: canonical texts of its dialect.
        columns: columns that the comparison reads.
    """

    syntax: SqlSyntax
    texts: CanonicalSql
    columns: HashedColumns

    def of_cells(self, digits: int) -> Sequence[tuple[str, str]]:
        """Return expressions with their names: bucket, range, and checksum if values are compared.

        Args:
            digits: digits of the hash that name a bucket; 0: all rows of a range are one cell.
        """
        named = [(self._bucket(digits), BUCKET), (self.number_in_range(), RANGE)]
        if self.columns.compared:
            named.append((self.texts.checksum(self._hash(self.columns.compared)), CHECKSUM))
        return named

    def of_rows(self) -> Sequence[tuple[str, str]]:
        """Return expressions with their names: both hashes, the range, the position, and the key."""
        expressions = [
            self._hash(self.columns.identifying),
            self._number(),
            self._hash(self.columns.compared),
            *(self.texts.value_text(self.syntax.name(name), type_) for name, type_ in self.columns.named),
        ]
        return list(zip(expressions, self.columns.names_of_rows, strict=True))

    def number_in_range(self) -> str:
        """Return the number of the range of a row that lies in one."""
        ranges = self.columns.ranges
        number = self._number_between(0, ranges.edges)
        if ranges.units:
            cases = " ".join(
                f"WHEN {self.condition(rows)} THEN {place}"
                for place, (_, rows) in enumerate(ranges.units[:-1])
            )
            unit = f"CASE {cases} ELSE {len(ranges.units) - 1} END" if cases else "0"
            return f"({number}) * {len(ranges.units)} + {unit}"
        if not ranges.with_nulls:
            return number
        return f"CASE WHEN {self._name} IS NULL THEN {len(ranges.all) - 1} ELSE {number} END"

    def cell_name(self, hash_: str, digits: int) -> str:
        """Return the name of a row's cell as a text, as :func:`cell_text` writes it.

        Args:
            hash_: expression of the hash, or of its first digits.
            digits: digits of the hash in the name.
        """
        return self.texts.joined([f"left({hash_}, {digits})", "':'", self.syntax.name(RANGE)])

    def condition(self, rows: Predicate) -> str:
        """Return the condition of a predicate's rows."""
        return predicate_sql(rows, self.syntax)

    @property
    def _name(self) -> str:
        return self.syntax.name(self.columns.ranges.column)

    def _number(self) -> str:
        """Return the number of any row's range, or what it is instead."""
        ranges = self.columns.ranges
        return (
            f"CASE WHEN NOT ({self.condition(ranges.reached)}) THEN {ABOVE}"
            f" WHEN {self.condition(ranges.within)} THEN {self.number_in_range()} ELSE {OUTSIDE} END"
        )

    def _number_between(self, first: int, edges: Sequence[Any]) -> str:
        """Return the number of a value's range by halving: a comparison less for each half of the edges."""
        if not edges:
            return str(first)
        middle = len(edges) // 2
        below = self.condition(Between(self.columns.ranges.column, None, edges[middle]))
        lower = self._number_between(first, edges[:middle])
        upper = self._number_between(first + middle + 1, edges[middle + 1 :])
        return f"CASE WHEN {below} THEN {lower} ELSE {upper} END"

    def _bucket(self, digits: int) -> str:
        return f"left({self._hash(self.columns.identifying)}, {digits})" if digits else "''"

    def _hash(self, columns: Sequence[NamedColumn]) -> str:
        named = [(self.syntax.name(name), type_) for name, type_ in columns]
        return self.texts.hashed(self.texts.row_text(named), is_ascii=is_ascii(named))


def cell_text(cell: CellName) -> str:
    """Return the name of a cell, as queries write it."""
    return f"{cell.bucket}:{cell.range}"
