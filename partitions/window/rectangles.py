"""Cover cells of a grid with few rectangles, since one Dagster run loads one rectangle of partitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from typing import Any, NamedTuple

from partitions.intervals import consecutive

Cell = tuple[int, int]
"""A row and a column."""


class Axis(NamedTuple):
    """One dimension as whole numbers.

    Attributes:
        index_of: returns the index of a start or a unit; None if it has no key yet.
        key: returns the key at an index.
    """

    index_of: Callable[[Any], int | None]
    key: Callable[[int], str | None]

    @classmethod
    def of(cls, keys: Sequence[str], key: Callable[[Any], str]) -> Axis:
        """Return the axis of keys in their order."""
        indexes: Mapping[str, int] = {name: index for index, name in enumerate(keys)}
        # Each window is looked up once for each unit, and each unit once for each window.
        return cls(cache(lambda value: indexes.get(key(value))), lambda index: keys[index])


NO_DIMENSION = Axis(lambda value: 0, lambda index: None)
"""The axis of a dimension that does not exist."""


class Rectangle(NamedTuple):
    """Adjacent rows x adjacent columns; all four bounds are inclusive."""

    first_row: int
    last_row: int
    first_column: int
    last_column: int

    def cells(self) -> Iterator[Cell]:
        """Yield its cells."""
        for row in range(self.first_row, self.last_row + 1):
            for column in range(self.first_column, self.last_column + 1):
                yield row, column


def cover_cells(cells: Iterable[Cell]) -> list[Rectangle]:
    """Cover exactly these cells, each once; the rectangles are sorted by row.

    The result is small but not always minimal, since finding the minimum costs too much. Equal runs of
    cells in adjacent rows are joined; the same is tried with columns, and the smaller result counts.
    """
    distinct_cells = set(cells)
    by_row = list(_join_runs(distinct_cells))
    by_column = [
        Rectangle(*corners[2:], *corners[:2])
        for corners in _join_runs({(column, row) for row, column in distinct_cells})
    ]
    return sorted(by_row if len(by_row) <= len(by_column) else by_column)


def cut_rectangle(whole: Rectangle, max_cells: int) -> Iterator[Rectangle]:
    """Cut a rectangle into parts of at most ``max_cells`` cells, and into whole rows if one fits."""
    wide = min(max_cells, whole.last_column - whole.first_column + 1)
    for row in range(whole.first_row, whole.last_row + 1, high := max(1, max_cells // wide)):
        for column in range(whole.first_column, whole.last_column + 1, wide):
            last = min(row + high - 1, whole.last_row), min(column + wide - 1, whole.last_column)
            yield Rectangle(row, last[0], column, last[1])


def _join_runs(cells: Iterable[Cell]) -> Iterator[Rectangle]:
    """Yield runs of columns, joined over consecutive rows that have the same run."""
    open_runs: dict[tuple[int, int], Rectangle] = {}
    for row, same in groupby(sorted(cells), lambda cell: cell[0]):
        runs = [(first, after - 1) for first, after in consecutive(column for _, column in same)]
        went_on = {
            run: open_runs.pop(run)._replace(last_row=row)
            for run in runs
            if run in open_runs and open_runs[run].last_row == row - 1
        }
        yield from open_runs.values()
        open_runs = {run: went_on.get(run, Rectangle(row, row, *run)) for run in runs}
    yield from open_runs.values()


Corner = tuple[str | None, str | None]
"""The keys of a row and a column; None for a dimension that does not exist."""


def rectangle_cover(
    cells: Iterable[tuple[Any, Any]], rows: Axis, columns: Axis, max_cells: int
) -> Iterator[tuple[Corner, Corner, int]]:
    """Yield corners of rectangles that cover exactly these cells: first, last, and number of cells.

    Members that share an index are counted each.

    Args:
        cells: cells without an index are left out.
        rows: the axis of the first members.
        columns: the axis of the second members.
        max_cells: the most cells of one rectangle.
    """
    indexes = ((rows.index_of(row), columns.index_of(column)) for row, column in cells)
    counts = Counter((row, column) for row, column in indexes if row is not None and column is not None)
    whole = cover_cells(counts)
    for rectangle in (part for large in whole for part in cut_rectangle(large, max_cells)):
        yield (
            (rows.key(rectangle.first_row), columns.key(rectangle.first_column)),
            (rows.key(rectangle.last_row), columns.key(rectangle.last_column)),
            sum(counts[cell] for cell in rectangle.cells()),
        )
