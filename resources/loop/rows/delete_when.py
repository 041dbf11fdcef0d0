"""Mark the rows of a slice that delete their key: ``target.delete_when`` (docs/how-to/deletes.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.sql_condition import named_columns
from partitions.target import DELETES_COLUMN
from resources.spark.failures import root_cause
from resources.spark.frames import analyse_condition
from resources.tables.rows.delete_marks import is_delete

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def marked_deletes(dataflow: Dataflow, rows: DataFrame) -> DataFrame:
    """Return rows with a mark on those that delete their key; unchanged if no load of the target deletes.

    A row that its source has marked stays marked.
    """
    target = dataflow.target
    if not target.may_delete:
        return rows
    is_marked = is_delete(DELETES_COLUMN if DELETES_COLUMN in rows.columns else None)
    if target.delete_when is not None:
        is_marked |= _is_met(target.delete_when)
    return rows.withColumn(DELETES_COLUMN, is_marked)


def check_delete_when(dataflow: Dataflow, rows: DataFrame) -> None:
    """Raise if ``delete_when`` does not fit the rows; nothing is read.

    Raises:
        ConfigurationError: code ``query``: it names no column of the rows, one that they lack, or Spark
            refuses it.
    """
    condition = dataflow.target.delete_when
    if condition is None:
        return
    expected = f"dataflow {dataflow.name}: target.delete_when: expected a condition on the rows' columns"
    columns = ", ".join(rows.columns)
    remedy = "Correct target.delete_when, or add the column in sql or transform"
    if not named_columns(condition, rows.columns):
        raise ConfigurationError(
            f"{expected} ({columns}), found {condition!r}, which names none of them. {remedy}", code="query"
        )
    try:
        analyse_condition(rows, condition)
    except Exception as error:
        raise ConfigurationError(
            f"{expected} ({columns}), found {condition!r}: {root_cause(error).rstrip(' .;')}. {remedy}",
            code="query",
        ) from error


def _is_met(condition: str) -> Column:
    from pyspark.sql import functions as F

    return F.coalesce(F.expr(f"({condition})"), F.lit(False))
