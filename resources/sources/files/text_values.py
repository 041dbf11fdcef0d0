"""Values of columns from texts that were read as they stand in a file, by Spark's own rules for texts and the options of the reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import Column
    from pyspark.sql.types import DataType, StructType

XML_SPACES = " \t\r\n"
"""What XML takes for spaces: others, such as a no-break space, are letters of a text."""

_MEANING = ("dateformat", "timestampformat", "timestampntzformat", "locale", "timezone", "nanvalue", "positiveinf", "negativeinf")  # fmt: skip
"""Options that say what a text means."""

_ONE_VALUE: Mapping[str, str] = {"sep": "\u0001", "quote": "\u0000"}
"""A line of CSV with no sign of its own: Spark reads the texts of CSV and XML by the same rules, and has a function for CSV that takes one value."""

_NO_VALUE = "[\\r\\n\\x01]"


def trimmed(text: Column) -> Column:
    """Return a text without the spaces of XML around it."""
    from pyspark.sql import functions as F

    return F.btrim(text, F.lit(XML_SPACES))


def value_of(text: Column, data_type: DataType, options: Mapping[str, str]) -> Column:
    """Return the value that Spark reads a text as, spaces around it left out; NULL if it cannot.

    Args:
        text: a column of texts.
        data_type: without parts, and no text.
        options: of the reader, of which those count that say what a text means.
    """
    from pyspark.sql import functions as F

    meaning = {name: value for name, value in options.items() if name.lower() in _MEANING}
    line = F.from_csv(trimmed(text), f"v {data_type.simpleString()}", {**meaning, **_ONE_VALUE})
    return F.when(~trimmed(text).rlike(_NO_VALUE), line.getField("v"))


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
    return F.when(~trimmed(value).isin("", null), value_of(value, data_type, options))


def _as_text(data_type: DataType) -> DataType:
    from pyspark.sql.types import ArrayType, MapType, StringType, StructType, VariantType

    if isinstance(data_type, StructType):
        return with_texts(data_type)
    if isinstance(data_type, ArrayType):
        return ArrayType(_as_text(data_type.elementType))
    if isinstance(data_type, MapType):
        return MapType(data_type.keyType, _as_text(data_type.valueType))
    return data_type if isinstance(data_type, VariantType) else StringType()
