"""Rows of a version of a Delta table, read by Spark from the files that may hold them, without Delta (docs/adr/0025).

For tables whose files are their rows: what a reader must know beyond Parquet, such as deleted rows or other names of columns, is left to
Delta. So whatever is not known to ask nothing of a reader counts as asking.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import reduce
from typing import TYPE_CHECKING, Any

from partitions.errors import TargetError
from partitions.file_statistics import Match, match_of
from partitions.predicate import Predicate, columns_of
from resources.sql import quoted
from resources.tables.data_files.reading import files_reader, is_spark_readable
from resources.tables.delta.log import DeltaLog
from resources.tables.delta.own_limits import are_plain_columns, extents_of, takes_place

if TYPE_CHECKING:
    from deltalake import DeltaTable
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_MOST_FILES = 32
"""Of more Spark looks for each in a job of its own, and what Delta costs beside counts less."""
_MOST_PARTITIONS, _MOST_GROUPS = 4, 32
"""Combinations of values: each is a read of its own. The second number is for files that are all read."""
_FEATURES = frozenset({"timestampNtz"})
PLAIN_PATH = re.compile(r"(?!/)(?:[A-Za-z0-9_.=/+~-])+")
"""A path that stands in the log as the file is called, below the table's folder."""
_PATTERN = frozenset("{}*?")
"""Characters of a path that Spark takes for a pattern, and does not look for."""
_PARTITIONED_BY = frozenset({"string", "date", "long", "integer", "short", "byte"})
"""Types whose values are written in one way only."""


def read_files(log: DeltaLog, spark: SparkSession, version: int, rows: Predicate) -> DataFrame | None:
    """Return rows of a version, those of a predicate and maybe others; None if Delta must read them.

    Args:
        log: of the table.
        spark: a session.
        version: of the table.
        rows: that must be among them.
    """
    from deltalake.exceptions import DeltaError
    from pyspark.sql.types import StructType

    if not takes_place(log.place) or _PATTERN & set(log.place.url):
        return None
    try:
        table = log.table(version)
        if table is None or not _is_plain(table):
            return None
        layout = table.metadata().partition_columns
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
        files = _files(table, rows, layout)
    except (TargetError, DeltaError, OSError, ValueError, OverflowError):
        return None  # whatever is wrong with it, Delta says it
    if not _are_within_bounds(files, layout, schema):
        return None
    return _frame(log, spark, files, layout, schema)


def direct_rows(
    log: DeltaLog,
    spark: SparkSession,
    version: int,
    files: Mapping[str, Mapping[str, str | None]],
    name: str,
) -> DataFrame | None:
    """Return the rows of some files, with a version's columns and the name of each row's file; None if Delta must read them.

    Args:
        log: of the table.
        spark: a session.
        version: that tells their columns.
        files: the values of the columns of partitions, as text, by the file's path as the log has it.
        name: of the column that the name of the file stands in.
    """
    from deltalake.exceptions import DeltaError
    from pyspark.sql.types import StructType

    if not takes_place(log.place) or _PATTERN & set(log.place.url):
        return None
    try:
        table = log.table(version)
        if table is None or not _is_plain(table):
            return None
        layout = table.metadata().partition_columns
        schema = StructType.fromJson(json.loads(table.schema().to_json()))
    except (TargetError, DeltaError, OSError, ValueError, OverflowError):
        return None
    told: list[dict[str, Any]] = [
        {"path": path, **{f"partition.{name}": values.get(name) for name in layout}}
        for path, values in files.items()
    ]
    if not told or not _are_within_bounds(told, layout, schema, len(told), _MOST_GROUPS):
        return None
    return _frame(log, spark, told, layout, schema, name)


def _is_plain(table: DeltaTable) -> bool:
    """Whether a table asks nothing of a reader."""
    protocol, configuration = table.protocol(), table.metadata().configuration
    return (
        protocol.min_reader_version in (1, 3)
        and set(protocol.reader_features or ()) <= _FEATURES
        and configuration.get("delta.columnMapping.mode", "none") == "none"
        and are_plain_columns(table)
    )


