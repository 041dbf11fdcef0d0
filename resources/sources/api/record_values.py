"""Values of records as the columns of a table hold them: bounds of slices are compared with these (docs/reference/apis.md, Bounds)."""

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
    """What fields of records hold, as the columns of a row hold it once it is loaded.

    Attributes:
        pinned: what the columns of the pinned schema hold.
    """

    def __init__(self, source: ApiSource) -> None:
        """Use what the definition declares."""
        self._source = source
        self.pinned: Mapping[str, ValueType] = {}

    @cached_property
    def declared(self) -> Mapping[str, ValueType]:
        """What columns hold, by the declared schema."""
        return {} if self._source.schema_ is None else value_types(self._source.schema_)

    @cached_property
    def _declared_columns(self) -> Mapping[str, Column]:
        """Columns of the declared schema, by name."""
        return (
            {}
            if self._source.schema_ is None
            else {column.name: column for column in parse_ddl(self._source.schema_)}
        )

    def kind_in(self, rows: Predicate, column: str) -> ValueType | None:
        """What a column holds, by the declared schema, or the bounds that it is compared with."""
        bounds = (
            bound
            for range_ in ranges_of(rows)
            if range_.column == column
            for bound in (range_.lower, range_.upper)
        )
        return self.declared.get(column) or next(
            (value_type_of(bound) for bound in bounds if bound is not None), self.pinned.get(column)
        )

    def value(self, record: JsonRecord, column: str, kind: ValueType | None) -> Any:
        """A value as it is compared; None for one that Spark will refuse."""
        try:
            return self.to_column_value(record, column, kind)
        except ValueError:
            return None

    def may_match(
        self, rows: Predicate, record: JsonRecord, column_kinds: Mapping[str, ValueType | None]
    ) -> bool:
        """Whether a record is one of some rows; one that cannot be compared is for Spark to refuse."""
        try:
            values = {name: self.to_column_value(record, name, kind) for name, kind in column_kinds.items()}
            return matches(rows, values)
        except (ValueError, TypeError):
            return True

    def to_column_value(self, record: JsonRecord, column: str, kind: ValueType | None) -> Any:
        """A value as its row holds it once it is loaded, which the bound of a slice must not lie below."""
        value, declared = to_column_value(record.value.get(column), kind), self._declared_columns.get(column)
        return (
            round_as_column(value, declared) if isinstance(value, Decimal) and declared is not None else value
        )


class Highest:
    """The highest value of a column. If nothing tells what the column holds, the values do: one text among numbers makes texts of all."""

    def __init__(self, kind: ValueType | None) -> None:
        """Begin without a value; ``kind`` is what the column holds, if that is known."""
        self.kind = kind
        self._value: Any = None
        self._text: str | None = None
        self._has_text = False

    def add(self, value: Any) -> None:
        """Take the value of one more record."""
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
    """Return the higher of two values; None counts as none."""
    return _chosen(max, first, second)


def lower(first: Any, second: Any) -> Any:
    """Return the lower of two values; None counts as none."""
    return _chosen(min, first, second)


def _chosen(choose: Callable[[Any, Any], Any], first: Any, second: Any) -> Any:
    if first is None or second is None:
        return first if second is None else second
    try:
        return choose(first, second)
    except TypeError:  # of two kinds: Spark will refuse one of them
        return first
