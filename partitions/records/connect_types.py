"""Types of Kafka Connect and Debezium, as the ``schema`` part of a message names them.

Each gives a column's type, and decodes the values that Connect's JSON encodes: numbers as base64, times as
whole numbers. See docs/reference/debezium.md.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple

from partitions.records.json_decoding import Members, Number
from partitions.schema_types import Schema

Decode = Callable[[Any], Any]
"""Decodes a value that is not null; raises :class:`Undecodable`."""

BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_WHOLE = re.compile(r"-?[0-9]+")
_MAX_DIGITS = 38
_MAX_BITS = 63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_YEARS = "a time beyond the years 1 to 9999"

MILLISECOND, MICROSECOND, NANOSECOND = 10**3, 10**6, 10**9
"""Units of time, as parts of a second."""


class Undecodable(ValueError):
    """A value that its type cannot hold exactly; the text says what was found."""


class ConnectType(NamedTuple):
    """A type of a column.

    Attributes:
        spark: Spark's type in its JSON form.
        decode: decodes a value; None: values are as they are.
    """

    spark: Any
    decode: Decode | None = None


def connect_type(schema: Any) -> ConnectType:
    """Return the type that a schema of Kafka Connect names.

    Raises:
        Undecodable: it is no schema of Connect.
    """
    if not isinstance(schema, Members):
        raise Undecodable("a schema that is no object")
    names = dict(schema)
    logical = _LOGICAL.get(names.get("name") or "")
    if logical is not None:
        return logical(dict(names.get("parameters") or ()))
    kind = names.get("type")
    match kind:
        case "struct":
            return _struct(row_types(schema))
        case "array":
            return _array(connect_type(names.get("items")))
        case "map" if dict(names.get("keys") or ()).get("type") == "string":
            return _map(connect_type(names.get("values")))
    if kind not in _PLAIN:
        raise Undecodable(f"a schema with the unknown type {kind}")
    return ConnectType(_PLAIN[str(kind)])


def row_types(schema: Any) -> dict[str, ConnectType]:
    """Return the types of a struct's fields by name.

    Raises:
        Undecodable: it is no struct of Connect.
    """
    fields = dict(schema).get("fields") if isinstance(schema, Members) else None
    if not isinstance(fields, list) or isinstance(fields, Members):
        raise Undecodable("a schema without fields")
    return {dict(field).get("field", ""): connect_type(field) for field in fields}


def schema_of(types: Mapping[str, ConnectType]) -> Schema:
    """Return columns as a schema in Spark's JSON form."""
    fields = [
        {"name": name, "type": column.spark, "nullable": True, "metadata": {}}
        for name, column in types.items()
    ]
    return {"type": "struct", "fields": fields}


def _struct(types: Mapping[str, ConnectType]) -> ConnectType:
    decoders = {name: column.decode for name, column in types.items() if column.decode is not None}

    def decode(value: Any) -> Any:
        if not isinstance(value, Members):
            return value
        return Members(
            (name, item if item is None or name not in decoders else decoders[name](item))
            for name, item in value
        )

    return ConnectType(schema_of(types), decode if decoders else None)


def _array(item: ConnectType) -> ConnectType:
    spark = {"type": "array", "elementType": item.spark, "containsNull": True}
    decode = item.decode
    if decode is None:
        return ConnectType(spark)
    return ConnectType(
        spark,
        lambda value: (
            [part if part is None else decode(part) for part in value] if isinstance(value, list) else value
        ),
    )


def _map(item: ConnectType) -> ConnectType:
    spark = {"type": "map", "keyType": "string", "valueType": item.spark, "valueContainsNull": True}
    decode = item.decode
    if decode is None:
        return ConnectType(spark)
    return ConnectType(
        spark,
        lambda value: (
            Members((name, part if part is None else decode(part)) for name, part in value)
            if isinstance(value, Members)
            else value
        ),
    )


def whole(value: Any) -> int:
    """Return a whole number.

    Raises:
        Undecodable: it is none.
    """
    if not isinstance(value, Number) or _WHOLE.fullmatch(value) is None:
        raise Undecodable("no whole number")
    return int(value)


def _bytes(value: Any) -> bytes:
    if isinstance(value, Number) or not isinstance(value, str) or BASE64.fullmatch(value) is None:
        raise Undecodable("no base64")
    return base64.b64decode(value)


def decimal_of_bytes(scale: int) -> Decode:
    """Return a decoder of decimals: base64 of the unscaled number in two's complement, highest byte first.

    Connect may also write them as numbers, which stay as they are.
    """

    def decode(value: Any) -> Any:
        if isinstance(value, Number):
            return value
        return _with_scale(int.from_bytes(_bytes(value), "big", signed=True), scale)

    return decode


