"""Convert workbook cells to values of Spark's types (docs/reference/file-formats.md, Excel).

A cell is a number, text, date, time, boolean or blank. The column's type decides what it becomes: a type that
cannot hold the cell without loss makes the record bad.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any

from partitions.records.forms import TextOptions
from partitions.records.judge import number_fault, time_fault

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

Cell = int | float | str | bool | time | date | datetime | timedelta

_DIGITS = Context(prec=15)
"""Digits of a cell's number; further ones come from its binary form."""

_LONG = Context(prec=100)

_WHOLE = 2**53
"""Whole numbers below this are exact in a cell; larger ones may stand for their neighbours."""

_NOISE = 4
"""The most binary steps between a formula's result, such as 0.1 + 0.2, and the number that it shows."""

_TOO_LONG = "a number with more digits than a workbook stores exactly; a text cell would keep them"
_DOUBTFUL_DAY = (1900, 2, 28)
"""The day that the reader also returns for Excel's day 60, 29 February 1900, which never existed."""


class MisfitError(Exception):
    """A cell that its column cannot hold; the text describes the cell if its kind alone does not."""


def is_blank(cell: Cell | None) -> bool:
    """Return whether a cell shows nothing."""
    return cell is None or (isinstance(cell, str) and not cell.strip())


def infer_type(kinds: Collection[str]) -> DataType | None:
    """Return the type that holds cells of all these kinds, string if no other does; None without kinds."""
    from pyspark.sql import types as T

    if not kinds:
        return None
    distinct = set(kinds)
    if distinct <= {"whole", "fraction"}:
        return T.LongType() if distinct == {"whole"} else T.DoubleType()
    if distinct <= {"day", "moment"}:
        return T.DateType() if distinct == {"day"} else T.TimestampNTZType()
    return T.BooleanType() if distinct == {"flag"} else T.StringType()


def kind_of_cell(cell: Cell) -> str:
    """Return the kind of a cell, for type inference."""
    match cell:
        case bool():
            return "flag"
        case int():
            return "whole"
        case float():
            return "whole" if cell.is_integer() else "fraction"
        case datetime():
            return "moment"
        case date():
            return "day"
    return "text"


def converter(data_type: DataType) -> Callable[[Cell], Any] | None:
    """Return the function that converts cells to a type; None if no cell can have the type.

    The function raises MisfitError for a cell that does not fit.
    """
    from pyspark.sql import types as T

    if isinstance(data_type, T.DecimalType):
        return lambda cell: _decimal(cell, data_type)
    if isinstance(data_type, T.IntegralType):
        limit = 2 ** (8 * _WIDTHS[data_type.typeName()] - 1)
        return lambda cell: _whole_number(cell, limit)
    simple: Mapping[type[DataType], Callable[[Cell], Any]] = {
        T.StringType: _cell_text,
        T.BooleanType: _boolean,
        T.FloatType: _number,
        T.DoubleType: _number,
        T.DateType: _date,
        T.TimestampNTZType: _local_time,
        T.TimestampType: lambda cell: _local_time(cell).replace(tzinfo=UTC),
    }
    return next((convert for type_, convert in simple.items() if isinstance(data_type, type_)), None)


_WIDTHS = {"byte": 1, "short": 2, "integer": 4, "long": 8}


def describe_cell(cell: Cell) -> str:
    """Describe the kind of a cell, without its value."""
    words = {
        "flag": "true or false",
        "whole": "a number",
        "fraction": "a number",
        "moment": "a date with a time",
        "day": "a date",
    }
    if isinstance(cell, time | timedelta):
        return "a time"
    return words.get(kind_of_cell(cell), "text")


