"""Read rows of a Delta version straight from its Parquet files, without Delta.

See docs/explanation/adr/0025.

This works only for tables whose files are exactly their rows. Deletion vectors, column mapping and every
unknown feature are left to Delta.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

from partitions.errors import TargetError
from partitions.file_statistics import FileMatch, match_statistics
from partitions.predicate import Predicate, columns_of
from resources.sql import quoted
from resources.tables.data_files.reading import files_reader, is_spark_readable
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_limits import are_plain_columns, extents_of, is_supported_location

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_MAX_FILES = 32
"""Above it Spark checks files in a job of its own, and Delta's overhead matters less."""
_MAX_PARTITIONS, _MAX_GROUPS = 4, 32
"""Limits on combinations of partition values, each of which is a separate read; the second applies if all files are read."""
_FEATURES = frozenset({"timestampNtz"})
PLAIN_PATH = re.compile(r"(?!/)(?:[A-Za-z0-9_.=/+~-])+")
"""A path below the table's folder that the log does not escape."""
_GLOB_CHARACTERS = frozenset("{}*?")
"""Characters that turn a path into a pattern for Spark."""
_PARTITION_TYPES = frozenset({"string", "date", "long", "integer", "short", "byte"})
"""Types whose values every writer spells alike."""


def read_files(log: DeltaLog, spark: SparkSession, version: int, rows: Predicate) -> DataFrame | None:
    """Return the rows of a version that meet a predicate, and maybe others; None if Delta must read them.

    Args:
        log: log of the table.
        spark: session.
        version: version of the table.
        rows: rows that the result must include.
    """
    return _read(log, spark, version, partial(_matching_files, rows=rows))


def read_named_files(
    log: DeltaLog,
    spark: SparkSession,
    version: int,
    files: Mapping[str, Mapping[str, str | None]],
    file_column: str,
) -> DataFrame | None:
    """Return the rows of files with the name of each row's file; None if Delta must read them.

    Args:
        log: log of the table.
        spark: session.
        version: version whose columns the result has.
        files: texts of the partition values, by the file's path in the log.
        file_column: name of the column for the file name.
    """

    def named_files(_: DeltaTable, partition_columns: Sequence[str]) -> list[dict[str, Any]]:
        return [
            {"path": path, **{f"partition.{name}": values.get(name) for name in partition_columns}}
            for path, values in files.items()
        ]

    return _read(log, spark, version, named_files, file_column) if files else None


def _read(
    log: DeltaLog,
    spark: SparkSession,
    version: int,
    files_of: Callable[[DeltaTable, Sequence[str]], list[dict[str, Any]]],
    file_column: str | None = None,
) -> DataFrame | None:
    """Return the rows of files of a version; None if Delta must read them.

    Args:
        log: log of the table.
        spark: session.
        version: version of the table.
        files_of: returns the files, from the table and its partition columns.
        file_column: name of a column for the file name; None: no such column, and fewer files at once.
    """
    from deltalake.exceptions import DeltaError
    from pyspark.sql.types import StructType

    if not is_supported_location(log.place) or _GLOB_CHARACTERS & set(log.place.url):
        return None
    try:
        table = log.table(version)
        if table is None or not _needs_no_reader_features(table):
            return None
        partition_columns = table.metadata().partition_columns
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        files = files_of(table, partition_columns)
    except (TargetError, DeltaError, OSError, ValueError, OverflowError):
        return None  # Delta's own read reports what is wrong
    limits = (_MAX_FILES, _MAX_PARTITIONS) if file_column is None else (len(files), _MAX_GROUPS)
    if not _can_be_read(files, partition_columns, schema, *limits):
        return None
    return _read_frame(log, spark, files, partition_columns, schema, file_column)


def _needs_no_reader_features(table: DeltaTable) -> bool:
    """Return whether a plain Parquet reader reads a table correctly."""
    protocol, configuration = table.protocol(), table.metadata().configuration
    return (
        protocol.min_reader_version in (1, 3)
        and set(protocol.reader_features or ()) <= _FEATURES
        and configuration.get("delta.columnMapping.mode", "none") == "none"
        and are_plain_columns(table)
    )


