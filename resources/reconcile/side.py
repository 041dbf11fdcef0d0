"""The contract of a side of a comparison: a source, or a table. Its answers are of one moment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from partitions.reconcile.cells import Cell, CellName
from partitions.sources.database_types import ColumnType
from resources.reconcile.expressions import HashedColumns

if TYPE_CHECKING:
    import pyarrow as pa


class CellsOf(NamedTuple):
    """Cells of an earlier pass, in which rows are sought.

    Attributes:
        digits: digits that name their buckets.
        cells: their names.
    """

    digits: int
    cells: Sequence[CellName]


class ComparedSide(Protocol):
    """One side of a comparison.

    Each of :meth:`cells` and :meth:`rows` reads its rows once; values of other columns stay where they are.
    """

    def columns(self) -> Mapping[str, ColumnType | None]:
        """Return the type of each column; None: a nested type."""
        ...

    def lowest(self, column: str) -> Any:
        """Return the lowest value of a column; None: it has no value."""
        ...

    def cells(self, columns: HashedColumns, digits: int, within: CellsOf | None = None) -> Sequence[Cell]:
        """Return the sums of the rows in all ranges, sorted by bucket, then by range.

        Args:
            columns: what is compared.
            digits: digits of a hash that name a bucket; 0: none.
            within: only rows of these cells.
        """
        ...

    def rows(self, columns: HashedColumns, within: CellsOf) -> Iterator[pa.Table]:
        """Yield the rows of some cells as hashes with their keys' texts, sorted by the key's hash.

        Args:
            columns: what is compared.
            within: cells of the rows.
        """
        ...
