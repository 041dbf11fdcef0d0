"""Tell whether a parsed value of a JSON record holds all of the record's own value.

The record's values are variants, which keep what Spark would cut or round.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.records.forms import TextOptions
from resources.sources.files.exact_texts import is_exact
from resources.sql import all_of

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType

_SECONDS = r"^-?+[0-9]{1,11}(?![\s\S])"
"""Seconds since 1970, as JSON may write a time."""

_TEXT = r'"(?:[^"\\]|\\.)*+"'
_WRITTEN_ANEW = r"[0-9][.eE]|(?<![0-9])0(?![0-9])"
"""Numbers in Spark's spelling whose original may differ, such as ``1.50``, ``1e3`` or ``-0``."""


def exact_part(
    members: Column, parsed: Column, name: str, data_type: DataType, reading: TextOptions
) -> Column:
    """Return the value of a pinned column; NULL if Spark has cut or rounded it, or a part of it."""
    from pyspark.sql import functions as F

    return F.when(fits_exactly(F.try_element_at(members, F.lit(name)), parsed, data_type, reading), parsed)


def fits_exactly(value: Column, parsed: Column, data_type: DataType, reading: TextOptions) -> Column:
    """Return whether a parsed value holds all of its variant."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if isinstance(data_type, StructType):
        members = F.try_variant_get(value, "$", "map<string,variant>")
        names = [field.name for field in data_type.fields]
        no_others = (
            F.size(F.map_filter(members, lambda name, member: ~name.isin(*names) & ~is_null(member))) == 0
        )
        inner = [
            _fits_within(
                F.try_element_at(members, F.lit(field.name)),
                parsed.getField(field.name),
                field.dataType,
                reading,
            )
            for field in data_type.fields
        ]
        all_fit = all_of([F.coalesce(no_others, F.lit(False)), *inner])
        return is_null(value) | (parsed.isNotNull() & all_fit)
    if isinstance(data_type, ArrayType):
        items = F.try_variant_get(value, "$", "array<variant>")
        items_fit = F.zip_with(
            items, parsed, lambda own, read: _fits_within(own, read, data_type.elementType, reading)
        )
        all_items_fit = F.forall(items_fit, lambda fits: fits)
        return is_null(value) | (parsed.isNotNull() & F.coalesce(all_items_fit, F.lit(False)))
    if isinstance(data_type, MapType):
        members = F.try_variant_get(value, "$", "map<string,variant>")
        all_items_fit = F.forall(
            F.map_keys(members),
            lambda key: _fits_within(
                F.try_element_at(members, key), F.try_element_at(parsed, key), data_type.valueType, reading
            ),
        )
        return is_null(value) | (parsed.isNotNull() & F.coalesce(all_items_fit, F.lit(False)))
    return is_null(value) | (parsed.isNotNull() & _is_exact_value(value, data_type, reading))


def _fits_within(value: Column, parsed: Column, data_type: DataType, reading: TextOptions) -> Column:
    """Return whether a parsed value inside another one holds all of its variant.

    A number that becomes text must keep its spelling.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType

    if not isinstance(data_type, StringType):
        return fits_exactly(value, parsed, data_type, reading)
    beside_texts = F.regexp_replace(parsed, _TEXT, "")
    is_text = F.schema_of_variant(value) == "STRING"
    return is_null(value) | is_text | ~F.coalesce(beside_texts.rlike(_WRITTEN_ANEW), F.lit(True))


def _is_exact_value(value: Column, data_type: DataType, reading: TextOptions) -> Column:
    """Return whether the column's type holds a value exactly; Spark has already told numbers from texts."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import (
        BinaryType,
        DateType,
        DecimalType,
        FractionalType,
        TimestampNTZType,
        TimestampType,
    )

    if isinstance(data_type, BinaryType):
        return F.schema_of_variant(value) == "STRING"
    if not isinstance(data_type, DateType | FractionalType | TimestampNTZType | TimestampType):
        return F.lit(True)
    text = F.try_variant_get(value, "$", "string")
    exact = is_exact(text, data_type.jsonValue(), reading)
    if isinstance(data_type, DecimalType):  # a variant has no more digits of such a number than a double
        exact = exact & (F.schema_of_variant(value) != "DOUBLE")
    if isinstance(data_type, TimestampType):
        exact = exact | text.rlike(_SECONDS)
    return F.coalesce(exact, F.lit(False))


def is_null(value: Column) -> Column:
    """Return whether a value is missing or JSON's null."""
    from pyspark.sql import functions as F

    return value.isNull() | F.coalesce(F.is_variant_null(value), F.lit(True))