def _matching_files(
    table: DeltaTable, partition_columns: Sequence[str], *, rows: Predicate
) -> list[dict[str, Any]]:
    """Return the files that may hold rows, with the log's statistics of the compared columns.

    Raises:
        ValueError: Python cannot represent a value.
    """
    import pyarrow as pa

    actions = pa.table(table.get_add_actions(flatten=True))
    compared_fields = {
        f"{part}.{column}" for column in columns_of(rows) for part in ("min", "max", "null_count")
    }
    constant_fields = {"path", "num_records", *(f"partition.{column}" for column in partition_columns)}
    selected_actions = actions.select(
        [name for name in actions.column_names if name in constant_fields | compared_fields]
    )
    return [
        file
        for file in selected_actions.to_pylist()
        if match_statistics(rows, extents_of(file, rows)) is not FileMatch.NONE
    ]


def _can_be_read(
    files: Sequence[Mapping[str, Any]],
    partition_columns: Sequence[str],
    schema: StructType,
    most_files: int,
    most_partitions: int,
) -> bool:
    return (
        len(files) <= most_files
        and all(PLAIN_PATH.fullmatch(file["path"]) and ".." not in file["path"].split("/") for file in files)
        and all(is_spark_readable(file["path"]) for file in files)
        and all(
            column in schema.names and _type(schema, column) in _PARTITION_TYPES
            for column in partition_columns
        )
        and len({_partition_values(file, partition_columns) for file in files}) <= most_partitions
    )


def _type(schema: StructType, column: str) -> str:
    type_name: Any = schema[column].dataType.jsonValue()
    return str(type_name)


def _partition_values(file: Mapping[str, Any], partition_columns: Sequence[str]) -> tuple[Any, ...]:
    return tuple(file[f"partition.{column}"] for column in partition_columns)


def _read_frame(
    log: DeltaLog,
    spark: SparkSession,
    files: Sequence[Mapping[str, Any]],
    partition_columns: Sequence[str],
    schema: StructType,
    file_column: str | None = None,
) -> DataFrame:
    """Return the rows of files with their partition values, which the files do not contain.

    Add the name of each row's file if ``file_column`` is set.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    if not files:
        return spark.createDataFrame([], schema)
    file_schema = StructType([field for field in schema.fields if field.name not in partition_columns])
    by_values: dict[tuple[Any, ...], list[str]] = {}
    for file in files:
        by_values.setdefault(_partition_values(file, partition_columns), []).append(
            log.place.child(file["path"]).spark_url
        )
    frames = []
    for values, paths in by_values.items():
        value_of_column = dict(zip(partition_columns, values, strict=True))
        columns = [
            (
                F.lit(_literal(value_of_column[field.name])).cast(field.dataType).alias(field.name)
                if field.name in value_of_column
                else F.col(quoted(field.name))
            )
            for field in schema.fields
        ]
        name_columns = [] if file_column is None else [F.col(quoted(file_column))]
        rows = (
            read_existing_files(spark, paths, file_schema)
            if file_column is None
            else read_with_file_names(spark, paths, file_schema, file_column)
        )
        frames.append(rows.select(*columns, *name_columns))
    return reduce(lambda above, below: above.unionAll(below), frames)


def read_existing_files(spark: SparkSession, paths: Sequence[str], schema: StructType) -> DataFrame:
    """Return the rows of files, and fail if one is missing.

    Spark checks that a file exists before it lists it, and reads a file that vanishes in between as empty.
    So it checks once more after the listing: a file that exists then existed during the listing. The
    second read has no rows, and no part in the job.
    """
    return _check_after_listing(lambda: files_reader(spark, schema).parquet(*paths))


def read_with_file_names(
    spark: SparkSession, paths: Sequence[str], schema: StructType, file_column: str
) -> DataFrame:
    """Return the rows of files as :func:`read_existing_files` does, with the name of each row's file."""

    def read() -> DataFrame:
        rows = files_reader(spark, schema).parquet(*paths)
        # Not by the name `_metadata`, which a column of the files may have.
        return rows.withColumn(file_column, rows.metadataColumn("_metadata").getField("file_name"))

    return _check_after_listing(read)


def _check_after_listing(read: Callable[[], DataFrame]) -> DataFrame:
    # Embedded Spark lists the files once, when the frame is created; a server lists them for each query.
    return read().unionAll(read().limit(0))


def _literal(value: Any) -> Any:
    """Return a value that every kind of session encodes alike: a date as text."""
    return value.isoformat() if isinstance(value, date) else value