def as_text(cell: Cell) -> str:
    """Return a cell as text.

    A whole number has no point, a time is in ISO 8601, a duration is ``HH:MM:SS``.
    """
    match cell:
        case bool():
            return "true" if cell else "false"
        case float():
            return str(int(cell)) if cell.is_integer() and abs(cell) < 2**63 else repr(cell)
        case datetime() | date() | time():
            return cell.isoformat(" ") if isinstance(cell, datetime) else cell.isoformat()
        case timedelta():
            seconds, micros = divmod(abs(cell) // timedelta(microseconds=1), 1_000_000)
            sign, fraction = "-" if cell < timedelta(0) else "", f".{micros:06d}" if micros else ""
            return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"
    return str(cell)


def _cell_text(cell: Cell) -> str:
    if isinstance(cell, date):
        _local_time(cell)
    if isinstance(cell, int | float) and not isinstance(cell, bool):
        _check_exact(cell)
    return as_text(cell)


def _check_exact(cell: float) -> None:
    """Raise MisfitError if the number may differ from the one that was written."""
    if not math.isfinite(cell):
        raise MisfitError("a number beyond the range of a workbook")
    if abs(cell) >= _WHOLE:
        raise MisfitError(_TOO_LONG)


def _whole_number(cell: Cell, limit: int) -> int:
    number = _exact_number(cell)
    if number != number.to_integral_value() or not -limit <= number < limit:
        raise MisfitError
    return int(number)


def _number(cell: Cell) -> float:
    if not isinstance(cell, str):
        number = _plain_number(cell)
        if not math.isfinite(number):
            _check_exact(number)
        return float(number)
    if number_fault(cell.strip(), "double", TextOptions()) is not None:
        raise MisfitError
    return float(cell.strip())


def _decimal(cell: Cell, decimal_type: Any) -> Decimal:
    """Convert a number that has no more digits than the type, before and after the point."""
    number = _exact_number(cell) if isinstance(cell, str) else _shown_number(_plain_number(cell))
    try:
        fitted = number.quantize(Decimal(1).scaleb(-decimal_type.scale), context=_LONG)
    except InvalidOperation:
        raise MisfitError from None
    if fitted != number or (len(fitted.as_tuple().digits) > decimal_type.precision and fitted):
        raise MisfitError
    return fitted


def _shown_number(cell: float) -> Decimal:
    """Return the number that a cell shows: 15 digits, or a whole number."""
    _check_exact(cell)
    number = Decimal(repr(cell))
    rounded = _DIGITS.create_decimal(number)
    if rounded != number and not float(cell).is_integer():
        if abs(float(rounded) - cell) > _NOISE * math.ulp(cell):
            raise MisfitError(_TOO_LONG)
        return rounded
    return number


def _exact_number(cell: Cell) -> Decimal:
    """Return the number of a cell, or of its text."""
    if not isinstance(cell, str):
        plain = _plain_number(cell)
        _check_exact(plain)
        return Decimal(plain)
    try:
        number = Decimal(cell.strip())
    except InvalidOperation:
        raise MisfitError from None
    if not number.is_finite():
        raise MisfitError
    return number


def _plain_number(cell: Cell) -> int | float:
    if isinstance(cell, bool) or not isinstance(cell, int | float):
        raise MisfitError
    return cell


def _boolean(cell: Cell) -> bool:
    text = cell.strip().lower() if isinstance(cell, str) else cell
    if isinstance(text, bool):
        return text
    if text in ("true", "false"):
        return text == "true"
    raise MisfitError


def _date(cell: Cell) -> date:
    moment = _local_time(cell)
    if moment.time() != time():
        raise MisfitError
    return moment.date()


def _local_time(cell: Cell) -> datetime:
    if isinstance(cell, date) and (cell.year, cell.month, cell.day) == _DOUBTFUL_DAY:
        raise MisfitError("28 February 1900, or the 29th, which never existed")
    if isinstance(cell, datetime):
        return cell
    if isinstance(cell, date):
        return datetime.combine(cell, time())
    if isinstance(cell, str) and time_fault(cell.strip(), zoned=False) is None:
        return datetime.fromisoformat(cell.strip())
    raise MisfitError


def arrow_type(data_type: DataType) -> pa.DataType:
    """Return the Arrow type for a Spark type that a cell can have."""
    import pyarrow as pa
    from pyspark.sql import types as T

    if isinstance(data_type, T.DecimalType):
        return pa.decimal128(data_type.precision, data_type.scale)
    simple: Mapping[type[DataType], pa.DataType] = {
        T.ByteType: pa.int8(),
        T.ShortType: pa.int16(),
        T.IntegerType: pa.int32(),
        T.LongType: pa.int64(),
        T.FloatType: pa.float32(),
        T.DoubleType: pa.float64(),
        T.BooleanType: pa.bool_(),
        T.DateType: pa.date32(),
        T.TimestampType: pa.timestamp("us", "UTC"),
        T.TimestampNTZType: pa.timestamp("us"),
    }
    return next((arrow for type_, arrow in simple.items() if isinstance(data_type, type_)), pa.string())


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return a schema in Arrow's types."""
    import pyarrow as pa

    return pa.schema([(field.name, arrow_type(field.dataType)) for field in schema.fields])
