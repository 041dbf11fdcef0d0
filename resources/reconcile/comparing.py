"""Compare two sides in at most three passes over each.

The first pass sums ranges and buckets. If the differing cells hold many rows, a second one divides them.
The last one asks for the rows of differing cells, as hashes with keys, and nothing else crosses the network
(docs/explanation/adr/0047).
"""

from __future__ import annotations

from dataclasses import dataclass

from partitions.reconcile.cells import Difference, difference_of, digits_for, with_rows_elsewhere
from partitions.reconcile.differences import Differences, find_differences
from partitions.reconcile.result import RangeResult, result_of
from resources.background import in_background
from resources.reconcile.differing import differing_rows
from resources.reconcile.expressions import HashedColumns
from resources.reconcile.side import CellsOf, ComparedSide


@dataclass(frozen=True)
class Compared:
    """What two sides show.

    Attributes:
        ranges: each range with its counts.
        differences: differing rows; None: only counts were compared.
    """

    ranges: list[RangeResult]
    differences: Differences | None


@dataclass(frozen=True)
class SidePair:
    """Both sides, with the columns that are compared of each.

    Attributes:
        source: the source.
        table: the table.
        source_columns: columns of the source.
        table_columns: columns of the table.
        keeps_several: whether the table keeps all rows that one read had of a key.
    """

    source: ComparedSide
    table: ComparedSide
    source_columns: HashedColumns
    table_columns: HashedColumns
    keeps_several: bool = False

    def compare(self, limit: int) -> Compared:
        """Return the counts of all ranges, and the rows that differ.

        Args:
            limit: most keys of each sort to keep.
        """
        ranges = self.source_columns.ranges.all
        if not self.source_columns.compared:
            counts = self._difference(0, None).counts
            return Compared(list(result_of(ranges, counts, None)), None)
        digits = digits_for(len(ranges))
        difference = self._difference(digits, None)
        counts = difference.counts
        if difference.needs_division:
            within = CellsOf(digits, difference.cells)
            digits += 1
            difference = self._difference(digits, within)
        differences = self._differences(CellsOf(digits, difference.cells), limit)
        return Compared(list(result_of(ranges, counts, differences)), differences)

    def _difference(self, digits: int, within: CellsOf | None) -> Difference:
        """Ask both sides for sums at the same time."""
        in_table = in_background(
            lambda: self.table.cells(self.table_columns, digits, within), "strandline-reconcile"
        )
        of_source = self.source.cells(self.source_columns, digits, within)
        return difference_of(of_source, in_table.result())

    def _differences(self, cells: CellsOf, limit: int) -> Differences:
        keys = [name for name, _ in self.table_columns.keys]
        if not cells.cells:
            return Differences(limit, keys)
        within = CellsOf(cells.digits, with_rows_elsewhere(cells.cells) if keys else cells.cells)
        parts = differing_rows(
            self.source.rows(self.source_columns, within), self.table.rows(self.table_columns, within)
        )
        return find_differences(
            (
                (self.source_columns.row_sums(source), self.table_columns.row_sums(table))
                for source, table in parts
            ),
            limit,
            keys,
            keeps_several=self.keeps_several,
            readers=(self.source_columns.read, self.table_columns.read),
        )
