"""Unknown fields of records with names: each record is parsed a second time, as a variant (docs/adr/0012)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.path.source import SourceFile
from resources.sources.files.fields import RECORD, unknown_fields
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.formats.records import CORRUPT
from resources.sources.files.pinned import PinnedSchema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def unknown_in_records(
    form: FormatReader, spark: SparkSession, files: Sequence[SourceFile], pinned: PinnedSchema
) -> dict[str, list[str]]:
    """Return the fields of one record of each file that the pinned schema lacks, dotted, by path."""
    from pyspark.sql.types import StringType, StructField, StructType, VariantType

    # A name that is there twice is no reason to look away: the reader takes its last value.
    spark.conf.set("spark.sql.variant.allowDuplicateKeys", "true")
    schema = StructType([StructField(RECORD, VariantType()), StructField(CORRUPT, StringType())])
    options = {
        "singleVariantColumn": RECORD,
        "mode": "PERMISSIVE",  # what does not parse is told when it is loaded
        "columnNameOfCorruptRecord": CORRUPT,
    }
    names: dict[str, list[str]] = {}
    for group in form.scanner.together([file for file in files if file.size > 0]):
        path = form.scanner.path_of(group)
        names |= unknown_fields(form.scan(spark, group, schema, **options), pinned.struct, path)
    return names
