"""Compares the rows of a table with the rows that another reader finds in the file, value by value.

Each value must be exact in the type of its column.
"""

from __future__ import annotations

import json
import re
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any
from uuid import UUID

import pyarrow as pa

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NOT_FINITE = {"NaN": "nan", "Infinity": "inf", "+Infinity": "inf", "-Infinity": "-inf", "Inf": "inf"}
_NOT_FINITE |= {"+Inf": "inf", "-Inf": "-inf"}
_SHOWN = 300

Row = Mapping[str, Any]


class Number(str):
    """A number of a JSON text, as written."""

    __slots__ = ()


class Lossy(Exception):
    """A value that a type does not hold exactly."""


@dataclass(frozen=True)
class Difference:
    """The difference between a table and its file.

    Attributes:
        missing: the number of rows that only the file has.
        additional: the number of rows that only the table has.
        first: the first of them, in words.
    """

    missing: int
    additional: int
    first: str


def compare(expected: Iterable[Row], table: pa.Table) -> Difference | None:
    """Return the difference between the rows of a file and a table, in any order; None if equal.

    Args:
        expected: rows of another reader with raw values: texts of text formats, Python's values of the
        others.
        table: the loaded table.
    """
    row_type = pa.struct(list(table.schema))
    stored = Counter(canonical(row, row_type) for row in table.to_pylist())
    remaining, missing, first = Counter(stored), 0, ""
    for number, row in enumerate(expected, start=1):
        try:
            key = canonical(row, row_type)
        except Lossy as error:
            missing, first = missing + 1, first or f"row {number}: {error}"
            continue
        if remaining[key] > 0:
            remaining[key] -= 1
        else:
            missing += 1
            first = first or f"row {number}: {_apart(key, stored)}"
    additional = +remaining
    if not missing and not additional:
        return None
    if not first:
        row = next(iter(additional))
        why = "twice" if stored[row] > additional[row] else "not in the file"
        first = f"a row of the table is {why}: {_shorten(row)}"
    return Difference(missing, additional.total(), first)


def canonical(value: Any, kind: pa.DataType) -> Any:
    """Return a value as its type holds it, in a form that is equal for equal values only.

    Raises:
        Lossy: if the type does not hold it exactly.
    """
    if value is None:
        return None
    types = pa.types
    if types.is_struct(kind):
        return _structure(value, kind)
    if types.is_list(kind) or types.is_large_list(kind):
        if not isinstance(value, list | tuple):
            raise Lossy(f"{_shorten(value)} is no list")
        return tuple(canonical(item, kind.value_type) for item in value)
    if types.is_map(kind):
        pairs = value.items() if isinstance(value, Mapping) else value
        return tuple(
            sorted(((canonical(k, kind.key_type), canonical(v, kind.item_type)) for k, v in pairs), key=repr)
        )
    for is_of, convert in _SCALARS:
        if is_of(kind):
            return convert(value, kind)
    raise Lossy(f"{kind} is not known here")


def _structure(value: Any, kind: pa.StructType) -> Any:
    if not isinstance(value, Mapping):
        raise Lossy(f"{_shorten(value)} is no structure")
    fields = {field.name: field.type for field in kind}
    lost_fields = [name for name, inner in value.items() if name not in fields and any_value(inner)]
    if lost_fields:
        raise Lossy(f"field {lost_fields[0]} is not in the table, and has {_shorten(value[lost_fields[0]])}")
    values = []
    for name, inner in fields.items():
        try:
            values.append((name, canonical(value.get(name), inner)))
        except Lossy as error:
            raise Lossy(f"{name}: {error}") from None
    return tuple(values)


def any_value(value: Any) -> bool:
    """Return whether a value holds anything: an empty list or structure does not."""
    if isinstance(value, Mapping):
        return any(map(any_value, value.values()))
    if isinstance(value, list | tuple):
        return any(map(any_value, value))
    return value is not None


def _text(value: Any) -> Any:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _json(str(value))
        case Mapping() | list():
            return "json", _freeze(value)
        case bytes():
            try:
                return value.decode()
            except UnicodeDecodeError:
                raise Lossy(f"{_shorten(value)} is no text") from None
        case datetime() | date():
            return value.isoformat()
        case time():
            return _clock(value)
        case float():
            return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
        case int() | Decimal() | UUID():
            return str(value)
        case timedelta():
            seconds = value.days * 86400 + value.seconds
            return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    raise Lossy(f"{_shorten(value)} has no text here")


def _clock(value: time) -> str:
    return value.isoformat()[:8] + (f".{value.microsecond:06}".rstrip("0") if value.microsecond else "")


def _json(text: str) -> Any:
    """Return a text, or its value if it is an object or array of JSON, where blanks do not count."""
    if text[:1] in ("{", "["):
        try:
            return "json", _freeze(json.loads(text, parse_float=Number, parse_int=Number))
        except (ValueError, RecursionError):
            return text
    return text


