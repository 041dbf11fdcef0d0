"""Read rows of a Delta version straight from its Parquet files, without Delta.

See docs/explanation/adr/0025.

This works only for tables whose files are exactly their rows. Deletion vectors, column mapping and every
unknown feature are left to Delta.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from functools import reduce
from typing import TYPE_CHECKING, Any

from partitions.errors import TargetError
from partitions.file_statistics import FileMatch, match_statistics
from partitions.predicate import Predicate, columns_of
from resources.connections.places import Place
from resources.sql import quoted
from resources.tables.data_files.reading import (
    PLAIN_PATH,
    is_spark_readable,
    read_existing_files,
    read_with_file_names,
)
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.log_state import Action, LogState
from resources.tables.delta.own_limits import are_plain_fields, extents_of, is_supported_location

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_MAX_FILES = 32
"""Above it Spark checks files in a job of its own, and Delta's overhead matters less."""
_MAX_PARTITIONS, _MAX_GROUPS = 4, 32
"""Limits on combinations of partition values, each of which is a separate read; the second applies if all files are read."""
_FEATURES = frozenset({"timestampNtz"})
_FEATURES_OF_OTHER_FILES = frozenset({"deletionVectors", "v2Checkpoint", "vacuumProtocolCheck"})
"""Features that change nothing for a file without a deletion vector, if the log was read."""
_GLOB_CHARACTERS = frozenset("{}*?")
"""Characters that turn a path into a pattern for Spark."""
_PARTITION_TYPES = frozenset({"string", "date", "long", "integer", "short", "byte"})
"""Types whose values every writer spells alike."""


def read_named_files(
    log: DeltaLog, spark: SparkSession, state: LogState, files: Sequence[Action], file_column: str
) -> DataFrame | None:
    """Return the rows of files with the name of each row's file; None if Delta must read them.

    Args:
        log: log of the table.
        spark: session.
        state: gives the columns of the result.
        files: actions that add or remove the files.
        file_column: name of the column for the file name.
    """
    from pyspark.sql.types import StructType

    partition_columns = state.metadata.get("partitionColumns") or ()
    named_files = [
        {
            "path": file["path"],
            **{
                f"partition.{name}": (file.get("partitionValues") or {}).get(name) or None
                for name in partition_columns
            },
        }
        for file in files
    ]
    fields = json.loads(state.metadata["schemaString"])
    needs_delta = (
        not _can_spark_list(log.place)
        or any(file.get("deletionVector") for file in files)
        or not _needs_no_reader_features(
            int(state.protocol["minReaderVersion"]),
            set(state.protocol.get("readerFeatures") or ()) - _FEATURES_OF_OTHER_FILES,
            state.metadata.get("configuration") or {},
            fields["fields"],
        )
    )
    schema = StructType.fromJson(fields)
    if needs_delta or not _can_be_read(named_files, partition_columns, schema, len(files), _MAX_GROUPS):
        return None
    return _read_frame(log, spark, named_files, partition_columns, schema, file_column)


def read_files(log: DeltaLog, spark: SparkSession, version: int, rows: Predicate) -> DataFrame | None:
    """Return the rows of a version that meet a predicate, and maybe others; None if Delta must read them.

    Args:
        log: log of the table.
        spark: session.
        version: version of the table.
        rows: rows that the result must include.
    """
    from deltalake.exceptions import DeltaError
    from pyspark.sql.types import StructType

    if not _can_spark_list(log.place):
        return None
    try:
        table = log.table(version)
        if table is None:
            return None
        protocol, metadata = table.protocol(), table.metadata()
        fields = json.loads(table.schema().to_json())
        features = protocol.reader_features
        if not _needs_no_reader_features(
            protocol.min_reader_version, features, metadata.configuration, fields["fields"]
        ):
            return None
        partition_columns = metadata.partition_columns
        files = _matching_files(table, partition_columns, rows=rows)
    except (TargetError, DeltaError, OSError, ValueError, OverflowError):
        return None  # Delta's own read reports what is wrong
    schema = StructType.fromJson(fields)
    if not _can_be_read(files, partition_columns, schema, _MAX_FILES, _MAX_PARTITIONS):
        return None
    return _read_frame(log, spark, files, partition_columns, schema)


def _can_spark_list(place: Place) -> bool:
    return is_supported_location(place) and not _GLOB_CHARACTERS & set(place.url)


def _needs_no_reader_features(
    min_reader_version: int,
    features: Collection[str] | None,
    configuration: Mapping[str, str],
    fields: Sequence[Mapping[str, Any]],
) -> bool:
    """Return whether a plain Parquet reader reads a table correctly."""
    return (
        min_reader_version in (1, 3)
        and set(features or ()) <= _FEATURES
        and configuration.get("delta.columnMapping.mode", "none") == "none"
        and are_plain_fields(fields)
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


def _literal(value: Any) -> Any:
    """Return a value that every kind of session encodes alike: a date as text."""
    return value.isoformat() if isinstance(value, date) else value
