"""Record values as table columns hold them, for comparison with the bounds of slices.

See docs/reference/apis.md, Bounds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cached_property
from typing import Any

from partitions.api.document import JsonRecord
from partitions.api.values import SentNumber, as_text, to_column_value
from partitions.column.predicates import ranges_of
from partitions.ddl import Column, parse_ddl, round_as_column, value_types
from partitions.predicate import Predicate, matches
from partitions.sources import ApiSource
from partitions.unit_values import ValueType, value_type_of


class RecordValues:
    """The values of record fields, as the loaded row holds them.

    Attributes:
        pinned: the data types of the pinned schema's columns.
    """

    def __init__(self, source: ApiSource) -> None:
        """Use the schema that the definition declares."""
        self._source = source
        self.pinned: Mapping[str, ValueType] = {}

    @cached_property
    def declared_kinds(self) -> Mapping[str, ValueType]:
        """The data types of the declared schema's columns."""
        return {} if self._source.schema_ is None else value_types(self._source.schema_)

    @cached_property
    def _declared_columns(self) -> Mapping[str, Column]:
        """The columns of the declared schema, by name."""
        return (
            {}
            if self._source.schema_ is None
            else {column.name: column for column in parse_ddl(self._source.schema_)}
        )

    def kind_in(self, rows: Predicate, column: str) -> ValueType | None:
        """Return a column's data type, from the declared schema or the bounds of its rows."""
        bounds = (
            bound
            for range_ in ranges_of(rows)
            if range_.column == column
            for bound in (range_.lower, range_.upper)
        )
        return self.declared_kinds.get(column) or next(
            (value_type_of(bound) for bound in bounds if bound is not None), self.pinned.get(column)
        )

    def value(self, record: JsonRecord, column: str, kind: ValueType | None) -> Any:
        """Return a value for comparison; None if Spark will refuse it."""
        try:
            return self.to_column_value(record, column, kind)
        except ValueError:
            return None

    def may_match(
        self, rows: Predicate, record: JsonRecord, column_kinds: Mapping[str, ValueType | None]
    ) -> bool:
        """Return whether a record may be one of some rows; True if it cannot be compared.

        Spark refuses incomparable values later.
        """
        try:
            values = {name: self.to_column_value(record, name, kind) for name, kind in column_kinds.items()}
            return matches(rows, values)
        except (ValueError, TypeError):
            return True

    def to_column_value(self, record: JsonRecord, column: str, kind: ValueType | None) -> Any:
        """Return a value as its loaded row holds it; a slice's bound must not lie below it."""
        value, declared_column = (
            to_column_value(record.value.get(column), kind),
            self._declared_columns.get(column),
        )
        return (
            round_as_column(value, declared_column)
            if isinstance(value, Decimal) and declared_column is not None
            else value
        )


class HighestValue:
    """The highest value of a column.

    If the column's type is unknown, the values decide: one text among numbers makes all of them texts.
    """

    def __init__(self, kind: ValueType | None) -> None:
        """Start without a value; ``kind`` is the column's data type, if it is known."""
        self.kind = kind
        self._value: Any = None
        self._text: str | None = None
        self._has_text = False

    def add(self, value: Any) -> None:
        """Add the value of one record."""
        self._value = higher(self._value, value)
        if self.kind is None and value is not None:
            self._text = higher(self._text, as_text(value))
            self._has_text = self._has_text or isinstance(value, str)

    @property
    def value(self) -> Any:
        """The highest value so far; None if there was none."""
        if self._has_text:
            return self._text
        return float(self._value) if isinstance(self._value, SentNumber) else self._value


def higher(first: Any, second: Any) -> Any:
    """Return the higher of two values; None is lower than any value."""
    return _choose(max, first, second)


def lower(first: Any, second: Any) -> Any:
    """Return the lower of two values; None is higher than any value."""
    return _choose(min, first, second)


def _choose(choose: Callable[[Any, Any], Any], first: Any, second: Any) -> Any:
    if first is None or second is None:
        return first if second is None else second
    try:
        return choose(first, second)
    except TypeError:  # two types: Spark will refuse one of the values
        return first
