"""Read a few rows of a table, to show them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.errors import ConfigurationError
from resources.spark.failures import fails_on_values, root_cause
from resources.sql import quoted
from resources.tables.contract.table import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_FORMATS = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


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
    table: Table, session: SparkSession, where: str | None, limit: int, name: str
) -> FirstRows:
    """Return rows of the newest version of a table, in no certain order.

    Args:
        table: an existing table.
        session: Spark.
        where: a condition of Spark's SQL; None: all rows.
        limit: the most rows to return.
        name: the table's name, for messages.

    Raises:
        ConfigurationError: code ``predicate``: Spark refuses the condition, or it fails on a row.
    """
    from pyspark.errors import AnalysisException, ParseException
    from pyspark.sql import functions as F

    rows = table.contents.read(session, table.contents.newest_version())
    types = dict(rows.dtypes)
    try:
        chosen_rows = rows if where is None else rows.where(F.expr(f"({where})"))
        texts = chosen_rows.limit(limit + 1).select(json_of_row(rows)).collect()
    except Exception as error:
        if where is None or not (
            isinstance(error, (AnalysisException, ParseException)) or fails_on_values(error)
        ):
            raise
        raise ConfigurationError(
            f"--where: expected a condition that Spark accepts for the columns of {name} ({', '.join(types)}), found {where!r}: {root_cause(error)}",
            code="predicate",
        ) from error
    return FirstRows(types, [json.loads(row[0]) for row in texts[:limit]], len(texts) > limit)


def json_of_row(rows: DataFrame) -> Column:
    """Return a column with each row as JSON text: times in ISO, decimals as texts, bytes in base64."""
    from pyspark.sql import functions as F

    columns = [
        F.col(quoted(column)).cast("string").alias(column)
        if type_.startswith("decimal")
        else F.col(quoted(column))
        for column, type_ in rows.dtypes
    ]
    return F.to_json(F.struct(*columns), _FORMATS)
