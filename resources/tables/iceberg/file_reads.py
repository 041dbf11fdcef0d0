"""Read data files of an Iceberg table straight as Parquet, if every reader reads them as Iceberg does.

Spark then sets up no catalog and plans no scan, which takes longer than a small commit's rows. See
docs/explanation/adr/0046.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from partitions.errors import SourceError
from resources.connections.places import Place
from resources.tables.data_files.footers import file_footer
from resources.tables.data_files.reading import PLAIN_PATH, is_spark_readable, read_with_file_names
from resources.tables.iceberg.catalog import key_below
from resources.tables.iceberg.file_sets import LiveFile
from resources.tables.iceberg.metadata import Metadata, spark_schema
from resources.tables.iceberg.plain_table import PlainTable, has_plain_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MAX_FILES = 32
"""Most files whose footers are read; of more files Iceberg's own read is not the expensive part."""


def read_plain_files(
    spark: SparkSession,
    place: Place,
    metadata: Metadata,
    snapshot: int,
    files: Sequence[LiveFile],
    file_column: str,
) -> DataFrame | None:
    """Return the rows of data files with the name of each row's file; None if Iceberg must read them.

    Args:
        spark: session.
        place: place of the table.
        metadata: metadata of the table.
        snapshot: snapshot whose columns the result has.
        files: data files, each once.
        file_column: name of the column for the name.
    """
    from pyspark.sql.types import StructType

    keys = plain_keys(place, metadata, snapshot, files)
    if keys is None:
        return None
    columns = StructType.fromJson(spark_schema(metadata.schema))
    return read_with_file_names(spark, [place.child(key).spark_url for key in keys], columns, file_column)


def plain_keys(
    place: Place, metadata: Metadata, snapshot: int, files: Sequence[LiveFile]
) -> list[str] | None:
    """Return the paths of files below the table's place if any Parquet reader reads them as Iceberg does.

    They hold exactly the snapshot's columns, by name, id and type, and all of their rows are live. Else
    None.
    """
    names = [field["name"].casefold() for field in metadata.schema["fields"]]
    if (
        not 0 < len(files) <= _MAX_FILES
        or len({file_name(file) for file in files}) < len(files)
        or metadata.schema_of(snapshot) != metadata.schema
        or len(set(names)) < len(names)
        or not all(map(has_plain_type, metadata.schema["fields"]))
    ):
        return None
    table = PlainTable(metadata)
    keys = [_plain_key(place, table, file) for file in files]
    return [key for key in keys if key is not None] if None not in keys else None


def file_name(file: LiveFile) -> str:
    """Return the last part of a data file's path."""
    return file.path.rpartition("/")[2]


def _plain_key(place: Place, table: PlainTable, file: LiveFile) -> str | None:
    key = key_below(place, file.path)
    if (
        key is None
        or file.deletes
        or file.file.get("key_metadata")
        or str(file.file["file_format"]).upper() != "PARQUET"
        or not PLAIN_PATH.fullmatch(key)
        or not is_spark_readable(place.child(key).url)
    ):
        return None
    try:
        footer = file_footer(place, key, int(file.file["file_size_in_bytes"]))
        return key if table.is_read_by_names(footer) else None
    except (SourceError, OSError, ValueError, TypeError):
        return None  # Iceberg's own read reports what is wrong
