"""Check that Spark knows the encoding in a source's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from partitions.errors import ConfigurationError
from partitions.records.options import ENCODING_OPTIONS, encoding_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNKNOWN = ("INVALID_PARAMETER_VALUE.CHARSET", "UnsupportedCharset", "IllegalCharsetName")


def check_encoding(spark: SparkSession, options: Mapping[str, Any], dataflow: str) -> None:
    """Raise ConfigurationError if Spark does not know the encoding: otherwise every file would look bad.

    Args:
        spark: a session.
        options: the options of the source.
        dataflow: the dataflow's name.
    """
    from pyspark.sql import functions as F

    encoding = encoding_of(options)
    if encoding is None:
        return
    try:
        spark.range(1).select(F.decode(F.lit("").cast("binary"), encoding)).collect()
    except Exception as error:
        if not any(code in str(error) for code in _UNKNOWN):
            raise
        name = next(key for key in options if key.lower() in ENCODING_OPTIONS)
        raise ConfigurationError(
            f"dataflow {dataflow}: source.options.{name}: expected an encoding that Java knows, such as ISO-8859-1, windows-1252 or UTF-16LE,"
            f" found {encoding!r}"
        ) from None