def _freeze(value: Any) -> Any:
    match value:
        case Mapping():
            return tuple(sorted(((name, _freeze(inner)) for name, inner in value.items()), key=repr))
        case list() | tuple():
            return ("list", *map(_freeze, value))
        case Number():
            return "number", str(value)
    return value


def _whole(value: Any) -> int:
    match value:
        case bool():
            pass
        case int():
            return value
        case float() if value.is_integer():
            return int(value)
        case Decimal() if value == value.to_integral_value():
            return int(value)
        case str() if _WHOLE.fullmatch(value):
            return int(value)
    raise Lossy(f"{_shorten(value)} is no whole number")


def _float(value: Any, kind: pa.DataType) -> Any:
    match value:
        case bool():
            raise Lossy(f"{_shorten(value)} is no number")
        case str() if value in _NOT_FINITE:
            number = float(_NOT_FINITE[value])
        case str() if _NUMBER.fullmatch(value):
            number = float(value)
            if _WHOLE.fullmatch(value) and int(value) != number:
                raise Lossy(f"{value} is rounded")
        case int():
            number = float(value)
            if int(number) != value:
                raise Lossy(f"{value} is rounded")
        case float() | Decimal():
            number = float(value)
        case _:
            raise Lossy(f"{_shorten(value)} is no number")
    if pa.types.is_float32(kind):
        try:
            number = struct.unpack("f", struct.pack("f", number))[0]
        except OverflowError:
            raise Lossy(f"{_shorten(value)} is beyond a float") from None
    return "number", repr(number)


def _decimal(value: Any, kind: pa.Decimal128Type) -> Decimal:
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
    except (InvalidOperation, TypeError, ValueError):
        raise Lossy(f"{_shorten(value)} is no number") from None
    if not number.is_finite() or int(number.normalize().as_tuple().exponent) < -kind.scale:
        raise Lossy(f"{_shorten(value)} does not fit {kind}")
    return number


def _boolean(value: Any) -> bool:
    match value:
        case bool():
            return value
        case str() if value.lower() in ("true", "false"):
            return value.lower() == "true"
    raise Lossy(f"{_shorten(value)} is neither true nor false")


def _day(value: Any) -> date:
    match value:
        case datetime() if value.time() == time():
            return value.date()
        case date() if not isinstance(value, datetime):
            return value
        case str():
            try:
                return date.fromisoformat(value)
            except ValueError:
                pass
    raise Lossy(f"{_shorten(value)} is no date")


def _instant(value: Any, kind: pa.TimestampType) -> datetime:
    """Return a time; a time without an offset is UTC if the type is of instants."""
    match value:
        case Number() if _WHOLE.fullmatch(value):
            at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(value))
        case str():
            try:
                at = datetime.fromisoformat(value.removesuffix(" UTC"))
            except ValueError:
                raise Lossy(f"{_shorten(value)} is no time") from None
        case datetime():
            at = value
        case date():
            at = datetime.combine(value, time())
        case _:
            raise Lossy(f"{_shorten(value)} is no time")
    if kind.tz is None:
        if at.tzinfo is not None:
            raise Lossy(f"{_shorten(value)} has an offset, and the column has none")
        return at
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


def _bytes(value: Any) -> bytes:
    match value:
        case bytes():
            return value
        case UUID():
            return value.bytes
    raise Lossy(f"{_shorten(value)} is not bytes")


_SCALARS: Sequence[tuple[Callable[[pa.DataType], bool], Callable[[Any, Any], Any]]] = (
    (pa.types.is_string, lambda value, _: _text(value)),
    (pa.types.is_large_string, lambda value, _: _text(value)),
    (pa.types.is_string_view, lambda value, _: _text(value)),
    (pa.types.is_boolean, lambda value, _: _boolean(value)),
    (pa.types.is_integer, lambda value, _: _whole(value)),
    (pa.types.is_floating, _float),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_date, lambda value, _: _day(value)),
    (pa.types.is_timestamp, _instant),
    (pa.types.is_binary, lambda value, _: _bytes(value)),
    (pa.types.is_large_binary, lambda value, _: _bytes(value)),
    (pa.types.is_binary_view, lambda value, _: _bytes(value)),
)


def _apart(key: Any, stored: Counter[Any]) -> str:
    """Return the value that the nearest row of the table has instead, in words."""
    if key in stored:
        return f"is in the table {stored[key]} times only: {_shorten(key)}"
    nearest = max(stored, key=lambda row: sum(a == b for a, b in zip(key, row, strict=True)), default=None)
    if nearest is None:
        return f"the table is empty, expected {_shorten(key)}"
    expected, actual = next((a, b) for a, b in zip(key, nearest, strict=True) if a != b)
    return (
        f"column {expected[0]}: expected {_shorten(expected[1])}, the nearest row has {_shorten(actual[1])}"
    )


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
