"""Rectangles cover exactly the cells that they are made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partitions.window.rectangles import Rectangle, cover_cells, cut_rectangle

_cells = st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)))


def inside(one: Rectangle) -> list[tuple[int, int]]:
    return [
        (row, column)
        for row in range(one.first_row, one.last_row + 1)
        for column in range(one.first_column, one.last_column + 1)
    ]


@given(_cells)
def test_each_cell_lies_in_exactly_one_rectangle_and_nothing_else_does(cells: set[tuple[int, int]]) -> None:
    covered = [cell for one in cover_cells(cells) for cell in inside(one)]
    assert sorted(covered) == sorted(cells)


@given(_cells)
def test_cells_count_alike_in_any_order_by_rows_and_columns(cells: set[tuple[int, int]]) -> None:
    assert cover_cells(sorted(cells, reverse=True)) == cover_cells(cells)
    turned = cover_cells({(column, row) for row, column in cells})
    assert len(turned) == len(cover_cells(cells))


@given(st.integers(0, 5), st.integers(0, 5), st.integers(1, 6), st.integers(1, 6))
def test_a_whole_rectangle_is_one(row: int, column: int, rows: int, columns: int) -> None:
    whole = Rectangle(row, row + rows - 1, column, column + columns - 1)
    assert cover_cells(inside(whole)) == [whole]


def test_one_hole_in_a_row_costs_two_more_and_a_hole_in_a_corner_one() -> None:
    whole = set(inside(Rectangle(0, 3, 0, 3)))
    assert len(cover_cells(whole - {(2, 1)})) == 4
    assert cover_cells(whole - {(3, 3)}) == [Rectangle(0, 2, 0, 3), Rectangle(3, 3, 0, 2)]


@given(st.integers(0, 9), st.integers(1, 9), st.integers(0, 9), st.integers(1, 9), st.integers(1, 100))
def test_parts_are_the_whole_rectangle(row: int, rows: int, column: int, columns: int, most: int) -> None:
    whole = Rectangle(row, row + rows - 1, column, column + columns - 1)
    parts = [inside(part) for part in cut_rectangle(whole, most)]
    assert sorted(cell for part in parts for cell in part) == inside(whole)
    assert all(0 < len(part) <= most for part in parts)


def test_a_rectangle_is_cut_between_rows_and_a_row_only_where_it_is_too_long() -> None:
    assert list(cut_rectangle(Rectangle(0, 4, 0, 2), 7)) == [
        Rectangle(0, 1, 0, 2),
        Rectangle(2, 3, 0, 2),
        Rectangle(4, 4, 0, 2),
    ]
    assert list(cut_rectangle(Rectangle(0, 1, 0, 2), 2)) == [
        Rectangle(0, 0, 0, 1),
        Rectangle(0, 0, 2, 2),
        Rectangle(1, 1, 0, 1),
        Rectangle(1, 1, 2, 2),
    ]
