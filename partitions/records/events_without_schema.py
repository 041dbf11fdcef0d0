"""Values of change events that do not bring their schema: the declared type says what they are.

A value that could be read in two ways is refused (docs/reference/debezium.md).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from partitions.ddl import Column
from partitions.records.connect_types import (
    BASE64,
    MICROSECOND,
    MILLISECOND,
    NANOSECOND,
    Undecodable,
    day,
    decimal_of_bytes,
    moment,
    variable_decimal,
)
from partitions.records.json_decoding import Members, Number
from partitions.sources.formats import DebeziumOptions

_NUMBER = re.compile(r"[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?", re.ASCII)
_TIMES = ("timestamp", "timestamp_ltz", "timestamp_ntz")
_DECIMALS = ("decimal", "dec", "numeric")
_DEFAULT_DECIMAL = (10, 0)
_UNITS = {"connect": MILLISECOND, "microseconds": MICROSECOND, "nanoseconds": NANOSECOND}
"""Parts of a second that numbers of times count, by the connector's ``time.precision.mode``."""


class WithoutSchema:
    """A decoder of values by their declared types."""

    def __init__(self, options: DebeziumOptions, declared: Mapping[str, Column]) -> None:
        """Store the options of the format, and the declared columns by name."""
        self._options, self._declared = options, declared

    def type_of(self, name: str) -> str:
        """Return the declared type of a column; "a value" without one."""
        return self._declared[name].type if name in self._declared else "a value"

    def value(self, name: str, value: Any) -> Any:
        """Return a value as its column's type reads it.

        Raises:
            Undecodable: it cannot be read, or in two ways.
        """
        column = self._declared.get(name)
        if column is None:
            return value
        if column.type == "date" and isinstance(value, Number):
            return day(value)
        if column.type in _TIMES and isinstance(value, Number):
            return self._time(value, "" if column.type == "timestamp_ntz" else "Z")
        if column.type in _DECIMALS:
            return self._decimal(value, column.numbers)
        return value

    def _time(self, value: Number, zone: str) -> str:
        unit = _UNITS.get(self._options.time_precision_mode or "")
        if unit is None:
            raise Undecodable(
                "a number without its unit. Set options.time_precision_mode to the connector's time.precision.mode; or "
                "have the messages bring their schema (value.converter.schemas.enable); or declare the column as long"
            )
        return str(moment(unit, zone)(value))

    def _decimal(self, value: Any, numbers: tuple[int, ...]) -> Any:
        if isinstance(value, Members):
            return variable_decimal(value)
        if isinstance(value, Number) or not isinstance(value, str):
            return value
        mode = self._options.decimal_handling_mode
        is_number, may_be_bytes = bool(_NUMBER.fullmatch(value)), bool(BASE64.fullmatch(value))
        if mode is None and may_be_bytes:
            raise Undecodable(
                "text that may be base64. Set options.decimal_handling_mode to the connector's "
                "decimal.handling.mode; or have the messages bring their schema (value.converter.schemas.enable)"
            )
        if mode == "precise":
            return decimal_of_bytes((*numbers, *_DEFAULT_DECIMAL[len(numbers) :])[1])(value)
        if not is_number:
            raise Undecodable("text that is no number")
        return value
