"""Rows of Spark: kept, observed, and with columns that a Connect server need not be asked for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from resources.spark import connect_private as private
from resources.spark.process import is_remote

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Observation
    from pyspark.sql.types import DataType, StructType


def read_once(rows: DataFrame) -> DataFrame:
    """Return the same rows, kept by Spark: what uses them twice sees them once, also where their source would answer otherwise the second time."""
    return private.local_checkpoint(rows) if is_remote(rows.sparkSession) else rows.localCheckpoint()


def with_known_columns(rows: DataFrame, columns: StructType) -> DataFrame:
    """Return rows of these columns, for which a Connect server is not asked: each question has Spark look at the whole query, and a database at its part of it."""
    if is_remote(rows.sparkSession):
        private.remember_columns(rows, columns)
    return rows


def with_columns_as(changed: DataFrame, rows: DataFrame) -> DataFrame:
    """Return rows that were made of others and have the same columns, for which a Connect server is not asked if those of the others are known."""
    columns = _known_columns(rows)
    return changed if columns is None else with_known_columns(changed, columns)


def _known_columns(rows: DataFrame) -> StructType | None:
    return private.known_columns(rows) if is_remote(rows.sparkSession) else None


def with_typed_columns(rows: DataFrame, added: Mapping[str, tuple[Column, DataType]]) -> DataFrame:
    """Return rows with more columns, each given with its type. If those of the rows are known, a Connect server is not asked for these either."""
    widened = rows.withColumns({name: column for name, (column, _) in added.items()})
    known_columns = _known_columns(rows)
    if known_columns is None or {name.casefold() for name in known_columns.names} & {
        name.casefold() for name in added
    }:
        return widened
    columns = type(known_columns)(list(known_columns.fields))
    for name, (_, kind) in added.items():
        columns = columns.add(name, kind)
    return with_known_columns(widened, columns)


def observed_rows(rows: DataFrame, observation: Observation, *aggregates: Column) -> DataFrame:
    """Return rows that are no stream with an observation of what is written of them.

    Their columns stay, and are not asked for again.
    """
    if not is_remote(rows.sparkSession):
        return rows.observe(observation, *aggregates)
    private.remember_no_stream(rows)
    watched = rows.observe(observation, *aggregates)
    private.remember_columns(watched, private.known_columns(rows))
    return watched
