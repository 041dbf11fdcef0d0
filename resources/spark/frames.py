"""Spark DataFrames: cached, observed, and with columns that a Connect server need not be asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from resources.spark import connect_private as private
from resources.spark.process import is_remote

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, Observation
    from pyspark.sql.types import DataType, StructType

_CHUNK = 10_000
"""Rows of a table of :func:`streamed_tables` on embedded Spark."""


def type_of_column(rows: DataFrame, column: str) -> str:
    """Return the type of a column, as Spark's simple string; letters of its name may differ in case."""
    return next(data_type for name, data_type in rows.dtypes if name.lower() == column.lower())


def read_once(rows: DataFrame) -> DataFrame:
    """Return the same rows, checkpointed by Spark, so that their source is read only once.

    A second read could return other rows.
    """
    return private.local_checkpoint(rows) if is_remote(rows.sparkSession) else rows.localCheckpoint()


def streamed_tables(rows: DataFrame) -> Iterator[pa.Table]:
    """Yield rows in order as Arrow tables; never all of them are in memory."""
    import pyarrow as pa

    if is_remote(rows.sparkSession):
        yield from private.streamed_tables(rows)
        return
    iterator = rows.toLocalIterator()
    while chunk := list(islice(iterator, _CHUNK)):
        columns = zip(*chunk, strict=True)
        yield pa.table(dict(zip(rows.columns, map(pa.array, columns), strict=True)))


def analyse_condition(rows: DataFrame, condition: str) -> None:
    """Raise Spark's error if a text in its SQL is no condition on single rows; nothing is read.

    WHERE refuses aggregates, windows and generators, which a SELECT takes.
    """
    from pyspark.sql import functions as F

    # Spark Connect analyses it here. The columns of WHERE alone are cached, and not asked for.
    _ = rows.where(f"({condition})").select(F.lit(1)).schema


def without_rows(rows: DataFrame) -> DataFrame:
    """Return no row, by a condition that Spark does not fold: an observation of the rows must complete."""
    from pyspark.sql import functions as F

    return rows.where(F.monotonically_increasing_id() < 0)


def with_cached_columns(rows: DataFrame, columns: StructType) -> DataFrame:
    """Return rows with these columns cached, so that a Connect server is not asked for them.

    Each such call makes Spark analyse the whole query, and a database its part of it.
    """
    if is_remote(rows.sparkSession):
        private.cache_columns(rows, columns)
    return rows


def with_columns_as(changed: DataFrame, rows: DataFrame, *dropped: str) -> DataFrame:
    """Return changed rows with the cached columns of the rows that they were made of, if there are any.

    Args:
        changed: the changed rows.
        rows: the rows before.
        dropped: names of columns that only the rows before have.
    """
    columns = _cached_columns(rows)
    if columns is None:
        return changed
    fields = [field for field in columns.fields if field.name not in dropped]
    return with_cached_columns(changed, type(columns)(fields))


def _cached_columns(rows: DataFrame) -> StructType | None:
    return private.cached_columns(rows) if is_remote(rows.sparkSession) else None


def with_typed_columns(rows: DataFrame, added: Mapping[str, tuple[Column, DataType]]) -> DataFrame:
    """Return rows with added columns and their types.

    If the columns of the rows are cached, the new ones are, too, and a Connect server is not asked for
    them.
    """
    widened = rows.withColumns({name: column for name, (column, _) in added.items()})
    known_columns = _cached_columns(rows)
    if known_columns is None or {name.casefold() for name in known_columns.names} & {
        name.casefold() for name in added
    }:
        return widened
    columns = type(known_columns)(list(known_columns.fields))
    for name, (_, kind) in added.items():
        columns = columns.add(name, kind)
    return with_cached_columns(widened, columns)


def observed_rows(rows: DataFrame, observation: Observation, *aggregates: Column) -> DataFrame:
    """Return rows, which must not be a stream, with an observation of what is written of them.

    Cached columns are kept.
    """
    if not is_remote(rows.sparkSession):
        return rows.observe(observation, *aggregates)
    private.cache_no_stream(rows)
    watched = rows.observe(observation, *aggregates)
    private.cache_columns(watched, private.cached_columns(rows))
    return watched
