"""Spark conditions that test whether texts are exact values of a type.

See docs/reference/files.md, Exact values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.records.forms import (
    DATE_SHAPE,
    INSTANT_SHAPE,
    INTEGER_BITS,
    LOCAL_TIME_SHAPE,
    NUMBER_SHAPE,
    SIGNED_WHOLE_SHAPE,
    WHOLE_BITS,
    WHOLE_SHAPE,
    TextOptions,
    Type,
    text_form,
)
from resources.sources.files.converting import lies_within_years

if TYPE_CHECKING:
    from pyspark.sql import Column

_END = r"(?![\s\S])"


def is_exact(text: Column, data_type: Type, reading: TextOptions) -> Column:
    """Return whether a text is an exact value of a type; NULL for NULL.

    Args:
        text: a column of texts.
        data_type: without parts, in Spark's JSON form; a string holds any text.
        reading: how the definition reads texts.
    """
    from pyspark.sql import functions as F

    return F.when(text.isNotNull(), _is_exact_text(text, data_type, reading))


def _is_exact_text(text: Column, data_type: Type, reading: TextOptions) -> Column:
    """Return whether a text that is not NULL is an exact value of a type."""
    from pyspark.sql import functions as F

    if not isinstance(data_type, str):
        return F.lit(True)
    if data_type in INTEGER_BITS:
        sql_type = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}[data_type]
        shape = WHOLE_SHAPE if reading.inferred else SIGNED_WHOLE_SHAPE
        return _is_whole(text, shape) & text.try_cast(sql_type).isNotNull()
    if data_type in WHOLE_BITS and not reading.inferred:
        near = text.try_cast(data_type)
        is_whole = _is_whole(text, SIGNED_WHOLE_SHAPE)
        wide = "decimal(38,0)"
        is_same = near.try_cast(wide) == text.try_cast(wide)
        is_finite = ~near.isin(float("inf"), float("-inf"))
        number = _is_whole(text, NUMBER_SHAPE) & is_finite & (~is_whole | F.coalesce(is_same, F.lit(False)))
        return text.isin(*reading.specials) | number
    if data_type == "date" and not reading.own_dates:
        return _is_whole(text, DATE_SHAPE) & text.try_cast("date").isNotNull()
    if data_type in ("timestamp", "timestamp_ntz") and not reading.own_times:
        shape = INSTANT_SHAPE if data_type == "timestamp" else LOCAL_TIME_SHAPE
        return _is_whole(text, shape) & F.coalesce(
            lies_within_years(text.try_cast(data_type), data_type), F.lit(False)
        )
    pattern = text_form(data_type, reading)
    return F.lit(True) if pattern is None else _is_whole(text, pattern)


def _is_whole(text: Column, pattern: str) -> Column:
    """Return whether a pattern matches the whole text, without a trailing line break."""
    return text.rlike(f"^{pattern}{_END}")
