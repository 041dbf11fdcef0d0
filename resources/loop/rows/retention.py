"""The rows that a dataflow's retention keeps out of its slices, and that expire in its table.

Rows below the retention are held back like those of a delete in force, in the same place
(:mod:`resources.loop.rows.withheld`). See docs/how-to/deleting-and-keeping.md, Keep 90 days.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.predicate import Between
from partitions.retention import TYPES
from partitions.spelling import describe_missing
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.loop.context import RunContext
from resources.loop.rows.delete_marks import OptionalColumns, marked_rows
from resources.watermarks.deleted_rows import RETENTION, DeleteInForce
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def hold_back_rows(
    run: RunContext[Any], rows: DataFrame, entry: Entry | None, optional: OptionalColumns, number: int
) -> DataFrame:
    """Return the rows of a slice that neither a delete in force nor the retention holds back.

    Writing them counts the others.

    Args:
        run: the run.
        rows: all rows of the slice, as they would be written.
        entry: the newest entry.
        optional: the columns that the rows may lack.
        number: number of the slice.

    Raises:
        NeedsDecision: code ``delete_unfit``: a condition does not fit the rows.
        ConfigurationError: the column of the retention is missing, or its type has no time.
    """
    return run.withheld.withhold(run.rules_of, rows, _rules(run, rows, entry, optional), optional, number)


def check_rules(
    run: RunContext[Any], rows: DataFrame, entry: Entry | None, optional: OptionalColumns
) -> None:
    """Raise as :func:`hold_back_rows` does for the rows of a slice; nothing is read."""
    if rules := _rules(run, rows, entry, optional):
        marked_rows(run.rules_of, rows, rules, optional)


def _rules(
    run: RunContext[Any], rows: DataFrame, entry: Entry | None, optional: OptionalColumns
) -> list[DeleteInForce]:
    return [*run.deletes(entry), *_retention_rules(run, rows, optional)]


def expired_rows(dataflow: Dataflow, types: dict[str, str], now: datetime) -> Between:
    """Return the predicate of the rows that are older than the retention; the bound itself stays.

    Args:
        dataflow: the definition, which has a retention.
        types: types of the columns by name, in Spark's words.
        now: the clock, aware; a clock that is ahead of this machine's does not count.

    Raises:
        ConfigurationError: there is no such column, or its type has no time.
    """
    retention = dataflow.target.retention
    assert retention is not None
    name = next((name for name in types if name.casefold() == retention.column.casefold()), None)
    if name is None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: target.retention: expected a column of table {dataflow.table}, found"
            f" {describe_missing([retention.column], list(types))}. Correct target.retention.column",
            code="query",
        )
    rows = retention.expired_rows(types[name], min(now, datetime.now(UTC)))
    if rows is None:
        raise ConfigurationError(
            f"dataflow {dataflow.name}: target.retention: expected a column of type {', '.join(TYPES)}, found {name} of type"
            f" {types[name]}. Declare its type in source.schema, name another column, or make one in sql",
            code="query",
        )
    return Between(name, None, rows.upper)


def _retention_rules(run: RunContext[Any], rows: DataFrame, optional: OptionalColumns) -> list[DeleteInForce]:
    """Return the retention as a rule for rows; none without a retention, or if they have NULL there.

    Raises:
        ConfigurationError: the rows lack the column, and nothing says that they have no value there.
    """
    retention = run.dataflow.target.retention
    if retention is None:
        return []
    types = dict(rows.dtypes)
    if retention.column.casefold() not in {name.casefold() for name in types}:
        if retention.column.casefold() in optional():
            return []  # the table has NULL there, which stays
        raise ConfigurationError(
            f"dataflow {run.rules_of}: target.retention: expected rows with its column, found rows without {describe_missing([retention.column], list(types))}."
            " The run stopped before it changed anything. Correct target.retention.column, add the column in sql or transform, or declare it in source.schema",
            code="query",
        )
    expired = expired_rows(run.dataflow, types, run.now)
    columns = {expired.column: types[expired.column]}
    return [DeleteInForce(RETENTION, predicate_sql(expired, SPARK), columns, "", "")]
