"""Read a few rows of a table, to show them."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from partitions.errors import ConfigurationError, SourceError
from partitions.predicate import EVERYTHING, Predicate
from partitions.schema_types import type_text
from resources.dialects.predicates import predicate_sql
from resources.dialects.spark import SPARK
from resources.spark.failures import fails_on_values, root_cause
from resources.tables.contract.table import Table

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class FirstRows:
    """Some rows of a table.

    Attributes:
        types: the type of each column by its name, in Spark's words.
        rows: the rows in JSON's types: times in ISO, decimals as texts, binary values in base64.
        has_more: whether the table has further such rows.
    """

    types: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]
    has_more: bool


def read_first_rows(
    table: Table,
    session: Callable[[], SparkSession],
    limit: int,
    name: str,
    *,
    rows: Predicate = EVERYTHING,
    where: str | None = None,
) -> FirstRows:
    """Return rows of the newest version of a table, in no certain order.

    Spark starts only for a condition of its SQL, and for a table that nothing else reads.

    Args:
        table: an existing table.
        session: returns a session.
        limit: the most rows to return.
        name: the table's name, for messages.
        rows: rows that count.
        where: a condition of Spark's SQL that they meet, too; None: there is none.

    Raises:
        ConfigurationError: code ``predicate``: Spark refuses the condition, or it fails on a row.
    """
    fields = json.loads((table.contents.schema() or ("", '{"fields": []}'))[1])["fields"]
    try:
        batch = None if where else table.contents.first_rows(limit + 1, rows)
    except SourceError:
        batch = None
    if batch is None:
        batch = _read_with_spark(table, session(), limit + 1, name, rows, where)
    types = {field["name"]: type_text(field["type"]) for field in fields}
    values = json_rows(batch, types)
    return FirstRows(types, values[:limit], len(values) > limit)


def json_rows(rows: pa.Table, types: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return rows in JSON's types, as :class:`FirstRows` has them.

    Args:
        rows: rows of Spark or of a table.
        types: the type of each column to return, in Spark's words.
    """
    return [
        {column: _json_value(row[column], types[column]) for column in types} for row in _python_rows(rows)
    ]


def _read_with_spark(
    table: Table, session: SparkSession, limit: int, name: str, rows: Predicate, where: str | None
) -> pa.Table:
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import functions as F

    version_rows = table.contents.read(session, table.contents.newest_version(), rows)
    chosen_rows = version_rows if rows == EVERYTHING else version_rows.where(predicate_sql(rows, SPARK))
    if where is None:
        return chosen_rows.limit(limit).toArrow()
    try:
        return chosen_rows.where(F.expr(f"({where})")).limit(limit).toArrow()
    except Exception as error:
        if not (isinstance(error, (AnalysisException, ParseException)) or fails_on_values(error)):
            raise
        columns = ", ".join(version_rows.columns)
        raise ConfigurationError(
            f"--where: expected a condition that Spark accepts for the columns of {name} ({columns}), found {where!r}: {root_cause(error)}",
            code="predicate",
        ) from error


def _python_rows(batch: pa.Table) -> list[dict[str, Any]]:
    """Return rows in Python's types; columns with a value that Python lacks (the year 10000) as texts."""
    import pyarrow as pa

    columns: dict[str, list[Any]] = {}
    for column in batch.column_names:
        try:
            columns[column] = batch.column(column).to_pylist(maps_as_pydicts="lossy")
        except (OverflowError, ValueError):
            columns[column] = batch.column(column).cast(pa.string()).to_pylist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _json_value(value: Any, spark_type: str) -> Any:
    """Return a value in JSON's types."""
    match value:
        case datetime():
            return _instant(value)
        case date() | time():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case bytes():
            return base64.b64encode(value).decode()
        case float():
            return _number(value, spark_type)
        case timedelta():
            return str(value)
        case Mapping():
            return {_key(key): _json_value(part, spark_type) for key, part in value.items()}
        case list():
            return [_json_value(part, spark_type) for part in value]
    return value


def _key(key: Any) -> str:
    text = _json_value(key, "")
    return text if isinstance(text, str) else json.dumps(text)


def _instant(value: datetime) -> str:
    """Return a time with six decimals; one with a zone in UTC, with a Z."""
    if value.tzinfo is None:
        return value.isoformat(timespec="microseconds")
    return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _number(value: float, spark_type: str) -> float | str:
    """Return a number; NaN and infinity as texts, and a float with the digits that Spark shows."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if spark_type == "float":
        import numpy as np

        return float(str(np.float32(value)))
    return value
