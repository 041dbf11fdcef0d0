"""Read files as lines of text, unparsed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from partitions.path.source import SourceFile
from partitions.records.options import non_utf8_encoding, with_lower_names
from resources.sources.files.scan import Scanner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TEXT = "value"
"""The column with the text of a line."""

MAX_AT_ONCE = 10_000
"""The most lines that are collected at once; more are streamed."""


def lines_of(
    spark: SparkSession,
    scanner: Scanner,
    files: Sequence[SourceFile],
    options: Mapping[str, str],
    **more: str,
) -> DataFrame:
    """Return the lines of files as text, decoded as the options say."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StringType, StructType

    names = with_lower_names(options)
    text_options = {"lineSep": names["linesep"]} if "linesep" in names else {}
    encoding = non_utf8_encoding(scanner.options_of(options))
    if encoding is not None:
        text_options["encoding"] = encoding
    rows = scanner.scan(spark, files, StructType().add(TEXT, StringType()), "text", {**text_options, **more})
    if encoding is None:
        return rows
    return rows.withColumn(TEXT, F.decode(F.col(TEXT).cast("binary"), encoding))
