"""Whether texts that Spark has read are exact values of a type: as conditions of Spark (docs/guide-files.md, Exact values)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.records.forms import INTEGER_BITS, WHOLE_BITS, Reading, Type, text_form

if TYPE_CHECKING:
    from pyspark.sql import Column

_END = r"(?![\s\S])"
_DATE = r"^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_CLOCK = r"[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6}+0*+)?+)?+"
_ZONE = r"(?:Z| ?+(?:UTC|GMT)| ?+[+-][0-9]{2}(?::?+[0-9]{2})?+)"
_LOCAL = rf"{_DATE}(?:[T ]{_CLOCK})?+"
_INSTANT = rf"{_DATE}(?:[T ]{_CLOCK}{_ZONE}?+)?+"
_WHOLE = "^-?+(?:0|[1-9][0-9]*+)"
_SIGNED = "^[-+]?+[0-9]++"
_NUMBER = r"^[-+]?+(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][-+]?+[0-9]++)?+"


def is_exact(text: Column, data_type: Type, reading: Reading) -> Column:
    """Return whether a text is an exact value of a type; NULL of a text that is NULL.

    Args:
        text: a column of texts.
        data_type: without parts, in Spark's JSON form; texts hold any text.
        reading: what the definition says of texts.
    """
    from pyspark.sql import functions as F

    if not isinstance(data_type, str):
        return F.lit(True)
    if data_type in INTEGER_BITS:
        sql_type = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}[data_type]
        form = _WHOLE if reading.inferred else _SIGNED
        return text.rlike(form + _END) & text.try_cast(sql_type).isNotNull()
    if data_type in WHOLE_BITS and not reading.inferred:
        near = text.try_cast(data_type)
        is_whole = text.rlike(_SIGNED + _END)
        wide = "decimal(38,0)"
        same = near.try_cast(wide) == text.try_cast(wide)
        is_finite = ~near.isin(float("inf"), float("-inf"))
        number = text.rlike(_NUMBER + _END) & is_finite & (~is_whole | F.coalesce(same, F.lit(False)))
        return text.isin("NaN", "Inf", "-Inf") | number
    if data_type == "date" and not reading.own_dates:
        return text.rlike(_DATE + _END) & text.try_cast("date").isNotNull()
    if data_type in ("timestamp", "timestamp_ntz") and not reading.own_times:
        form = _INSTANT if data_type == "timestamp" else _LOCAL
        return text.rlike(form + _END) & text.try_cast(data_type).isNotNull()
    pattern = text_form(data_type, reading)
    return F.lit(True) if pattern is None else text.rlike(f"^{pattern}{_END}")
