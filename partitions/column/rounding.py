"""Bounds of numbers that lose digits when they are loaded: what a slice reads that replaces rows, and what it deletes (docs/source-databases.md, Types).

Many values of the source are one value in the table: a cell. A delete can only mean whole cells, so such a slice begins with the whole cell of its
lower bound. What it would read above its upper bound was never loaded: it is left to the next slice, which begins with that cell.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Any

from partitions.column.predicates import Range
from partitions.column.slices import ColumnSlice
from partitions.unit_values import half_up

DIGITS = 18
"""Behind the point, of a number that Spark keeps of a type without a precision: decimal(38,18). Half a unit is rounded away from zero."""

_HALF = Decimal(1).scaleb(-DIGITS) / 2
_PRECISION = 200


def whole_cells(slice_: ColumnSlice, columns: Collection[str]) -> ColumnSlice:
    """Return what is read: the slice from the first value on that is loaded as its lower bound, and below an exclusive upper bound up to such a value.

    Args:
        slice_: that replaces rows of the table.
        columns: whose values are rounded.
    """
    ranges = tuple(_read(range_) if range_.column in columns else range_ for range_ in slice_.ranges)
    return replace(slice_, ranges=ranges)


def as_loaded(slice_: ColumnSlice, columns: Collection[str]) -> ColumnSlice:
    """Return what is deleted: the slice over values as the table has them.

    Args:
        slice_: that replaces rows of the table.
        columns: whose values are rounded.
    """
    ranges = tuple(_loaded(range_) if range_.column in columns else range_ for range_ in slice_.ranges)
    return replace(slice_, ranges=ranges)


def _read(range_: Range) -> Range:
    if range_.lower is not None:
        bound, inclusive = _first_of(range_.lower)
        range_ = replace(range_, lower=bound, lower_inclusive=inclusive)
    if range_.upper is not None and not range_.upper_inclusive:
        bound, inclusive = _first_of(range_.upper)
        range_ = replace(range_, upper=bound, upper_inclusive=not inclusive)
    return range_


def _loaded(range_: Range) -> Range:
    lower, upper = _rounded(range_.lower), _rounded(range_.upper)
    return replace(range_, lower=lower, upper=upper, lower_inclusive=range_.lower is not None)


def _first_of(bound: Any) -> tuple[Decimal, bool]:
    """The lowest value that is rounded to what a bound is rounded to, and whether it is itself: half a unit goes away from zero."""
    with localcontext(prec=_PRECISION):
        first = _rounded(bound) - _HALF
    return first, first > 0


def _rounded(bound: Any) -> Any:
    return None if bound is None else half_up(Decimal(str(bound)), DIGITS)
