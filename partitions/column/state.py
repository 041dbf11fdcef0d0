"""The state of a column watermark: the highest value that was read of each column (docs/explanation/watermarks.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any, Self

from partitions.errors import CorruptWatermark
from partitions.sentinels import Watermark, shown
from partitions.watermark import compare_values, is_empty

EXCLUSIVE = "__exclusive__"
"""The key of the state that lists the columns whose value was not read itself: the next run begins at it."""


@dataclass(frozen=True)
class Mark:
    """How far a column is read.

    Attributes:
        value: of the column's type.
        inclusive: whether rows with the value itself are read.
    """

    value: Any
    inclusive: bool = True

    def covers(self, other: Mark) -> bool:
        """Return whether everything that is read up to the other mark is read up to this.

        Raises:
            ConfigurationError: the values have no common order.
        """
        order = compare_values(self.value, other.value)
        return order > 0 or (order == 0 and (self.inclusive or not other.inclusive))


@dataclass(frozen=True)
class ColumnState:
    """What is read so far.

    Attributes:
        marks: by column; a column without a value has none.
    """

    marks: Mapping[str, Mark] = field(default_factory=dict)

    @classmethod
    def of(cls, watermark: Mapping[str, Any] | None) -> Self:
        """Read a watermark.

        Raises:
            CorruptWatermark: it has another form.
        """
        given = dict(watermark or {})
        exclusive = given.pop(EXCLUSIVE, [])
        if not isinstance(exclusive, list) or not all(name in given for name in exclusive):
            raise CorruptWatermark(
                f"watermark: expected names of its columns in {EXCLUSIVE}, found {shown(exclusive)}"
            )
        for name, value in given.items():
            if value is not None and not is_value(value):
                raise CorruptWatermark(
                    f"watermark: expected a time, a number or text as the value of column {name}, found {shown(value)}"
                )
        return cls(
            {name: Mark(value, name not in exclusive) for name, value in given.items() if value is not None}
        )

    @classmethod
    def holds_nothing(cls, watermark: Mapping[str, Any]) -> bool:
        """Return whether no column has a value."""
        return is_empty({name: value for name, value in watermark.items() if name != EXCLUSIVE})

    def watermark(self) -> Watermark:
        """The state as it is stored."""
        exclusive = [name for name, mark in self.marks.items() if not mark.inclusive]
        values = {name: mark.value for name, mark in self.marks.items()}
        return values | ({EXCLUSIVE: exclusive} if exclusive else {})

    def covers(self, other: ColumnState) -> bool:
        """Return whether no column falls from the other state to this one.

        Raises:
            ConfigurationError: values of a column have no common order.
        """
        return all(name in self.marks and self.marks[name].covers(mark) for name, mark in other.marks.items())

    def raised(self, marks: Mapping[str, Mark]) -> ColumnState:
        """Return the state after rows up to these marks were read: each column keeps its highest, and its type (docs/reference/replay.md)."""
        higher = {
            name: mark
            if name not in self.marks
            else replace(mark, value=_like(mark.value, self.marks[name].value))
            for name, mark in marks.items()
            if name not in self.marks or mark.covers(self.marks[name])
        }
        return ColumnState({**self.marks, **higher})

    def capped(self, bounds: ColumnState) -> ColumnState:
        """Return the state that is nowhere above some bounds: a row that one column makes new tells nothing of others above theirs."""
        return ColumnState(
            {
                name: bounds.marks[name] if mark.covers(bounds.marks[name]) else mark
                for name, mark in self.marks.items()
                if name in bounds.marks
            }
        )

    def only(self, columns: Collection[str]) -> ColumnState:
        """Return the state of these columns."""
        return ColumnState({name: mark for name, mark in self.marks.items() if name in columns})


def _like(value: Any, known: Any) -> Any:
    """Return a whole number as the decimal or float that the column has had: a bound of a replay is written without a point."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or not isinstance(known, Decimal | float):
        return value
    typed = type(known)(value)
    return typed if typed == value else value  # a float does not hold every whole number


def is_value(value: Any) -> bool:
    """Return whether a watermark column can have a value: a time, a number or text; no flags, lists or objects."""
    return isinstance(value, str | int | float | Decimal | date | datetime | time) and not isinstance(
        value, bool
    )


def next_state(stored: Watermark, highest: Mapping[str, Any]) -> Watermark | None:
    """Return the watermark after a write whose rows had these highest values; None if no row was written.

    Args:
        stored: the watermark before.
        highest: by column; a column without values is missing, or None.

    Raises:
        ConfigurationError: values of a column have no common order.
    """
    marks = {name: Mark(value) for name, value in highest.items() if value is not None}
    return ColumnState.of(stored).raised(marks).watermark() if marks else None