def _files(table: DeltaTable, rows: Predicate, layout: Sequence[str]) -> list[dict[str, Any]]:
    """The files that may hold rows, with what the log says of the columns that are compared.

    Raises:
        ValueError: Python has no word for a value.
    """
    import pyarrow as pa

    actions = pa.table(table.get_add_actions(flatten=True))
    asked = {f"{part}.{column}" for column in columns_of(rows) for part in ("min", "max", "null_count")}
    always = {"path", "num_records", *(f"partition.{column}" for column in layout)}
    known = actions.select([name for name in actions.column_names if name in always | asked])
    return [file for file in known.to_pylist() if match_of(rows, extents_of(file, rows)) is not Match.NONE]


def _are_within_bounds(
    files: Sequence[Mapping[str, Any]],
    layout: Sequence[str],
    schema: StructType,
    most_files: int = _MOST_FILES,
    most_partitions: int = _MOST_PARTITIONS,
) -> bool:
    return (
        len(files) <= most_files
        and all(PLAIN_PATH.fullmatch(file["path"]) and ".." not in file["path"].split("/") for file in files)
        and all(is_spark_readable(file["path"]) for file in files)
        and all(column in schema.names and _type(schema, column) in _PARTITIONED_BY for column in layout)
        and len({_values(file, layout) for file in files}) <= most_partitions
    )


def _type(schema: StructType, column: str) -> str:
    kind: Any = schema[column].dataType.jsonValue()
    return str(kind)


def _values(file: Mapping[str, Any], layout: Sequence[str]) -> tuple[Any, ...]:
    return tuple(file[f"partition.{column}"] for column in layout)


def _frame(
    log: DeltaLog,
    spark: SparkSession,
    files: Sequence[Mapping[str, Any]],
    layout: Sequence[str],
    schema: StructType,
    name: str | None = None,
) -> DataFrame:
    """The rows of files, with the values of partitions that do not stand in them; and the name of each row's file, if it is to have a column."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import StructType

    if not files:
        return spark.createDataFrame([], schema)
    held = StructType([field for field in schema.fields if field.name not in layout])
    by_values: dict[tuple[Any, ...], list[str]] = {}
    for file in files:
        by_values.setdefault(_values(file, layout), []).append(log.place.child(file["path"]).spark_url)
    frames = []
    for values, paths in by_values.items():
        given = dict(zip(layout, values, strict=True))
        columns = [
            (
                F.lit(_literal(given[field.name])).cast(field.dataType).alias(field.name)
                if field.name in given
                else F.col(quoted(field.name))
            )
            for field in schema.fields
        ]
        more = [] if name is None else [F.col(quoted(name))]
        rows = rows_of(spark, paths, held) if name is None else rows_with_names(spark, paths, held, name)
        frames.append(rows.select(*columns, *more))
    return reduce(lambda above, below: above.unionAll(below), frames)


def rows_of(spark: SparkSession, paths: Sequence[str], schema: StructType) -> DataFrame:
    """Return the rows of files, each of which is there.

    Spark looks whether a file is there before it lists it, and takes one that is gone when it lists it for one without rows. So it looks once
    more, after it has listed them: a file that is there then was there when it was listed. The second read has no rows, and no part in the job.
    """
    return _looked_at_twice(lambda: files_reader(spark, schema).parquet(*paths))


def rows_with_names(spark: SparkSession, paths: Sequence[str], schema: StructType, name: str) -> DataFrame:
    """Return the rows of files, as :func:`rows_of` does, with a column for the name of each row's file."""

    def read() -> DataFrame:
        rows = files_reader(spark, schema).parquet(*paths)
        # Not by its name, which a column of the files may have, too.
        return rows.withColumn(name, rows.metadataColumn("_metadata").getField("file_name"))

    return _looked_at_twice(read)


def _looked_at_twice(read: Callable[[], DataFrame]) -> DataFrame:
    # Spark inside the process lists the files as it is told of them, a server each time that they stand in a query.
    return read().unionAll(read().limit(0))


def _literal(value: Any) -> Any:
    """A value that each kind of session writes alike: a day is cast from its text."""
    return value.isoformat() if isinstance(value, date) else value
