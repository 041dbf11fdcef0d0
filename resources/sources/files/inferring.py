"""Infer the type of text columns: the first type that holds all texts exactly.

See docs/reference/files.md, Exact values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from partitions.records.forms import TextOptions
from partitions.records.options import with_lower_names
from partitions.sources.formats import Option
from resources.sources.files.exact_texts import is_exact

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_TYPES = ("integer", "long", "double", "boolean", "date", "timestamp")
"""Candidate types of texts, in the order in which they are tried; longer whole numbers become a decimal."""

_MAX_DIGITS = 38
_WHOLE = r"^[-+]?+[0-9]++(?![\s\S])"
_WHOLE_ALONE = r"^-?+(?:0|[1-9][0-9]*+)(?![\s\S])"


def types_of_texts(
    rows: DataFrame,
    texts: Sequence[Column],
    options: Mapping[str, Option],
    reading: TextOptions,
    *,
    several: bool,
) -> list[str | None]:
    """Return the type of each text column, in one pass over all rows; None for a column without a value.

    Text if no other type holds all values.

    Args:
        rows: the rows to inspect.
        texts: the columns.
        options: the reader's options, which may give the form of dates and times, or switch inference off.
        reading: how the definition reads texts.
        several: whether a column holds an array of texts a row, not one text.
    """
    from pyspark.sql import functions as F

    names = with_lower_names(options)
    types = () if names.get("inferschema", "true").lower() == "false" else _TYPES
    whole_pattern = _WHOLE_ALONE if reading.inferred else _WHOLE

    text = F.col("text")
    length = F.when(text.rlike(whole_pattern), F.length(F.replace(text, F.lit("-")))).otherwise(
        F.lit(_MAX_DIGITS + 1)
    )
    if not texts:
        return []
    # One row for each text: aggregates for each column made a plan whose analysis took minutes with hundreds of columns.
    columns = F.array(*(texts if several else [F.array(column) for column in texts]))
    columns_of_texts = rows.select(F.posexplode(columns).alias("place", "texts"))
    values = columns_of_texts.select("place", F.explode("texts").alias("text")).where(text.isNotNull())
    aggregates = [
        F.bool_and(_has_type(text, data_type, names, reading)).alias(data_type) for data_type in types
    ]
    answers = {
        row["place"]: row.asDict()
        for row in values.groupBy("place").agg(*aggregates, F.max(length).alias("digits")).collect()
    }
    return [_type_of(answers.get(place), types) for place in range(len(texts))]


def type_of_sample(first: str | None, sample: str | None) -> str | None:
    """Return the type of a column for a sample of files; ignore texts that only later files have.

    A column without a value in the first file stays text, whatever later files hold: None.

    Args:
        first: the type of its values in the first file; None if it has none.
        sample: the type of its values in all files; None if they have none.
    """
    return first if first is None or "string" in (first, sample) else sample


def _has_type(text: Column, data_type: str, options: Mapping[str, str], reading: TextOptions) -> Column:
    """Return whether a text is of a type, in the form that the options name, if they name one."""
    from pyspark.sql import functions as F

    if data_type == "date" and reading.own_dates:
        value = F.try_to_date(text, options["dateformat"])
    elif data_type == "timestamp" and "timestampformat" in options:
        value = F.try_to_timestamp(text, F.lit(options["timestampformat"]))
    elif data_type == "timestamp" and reading.own_times:
        return F.lit(False)
    else:
        return is_exact(text, data_type, reading)
    return F.when(text.isNotNull(), value.isNotNull())


def _type_of(answer: Mapping[str, Any] | None, types: Sequence[str]) -> str | None:
    if answer is None:
        return None
    fitting = next((data_type for data_type in types if answer.get(data_type)), None)
    digits = answer.get("digits")
    if fitting in (None, "double") and types and digits is not None and digits <= _MAX_DIGITS:
        return f"decimal({digits},0)"
    return fitting or "string"
