"""Convert raw texts to typed values by Spark's own rules and the reader's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from partitions.records.csv_form import UNUSED_CHARACTER

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

XML_SPACES = " \t\r\n"
"""XML's spaces; others, such as a no-break space, belong to a text."""

_OF_LINES = frozenset(
    {"quote", "escape", "comment", "linesep", "sep", "delimiter", "header", "encoding", "charset"}
) | {"multiline", "mode"}
"""Options about lines, in lower case, that do not change a value."""

_QUOTES_DOUBLED: Mapping[str, str] = {"escape": '"', "charToEscapeQuoteEscaping": UNUSED_CHARACTER}
"""Options that double a quote within quotes, whatever precedes it."""


def trim(text: Column) -> Column:
    """Return a text without surrounding XML spaces."""
    from pyspark.sql import functions as F

    return F.btrim(text, F.lit(XML_SPACES))


def parse_text(text: Column, data_type: DataType, options: Mapping[str, str]) -> Column:
    """Return the value that Spark's CSV and XML readers give a text; NULL if they cannot.

    The text is read as the only value of a CSV line: both readers have the same rules.

    Args:
        text: a column of texts; surrounding spaces count.
        data_type: the column's type, which has no parts.
        options: the reader's options; those about lines are ignored.
    """
    from pyspark.sql import functions as F

    meaning = {name: value for name, value in options.items() if name.lower() not in _OF_LINES}
    quote = F.lit('"')
    line = F.concat(quote, F.replace(text, quote, F.lit('""')), quote)
    schema = f"v {data_type.simpleString()}"
    return F.from_csv(line, schema, {**meaning, **_QUOTES_DOUBLED, "mode": "PERMISSIVE"}).getField("v")


def with_texts(schema: StructType) -> StructType:
    """Return columns with the same parts, but text leaves."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, _as_text(field.dataType)) for field in schema.fields])


def convert_texts(value: Column, data_type: DataType, null: str, options: Mapping[str, str]) -> Column:
    """Convert a value whose leaves were read as texts to its column's type.

    Args:
        value: the value of a column of :func:`with_texts`.
        data_type: the column's own type.
        null: the text that stands for NULL beside the empty one.
        options: the reader's options.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if data_type == _as_text(data_type):
        return value
    if isinstance(data_type, StructType):
        parts = [
            convert_texts(value.getField(field.name), field.dataType, null, options).alias(field.name)
            for field in data_type.fields
        ]
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(data_type, ArrayType):
        return F.transform(value, lambda item: convert_texts(item, data_type.elementType, null, options))
    if isinstance(data_type, MapType):
        return F.transform_values(
            value, lambda _, item: convert_texts(item, data_type.valueType, null, options)
        )
    return F.when(~trim(value).isin("", null), parse_text(trim(value), data_type, options))


def _as_text(data_type: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType, VariantType

    if isinstance(data_type, StructType):
        return with_texts(data_type)
    if isinstance(data_type, ArrayType):
        return ArrayType(_as_text(data_type.elementType))
    if isinstance(data_type, MapType):
        return MapType(data_type.keyType, _as_text(data_type.valueType))
    return data_type if isinstance(data_type, VariantType) else StringType()
