"""Families of types whose values have one canonical text on both sides of a comparison.

A canonical text is equal on both sides exactly if the values are. Numbers have no exponent, and no zeros
after the last digit of a fraction: ``1.50`` of a ``numeric`` and of a decimal is ``1.5``. A float is its 64
bits in hexadecimal, zero without a sign. Times are ISO in UTC with a blank, and a fraction without zeros at
its end. Bytes are hexadecimal. A text begins with ``=``, and its commas are doubled, so that ``,;`` separates
columns. NULL is ``~``. ``resources.reconcile.canonical`` writes them as SQL.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from partitions.sources.database_types import ColumnType

Family = Literal["number", "float", "flag", "text", "time", "bytes", "day", "instant", "local"]

NULL = "~"
"""Canonical text of NULL."""
TEXT = "="
"""What a canonical text of the family ``text`` begins with."""
SEPARATOR = ",;"
"""Between the canonical texts of two columns."""

_FAMILIES: Mapping[str, Family] = {
    "byte": "number",
    "short": "number",
    "integer": "number",
    "long": "number",
    "float": "float",
    "double": "float",
    "boolean": "flag",
    "string": "text",
    "binary": "bytes",
    "date": "day",
    "timestamp": "instant",
    "timestamp_ntz": "local",
}
"""By the type in Spark's JSON, or the part of it before a bracket."""

WORDS: Mapping[Family, str] = {
    "number": "numbers",
    "float": "floats",
    "flag": "true or false",
    "text": "text",
    "time": "times of day",
    "bytes": "bytes",
    "day": "dates",
    "instant": "times",
    "local": "times without a zone",
}

MAX_DIMENSIONS = 2
"""Most dimensions of an array whose canonical text both sides know."""


def family_of(type_: ColumnType) -> Family | None:
    """Return the family of a column, or of an array's elements; None if it has none."""
    if type_.is_time_of_day:
        return "time"
    name = type_.data_type.partition("(")[0]
    return "number" if name == "decimal" else "text" if name in ("char", "varchar") else _FAMILIES.get(name)


def type_in_table(spark_type: Any) -> ColumnType | None:
    """Return a type in Spark's JSON as a column's type; None for structs, maps and other nested types."""
    dimensions = 0
    while isinstance(spark_type, Mapping) and spark_type.get("type") == "array":
        spark_type, dimensions = spark_type["elementType"], dimensions + 1
    if not isinstance(spark_type, str):
        return None
    return replace(ColumnType(spark_type), dimensions=dimensions)


def type_in_words(type_: ColumnType) -> str:
    """Return what a column holds, for people."""
    family = family_of(type_)
    values = WORDS[family] if family else type_.data_type
    return f"{'arrays of ' * type_.dimensions}{values}"


def read_canonical(text: str, family: Family) -> Any:
    """Return the value of a canonical text; None for NULL.

    A value that Python lacks, such as ``infinity`` of a date, stays its text.
    """
    if text == NULL:
        return None
    try:
        return _READERS[family](text)
    except (ValueError, OverflowError, InvalidOperation):
        return text


def _number(text: str) -> int | Decimal:
    return Decimal(text) if "." in text else int(text)


def _float(text: str) -> float | str:
    (value,) = struct.unpack(">d", bytes.fromhex(text))
    return float(value)


_READERS: Mapping[Family, Callable[[str], Any]] = {
    "number": _number,
    "float": _float,
    "flag": lambda text: text == "true",
    "text": lambda text: text.removeprefix(TEXT).replace(",,", ","),
    "time": str,
    "bytes": bytes.fromhex,
    "day": date.fromisoformat,
    "instant": lambda text: datetime.fromisoformat(text).replace(tzinfo=UTC),
    "local": datetime.fromisoformat,
}
