"""Rectangles cover exactly the cells that they are made of."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partitions.window.rectangles import Rectangle, rectangles

_cells = st.sets(st.tuples(st.integers(0, 7), st.integers(0, 7)))


def inside(one: Rectangle) -> list[tuple[int, int]]:
    return [
        (row, column)
        for row in range(one.first_row, one.last_row + 1)
        for column in range(one.first_column, one.last_column + 1)
    ]


@given(_cells)
def test_each_cell_lies_in_exactly_one_rectangle_and_nothing_else_does(cells: set[tuple[int, int]]) -> None:
    covered = [cell for one in rectangles(cells) for cell in inside(one)]
    assert sorted(covered) == sorted(cells)


@given(_cells)
def test_the_order_of_cells_does_not_matter_and_rows_and_columns_count_alike(
    cells: set[tuple[int, int]],
) -> None:
    assert rectangles(sorted(cells, reverse=True)) == rectangles(cells)
    turned = rectangles({(column, row) for row, column in cells})
    assert len(turned) == len(rectangles(cells))


@given(st.integers(0, 5), st.integers(0, 5), st.integers(1, 6), st.integers(1, 6))
def test_a_whole_rectangle_is_one(row: int, column: int, rows: int, columns: int) -> None:
    whole = Rectangle(row, row + rows - 1, column, column + columns - 1)
    assert rectangles(inside(whole)) == [whole]


def test_one_hole_in_a_row_costs_two_more_and_a_hole_in_a_corner_one() -> None:
    whole = set(inside(Rectangle(0, 3, 0, 3)))
    assert len(rectangles(whole - {(2, 1)})) == 4
    assert rectangles(whole - {(3, 3)}) == [Rectangle(0, 2, 0, 3), Rectangle(3, 3, 0, 2)]