def variable_decimal(value: Any) -> Any:
    """Return a decimal that brings its own scale: an object with ``scale`` and ``value``.

    Raises:
        Undecodable: it is none.
    """
    parts = dict(value) if isinstance(value, Members) else {}
    if parts.keys() != {"scale", "value"}:
        raise Undecodable("no decimal with a scale")
    return decimal_of_bytes(whole(parts["scale"]))(parts["value"])


def _with_scale(unscaled: int, scale: int) -> Number:
    digits = str(abs(unscaled)) + "0" * max(0, -scale)
    if scale > 0:
        digits = digits.rjust(scale + 1, "0")
        digits = f"{digits[:-scale]}.{digits[-scale:]}"
    return Number(f"-{digits}" if unscaled < 0 else digits)


def day(value: Any) -> str:
    """Return the date of a number of days since 1970.

    Raises:
        Undecodable: it is no whole number, or beyond the years 1 to 9999.
    """
    try:
        return date.fromordinal(_EPOCH_DAY + whole(value)).isoformat()
    except (ValueError, OverflowError) as error:
        if isinstance(error, Undecodable):
            raise
        raise Undecodable(_YEARS) from None


def moment(unit: int, zone: str = "") -> Decode:
    """Return a decoder of times since 1970.

    Args:
        unit: parts of a second that are counted.
        zone: what is written behind the time: ``Z`` for an instant, nothing for a time without a zone.
    """

    def decode(value: Any) -> str:
        seconds, parts = divmod(whole(value), unit)
        microseconds = _microseconds(parts, unit)
        try:
            time = (_EPOCH + timedelta(seconds=seconds, microseconds=microseconds)).replace(tzinfo=None)
        except OverflowError:
            raise Undecodable(_YEARS) from None
        return f"{time.isoformat()}{zone}"

    return decode


def _microseconds(parts: int, unit: int) -> int:
    whole_part, rest = divmod(parts * MICROSECOND, unit)
    if rest:
        raise Undecodable("nanoseconds, which no column of times holds")
    return whole_part


def _time_of_day(unit: int) -> Decode:
    """Return a decoder of spans since midnight; those of MySQL may be negative, or longer than a day."""

    def decode(value: Any) -> str:
        number = whole(value)
        seconds, parts = divmod(abs(number), unit)
        fraction = f".{_microseconds(parts, unit):06}" if parts else ""
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{fraction}"
        return f"-{clock}" if number < 0 else clock

    return decode


def _decimal(parameters: Mapping[str, Any]) -> ConnectType:
    scale, precision = (
        int(parameters.get("scale", 0)),
        int(parameters.get("connect.decimal.precision", _MAX_DIGITS)),
    )
    is_held = 0 <= scale <= precision <= _MAX_DIGITS
    return ConnectType(f"decimal({precision},{scale})" if is_held else "string", decimal_of_bytes(scale))


def _bits(parameters: Mapping[str, Any]) -> ConnectType:
    """Return the type of bits: a number, lowest byte first; bytes if they are too many for one."""
    if int(parameters.get("length", _MAX_BITS + 1)) > _MAX_BITS:
        return ConnectType("binary")
    return ConnectType("long", lambda value: Number(int.from_bytes(_bytes(value), "little")))


def _always(spark: str, decode: Decode | None = None) -> Callable[[Mapping[str, Any]], ConnectType]:
    return lambda _: ConnectType(spark, decode)


_PLAIN = {
    "boolean": "boolean",
    "int8": "byte",
    "int16": "short",
    "int32": "integer",
    "int64": "long",
    "float": "float",
    "float32": "float",
    "double": "double",
    "float64": "double",
    "string": "string",
    "bytes": "binary",
}

_LOGICAL: Mapping[str, Callable[[Mapping[str, Any]], ConnectType]] = {
    "io.debezium.time.Date": _always("date", day),
    "org.apache.kafka.connect.data.Date": _always("date", day),
    "io.debezium.time.Timestamp": _always("timestamp_ntz", moment(MILLISECOND)),
    "org.apache.kafka.connect.data.Timestamp": _always("timestamp_ntz", moment(MILLISECOND)),
    "io.debezium.time.MicroTimestamp": _always("timestamp_ntz", moment(MICROSECOND)),
    "io.debezium.time.NanoTimestamp": _always("timestamp_ntz", moment(NANOSECOND)),
    "io.debezium.time.ZonedTimestamp": _always("timestamp"),
    "io.debezium.time.Time": _always("string", _time_of_day(MILLISECOND)),
    "org.apache.kafka.connect.data.Time": _always("string", _time_of_day(MILLISECOND)),
    "io.debezium.time.MicroTime": _always("string", _time_of_day(MICROSECOND)),
    "io.debezium.time.NanoTime": _always("string", _time_of_day(NANOSECOND)),
    "org.apache.kafka.connect.data.Decimal": _decimal,
    "io.debezium.data.VariableScaleDecimal": _always("string", variable_decimal),
    "io.debezium.data.Bits": _bits,
}
"""Types with a meaning beyond their encoding, by their name. All others are as they are encoded."""
