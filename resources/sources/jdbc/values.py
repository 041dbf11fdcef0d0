"""Convert database values from the form in which they are sent, or refuse them by name.

A value that its column's type cannot hold raises an error in Spark, with a note of column, value and row
in its text: otherwise Spark would round, wrap or shift it. The note is in hexadecimal, so that no value
can end it.
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
    """A value that a column's type cannot hold.

    Attributes:
        column: the column's name.
        expected: what the type holds, in words.
        value: the value as text, truncated.
        row: columns and values that identify its row; "" if unknown.
    """

    column: str
    expected: str
    value: str
    row: str


def refused_value(text: str) -> RefusedValue | None:
    """Return the refused value in an error of Spark; None if it has none."""
    note = _NOTE.search(text)
    if note is None:
        return None
    return RefusedValue(*(bytes.fromhex(part).decode(errors="replace") for part in note.groups()))


def read_columns(
    types: Mapping[str, ColumnType], keys: Sequence[str], units: Mapping[str, Collection[str]] | None = None
) -> list[Column]:
    """Return columns of these types and names from rows in which each has its type's form.

    Args:
        types: the columns' types, by name.
        keys: the columns that identify a row in errors, as far as they exist.
        units: by column name, the exact texts that the rows must have. A database may treat other texts as
        equal, such as a UUID in capitals, or a ``char`` with fewer blanks; the table does not, so no later
        read of the unit would replace such rows.
    """
    from pyspark.sql import functions as F

    cells = [F.concat(F.lit(f"{key} = "), _cell(key, types[key])) for key in keys if key in types]
    row = F.concat_ws(", ", *cells) if cells else F.lit("")
    return [
        _check_spelling(name, type_, _read(name, type_, row), row, (units or {}).get(name)).alias(name)
        for name, type_ in types.items()
    ]


def _check_spelling(
    name: str, type_: ColumnType, value: Column, row: Column, texts: Collection[str] | None
) -> Column:
    """Return a column that refuses other texts than these, if some are given."""
    from pyspark.sql import functions as F

    if texts is None:
        return value
    displayed = sorted(texts)[:_SHOWN_UNITS]
    names = ", ".join(map(repr, displayed)) + (" …" if len(texts) > len(displayed) else "")
    note = _note(name, type_, value, row, f"{EXPECTED_UNIT_VALUE} ({names})")
    refusal = F.raise_error(note).cast("string")
    text = F.concat(value, F.lit(""))  # else Spark pads the texts that a char is compared with
    return F.when(value.isNull() | text.isin(*texts), value).otherwise(refusal)


def _read(name: str, type_: ColumnType, row: Column) -> Column:
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructField

    column = F.col(quoted(name))
    if type_.form in ("plain", "number", "flag") and not type_.dimensions:
        return column
    spark_type = StructField.fromJson(
        {"name": name, "type": type_.spark_type, "nullable": True, "metadata": {}}
    ).dataType
    if type_.dimensions:
        value = _array(column, type_)
    elif type_.form == "microseconds":
        return F.timestamp_micros(column)
    elif type_.form in ("double", "whole"):
        return column.cast(spark_type)
    elif type_.is_time_of_day:
        return _time_of_day(column)
    elif type_.data_type == "string":
        return column
    else:
        value = _from_text(column, type_)
    refusal = F.raise_error(_note(name, type_, column, row)).cast(spark_type)
    return F.when(column.isNull(), F.lit(None).cast(spark_type)).otherwise(F.coalesce(value, refusal))


def _array(column: Column, type_: ColumnType) -> Column:
    """Return an array from the JSON of its texts; NULL if dimensions differ or an element is refused."""
    from pyspark.sql import functions as F

    texts = "array<" * type_.dimensions + "string" + ">" * type_.dimensions
    array = F.when(column.startswith("["), F.from_json(column, texts))
    if type_.data_type == "string" and not type_.is_time_of_day:
        return array
    nested_levels = [array]
    for _ in range(type_.dimensions - 1):
        nested_levels.append(F.flatten(nested_levels[-1]))
    refusal = F.exists(nested_levels[-1], lambda text: text.isNotNull() & _from_text(text, type_).isNull())
    return F.when(~F.coalesce(refusal, F.lit(False)), _transform_elements(array, type_, type_.dimensions))


def _transform_elements(array: Column, type_: ColumnType, dimensions: int) -> Column:
    from pyspark.sql import functions as F

    if dimensions == 1:
        return F.transform(array, lambda text: _from_text(text, type_))
    return F.transform(array, lambda inner: _transform_elements(inner, type_, dimensions - 1))


def _from_text(text: Column, type_: ColumnType) -> Column:
    """Return a value from its text; NULL if the type does not hold it exactly."""
    from pyspark.sql import functions as F

    if type_.is_time_of_day:
        return _time_of_day(text)
    match type_.data_type:
        case "date":
            return F.when((F.length(text) == 10) & (text >= "0001"), text.try_cast("date"))
        case "timestamp_ntz" | "timestamp" as moment:
            whole = F.concat(text, F.lit("Z")) if type_.form == "text" and moment == "timestamp" else text
            has_valid_year = (F.substring(text, 5, 1) == "-") & (text >= "0001") & ~text.endswith("BC")
            return F.when(has_valid_year, whole.try_cast(moment))
        case "binary":
            return F.unhex(F.substring(text, 3, 2**31 - 1))
        case decimal if decimal.startswith("decimal") and not type_.fixed_scale:
            scale = int(decimal.rstrip(")").rpartition(",")[2])
            digits = F.length(F.rtrim(text, F.lit("0"))) - F.instr(text, ".")
            return F.when((F.instr(text, ".") == 0) | (digits <= scale), text.try_cast(decimal))
        case type_name:
            return text.try_cast(
                {"short": "smallint", "integer": "int", "long": "bigint"}.get(type_name, type_name)
            )


def _time_of_day(text: Column) -> Column:
    """Return a time as ``HH:MM:SS``, with six digits after the point if it has a fraction.

    What follows, such as an offset, stays.
    """
    from pyspark.sql import functions as F

    filled = F.concat(
        F.substring_index(text, ".", 1), F.lit("."), F.rpad(F.substring_index(text, ".", -1), 6, "0")
    )
    return F.when(F.instr(text, ".") == 0, text).otherwise(F.regexp_replace(filled, r"\.000000$", ""))


def _cell(name: str, type_: ColumnType) -> Column:
    """Return a value for the description of a row."""
    from pyspark.sql import functions as F

    column = F.col(quoted(name))
    value = F.timestamp_micros(column) if type_.form == "microseconds" and not type_.dimensions else column
    return F.substring(value.cast("string"), 1, MAX_SHOWN_LETTERS)


def _note(name: str, type_: ColumnType, text: Column, row: Column, expected: str | None = None) -> Column:
    from pyspark.sql import functions as F

    displayed = F.when(text.startswith(OTHER_ARRAY), F.substring(text, 2, MAX_SHOWN_LETTERS)).otherwise(
        F.substring(text, 1, MAX_SHOWN_LETTERS)
    )
    value, row_hex = (F.hex(F.encode(part, "utf-8")) for part in (displayed, row))
    return F.concat(F.lit(type_.note(name, expected)), value, F.lit(":"), row_hex, F.lit(":"))
