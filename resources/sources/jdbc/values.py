"""The values of a database as Spark gets them: read from the form that they are sent in, or refused by name.

A value that its column's type does not hold raises an error in Spark, with a note of column, value and row in its text: Spark would round, wrap or
shift it. The note is in hexadecimal, since what a value holds must not end it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from partitions.sources.database_types import (
    EXPECTED_UNIT_VALUE,
    MAX_SHOWN_LETTERS,
    REFUSAL_PREFIX,
    ColumnType,
)
from resources.dialects.postgresql import OTHER_ARRAY
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column

_SHOWN_UNITS = 5
_NOTE = re.compile(f"{REFUSAL_PREFIX}:" + "([0-9A-Fa-f]*):" * 4)


@dataclass(frozen=True)
class RefusedValue:
    """A value that a column's type does not hold.

    Attributes:
        column: its name.
        expected: what it holds, in words.
        value: its text, cut.
        row: columns and values that tell its row; "" if none are known.
    """

    column: str
    expected: str
    value: str
    row: str


def refused_value(text: str) -> RefusedValue | None:
    """Return the value that an error of Spark is about; None if it is about none."""
    note = _NOTE.search(text)
    if note is None:
        return None
    return RefusedValue(*(bytes.fromhex(part).decode(errors="replace") for part in note.groups()))


def read_columns(
    types: Mapping[str, ColumnType], keys: Sequence[str], units: Mapping[str, Collection[str]] | None = None
) -> list[Column]:
    """Return columns of these types, under their own names, of rows in which each has the form of its type.

    Args:
        types: by the name of a column.
        keys: columns that tell a row in an error, as far as there are such.
        units: the texts that columns have in these rows, by the name of a column. A database may take other texts for equal, such as a UUID in
            capitals, or a ``char`` with fewer blanks; the table does not, so no later read of the unit would replace such rows.
    """
    from pyspark.sql import functions as F

    cells = [F.concat(F.lit(f"{key} = "), _cell(key, types[key])) for key in keys if key in types]
    row = F.concat_ws(", ", *cells) if cells else F.lit("")
    return [
        _spelled(name, type_, _read(name, type_, row), row, (units or {}).get(name)).alias(name)
        for name, type_ in types.items()
    ]


def _spelled(
    name: str, type_: ColumnType, value: Column, row: Column, texts: Collection[str] | None
) -> Column:
    """A column whose texts, if it has some, are these."""
    from pyspark.sql import functions as F

    if texts is None:
        return value
    shown = sorted(texts)[:_SHOWN_UNITS]
    names = ", ".join(map(repr, shown)) + (" …" if len(texts) > len(shown) else "")
    note = _note(name, type_, value, row, f"{EXPECTED_UNIT_VALUE} ({names})")
    refused = F.raise_error(note).cast("string")
    text = F.concat(value, F.lit(""))  # Spark itself fills up what a char is compared with
    return F.when(value.isNull() | text.isin(*texts), value).otherwise(refused)


def _read(name: str, type_: ColumnType, row: Column) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructField

    column = F.col(quoted(name))
    if type_.form in ("plain", "number", "flag") and not type_.dimensions:
        return column
    wanted = StructField.fromJson(
        {"name": name, "type": type_.spark_type, "nullable": True, "metadata": {}}
    ).dataType
    if type_.dimensions:
        value = _array(column, type_)
    elif type_.form == "microseconds":
        return F.timestamp_micros(column)
    elif type_.form in ("double", "whole"):
        return column.cast(wanted)
    elif type_.is_time_of_day:
        return _time_of_day(column)
    elif type_.data_type == "string":
        return column
    else:
        value = _from_text(column, type_)
    refused = F.raise_error(_note(name, type_, column, row)).cast(wanted)
    return F.when(column.isNull(), F.lit(None).cast(wanted)).otherwise(F.coalesce(value, refused))


def _array(column: Column, type_: ColumnType) -> Column:
    """An array of the JSON of its texts; NULL if it has other dimensions, or an element is refused."""
    from pyspark.sql import functions as F

    texts = "array<" * type_.dimensions + "string" + ">" * type_.dimensions
    array = F.when(column.startswith("["), F.from_json(column, texts))
    if type_.data_type == "string" and not type_.is_time_of_day:
        return array
    checked = [array]
    for _ in range(type_.dimensions - 1):
        checked.append(F.flatten(checked[-1]))
    refused = F.exists(checked[-1], lambda text: text.isNotNull() & _from_text(text, type_).isNull())
    return F.when(~F.coalesce(refused, F.lit(False)), _transformed(array, type_, type_.dimensions))


def _transformed(array: Column, type_: ColumnType, dimensions: int) -> Column:
    from pyspark.sql import functions as F

    if dimensions == 1:
        return F.transform(array, lambda text: _from_text(text, type_))
    return F.transform(array, lambda inner: _transformed(inner, type_, dimensions - 1))


def _from_text(text: Column, type_: ColumnType) -> Column:
    """A value of its text; NULL if the type does not hold it exactly."""
    from pyspark.sql import functions as F

    if type_.is_time_of_day:
        return _time_of_day(text)
    match type_.data_type:
        case "date":
            return F.when((F.length(text) == 10) & (text >= "0001"), text.try_cast("date"))
        case "timestamp_ntz" | "timestamp" as moment:
            whole = F.concat(text, F.lit("Z")) if type_.form == "text" and moment == "timestamp" else text
            fits = (F.substring(text, 5, 1) == "-") & (text >= "0001") & ~text.endswith("BC")
            return F.when(fits, whole.try_cast(moment))
        case "binary":
            return F.unhex(F.substring(text, 3, 2**31 - 1))
        case decimal if decimal.startswith("decimal") and not type_.fixed_scale:
            scale = int(decimal.rstrip(")").rpartition(",")[2])
            digits = F.length(F.rtrim(text, F.lit("0"))) - F.instr(text, ".")
            return F.when((F.instr(text, ".") == 0) | (digits <= scale), text.try_cast(decimal))
        case other:
            return text.try_cast({"short": "smallint", "integer": "int", "long": "bigint"}.get(other, other))


def _time_of_day(text: Column) -> Column:
    """A time as ``HH:MM:SS``, with six digits after the point if it has a fraction; what follows it, such as an offset, stays."""
    from pyspark.sql import functions as F

    filled = F.concat(
        F.substring_index(text, ".", 1), F.lit("."), F.rpad(F.substring_index(text, ".", -1), 6, "0")
    )
    return F.when(F.instr(text, ".") == 0, text).otherwise(F.regexp_replace(filled, r"\.000000$", ""))


def _cell(name: str, type_: ColumnType) -> Column:
    """A value of a row that is named."""
    from pyspark.sql import functions as F

    column = F.col(quoted(name))
    value = F.timestamp_micros(column) if type_.form == "microseconds" and not type_.dimensions else column
    return F.substring(value.cast("string"), 1, MAX_SHOWN_LETTERS)


def _note(name: str, type_: ColumnType, text: Column, row: Column, expected: str | None = None) -> Column:
    from pyspark.sql import functions as F

    shown = F.when(text.startswith(OTHER_ARRAY), F.substring(text, 2, MAX_SHOWN_LETTERS)).otherwise(
        F.substring(text, 1, MAX_SHOWN_LETTERS)
    )
    value, told = (F.hex(F.encode(part, "utf-8")) for part in (shown, row))
    return F.concat(F.lit(type_.note(name, expected)), value, F.lit(":"), told, F.lit(":"))
