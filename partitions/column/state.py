"""The state of a column watermark: the highest value read of each column.

See docs/explanation/watermarks.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Self

from partitions.errors import CorruptWatermark
from partitions.sentinels import Watermark, value_text
from partitions.watermark import compare_values, is_empty
from partitions.watermark_state import WatermarkState

EXCLUSIVE = "__exclusive__"
"""The key of the state that lists columns with an exclusive value: the next run starts at that value."""


@dataclass(frozen=True)
class ReadBound:
    """How far a column is read.

    Attributes:
        value: the value up to which it is read, of the column's type.
        inclusive: whether rows at the value itself are read.
    """

    value: Any
    inclusive: bool = True

    def covers(self, lower: ReadBound) -> bool:
        """Return whether this bound is at or above another one.

        Raises:
            ConfigurationError: the values have no common order.
        """
        order = compare_values(self.value, lower.value)
        return order > 0 or (order == 0 and (self.inclusive or not lower.inclusive))


@dataclass(frozen=True)
class ColumnState(WatermarkState):
    """How far all columns are read.

    Attributes:
        bounds: the bound of each column; a column without a value has none.
    """

    bounds: Mapping[str, ReadBound] = field(default_factory=dict)

    @classmethod
    def of(cls, watermark: Mapping[str, Any] | None) -> Self:
        """Parse a watermark.

        Raises:
            CorruptWatermark: it has another form.
        """
        values = dict(watermark or {})
        exclusive = values.pop(EXCLUSIVE, [])
        if not isinstance(exclusive, list) or not all(name in values for name in exclusive):
            raise CorruptWatermark(
                f"watermark: expected names of its columns in {EXCLUSIVE}, found {value_text(exclusive)}"
            )
        for name, value in values.items():
            if value is not None and not can_be_watermark_value(value):
                raise CorruptWatermark(
                    f"watermark: expected a time, a number or text as the value of column {name}, found {value_text(value)}"
                )
        return cls(
            {
                name: ReadBound(value, name not in exclusive)
                for name, value in values.items()
                if value is not None
            }
        )

    @staticmethod
    def holds_nothing(watermark: Mapping[str, Any], /) -> bool:
        """Return whether no column has a value."""
        return is_empty({name: value for name, value in watermark.items() if name != EXCLUSIVE})

    def watermark(self) -> Watermark:
        """Return the state as it is stored."""
        exclusive = [name for name, bound in self.bounds.items() if not bound.inclusive]
        values = {name: bound.value for name, bound in self.bounds.items()}
        return values | ({EXCLUSIVE: exclusive} if exclusive else {})

    def covers(self, older: ColumnState) -> bool:
        """Return whether no column falls from an older state to this one.

        Raises:
            ConfigurationError: values of a column have no common order.
        """
        return all(
            name in self.bounds and self.bounds[name].covers(bound) for name, bound in older.bounds.items()
        )

    def raise_to(self, bounds: Mapping[str, ReadBound]) -> ColumnState:
        """Return the state after a read up to these bounds: each column keeps its highest value and its type.

        See docs/reference/replay.md.
        """
        higher = {
            name: bound
            if name not in self.bounds
            else replace(bound, value=_like(bound.value, self.bounds[name].value))
            for name, bound in bounds.items()
            if name not in self.bounds or bound.covers(self.bounds[name])
        }
        return ColumnState({**self.bounds, **higher})

    def cap_at(self, bounds: ColumnState) -> ColumnState:
        """Return the state lowered to ``bounds`` where it is above them.

        A row that is new by one column says nothing about another column above its bound.
        """
        return ColumnState(
            {
                name: bounds.bounds[name] if bound.covers(bounds.bounds[name]) else bound
                for name, bound in self.bounds.items()
                if name in bounds.bounds
            }
        )

    def for_columns(self, columns: Collection[str]) -> ColumnState:
        """Return the state of these columns alone."""
        return ColumnState({name: bound for name, bound in self.bounds.items() if name in columns})


def _like(value: Any, earlier_value: Any) -> Any:
    """Return an integer in the column's earlier type, decimal or float.

    A bound of a replay is written without a decimal point.
    """
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not isinstance(earlier_value, Decimal | float):
        return value
    typed = type(earlier_value)(value)
    return typed if typed == value else value  # a float does not hold every integer


def can_be_watermark_value(value: Any) -> bool:
    """Return whether a watermark column can have a value: a time, a number or text.

    Flags, lists and objects cannot.
    """
    return isinstance(value, str | int | float | Decimal | date | datetime | time) and not isinstance(
        value, bool
    )


def next_state(stored: Watermark, highest: Mapping[str, Any]) -> Watermark | None:
    """Return the watermark after a write with these highest values; None if no row was written.

    Args:
        stored: the watermark before.
        highest: the highest value of each column; a column without values is missing, or None.

    Raises:
        ConfigurationError: values of a column have no common order.
    """
    bounds = {name: ReadBound(value) for name, value in highest.items() if value is not None}
    return ColumnState.of(stored).raise_to(bounds).watermark() if bounds else None
