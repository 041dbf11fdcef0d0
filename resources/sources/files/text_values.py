"""Values of columns from texts that were read as they stand in a file, by Spark's own rules for texts and the options of the reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from partitions.records.csv_form import NO_MARK

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

XML_SPACES = " \t\r\n"
"""What XML takes for spaces: others, such as a no-break space, are letters of a text."""

_OF_LINES = frozenset(
    {"quote", "escape", "comment", "linesep", "sep", "delimiter", "header", "encoding", "charset"}
) | {"multiline", "mode"}
"""Options, in lower case, that say nothing of a value."""

_QUOTES_DOUBLED: Mapping[str, str] = {"escape": '"', "charToEscapeQuoteEscaping": NO_MARK}
"""How a quote stands within quotes, whatever stands before it."""


def trimmed(text: Column) -> Column:
    """Return a text without the spaces of XML around it."""
    from pyspark.sql import functions as F

    return F.btrim(text, F.lit(XML_SPACES))


def value_of(text: Column, data_type: DataType, options: Mapping[str, str]) -> Column:
    """Return the value that Spark reads a text as, as the only value of a line of CSV: its readers of CSV and XML have the same rules; NULL if it cannot.

    Args:
        text: a column of texts; spaces around it count.
        data_type: without parts.
        options: of the reader, of which those count that say what a text means.
    """
    from pyspark.sql import functions as F

    meaning = {name: value for name, value in options.items() if name.lower() not in _OF_LINES}
    quote = F.lit('"')
    line = F.concat(quote, F.replace(text, quote, F.lit('""')), quote)
    schema = f"v {data_type.simpleString()}"
    return F.from_csv(line, schema, {**meaning, **_QUOTES_DOUBLED, "mode": "PERMISSIVE"}).getField("v")


def with_texts(schema: StructType) -> StructType:
    """Return columns with the same parts, whose leaves are texts."""
    from pyspark.sql.types import StructField, StructType

    return StructType([StructField(field.name, _as_text(field.dataType)) for field in schema.fields])


def typed(value: Column, data_type: DataType, null: str, options: Mapping[str, str]) -> Column:
    """Return a value whose leaves were read as texts as a type.

    Args:
        value: of a column of :func:`with_texts`.
        data_type: the column's own type.
        null: the text that stands for NULL beside the empty one.
        options: of the reader.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, MapType, StructType

    if data_type == _as_text(data_type):
        return value
    if isinstance(data_type, StructType):
        parts = [
            typed(value.getField(field.name), field.dataType, null, options).alias(field.name)
            for field in data_type.fields
        ]
        return F.when(value.isNotNull(), F.struct(*parts))
    if isinstance(data_type, ArrayType):
        return F.transform(value, lambda item: typed(item, data_type.elementType, null, options))
    if isinstance(data_type, MapType):
        return F.transform_values(value, lambda _, item: typed(item, data_type.valueType, null, options))
    return F.when(~trimmed(value).isin("", null), value_of(trimmed(value), data_type, options))


def _as_text(data_type: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType, VariantType

    if isinstance(data_type, StructType):
        return with_texts(data_type)
    if isinstance(data_type, ArrayType):
        return ArrayType(_as_text(data_type.elementType))
    if isinstance(data_type, MapType):
        return MapType(data_type.keyType, _as_text(data_type.valueType))
    return data_type if isinstance(data_type, VariantType) else StringType()
