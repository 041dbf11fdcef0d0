"""Sums by range and bucket, and where two sides differ."""

from __future__ import annotations

from partitions.reconcile.cells import (
    FETCHED_ROWS,
    MAX_CELLS,
    Cell,
    CellName,
    difference_of,
    digits_for,
    with_rows_elsewhere,
)


def test_a_first_pass_asks_for_as_many_sums_as_fit() -> None:
    assert [digits_for(ranges) for ranges in (1, 2, 16, 120, 4_096)] == [4, 4, 3, 2, 1]
    assert all(ranges * 16 ** digits_for(ranges) <= MAX_CELLS for ranges in (1, 2, 16, 120, 4_096))


def test_equal_sums_differ_in_no_cell() -> None:
    cells = [Cell("a", 0, 3, 17), Cell("b", 0, 2, 5)]
    difference = difference_of(cells, cells)
    assert (difference.counts, difference.cells, difference.rows) == ({0: (5, 5)}, [], 0)


def test_cells_differ_by_count_by_checksum_and_if_one_side_lacks_them() -> None:
    source = [Cell("a", 0, 3, 17), Cell("a", 1, 1, 4), Cell("b", 0, 2, 5), Cell("c", 0, 1, 9)]
    table = [Cell("a", 0, 2, 17), Cell("a", 1, 1, 4), Cell("b", 0, 2, 6), Cell("d", 0, 4, 1)]
    difference = difference_of(source, table)
    assert difference.cells == [CellName(*name) for name in (("a", 0), ("b", 0), ("c", 0), ("d", 0))]
    assert difference.counts == {0: (6, 8), 1: (1, 1)}
    assert difference.rows == 3 + 2 + 1 + 4
    assert not difference.needs_division


def test_cells_with_many_rows_are_divided_first() -> None:
    difference = difference_of([Cell("a", 0, FETCHED_ROWS + 1, 1)], [])
    assert difference.needs_division


def test_rows_of_a_bucket_are_sought_above_and_outside_too() -> None:
    cells = with_rows_elsewhere([CellName("a", 3), CellName("a", 5), CellName("b", 0)])
    assert cells == (
        *(CellName("a", 3), CellName("a", 5), CellName("b", 0)),
        *(CellName("a", -1), CellName("a", -2), CellName("b", -1), CellName("b", -2)),
    )
