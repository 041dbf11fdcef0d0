"""Refuse rows whose partition values a folder name cannot hold (docs/reference/loads.md).

Spark writes an empty text, and the text that stands for NULL, as NULL. It changes bytes that are no text.
A value that makes the folder name too long or invalid fails the task on every attempt. Iceberg keeps
values in its files and manifests, but still names folders after them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from partitions.errors import RowsRefused
from resources.connections.places import Place
from resources.spark.frames import with_columns_as
from resources.sql import literal, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

PARTITION_VALUE = "partition_value"
"""Error code for rows with a partition value that a folder name cannot hold."""
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"

_LONGEST_NAME, _LONGEST_KEY = 255, 800
"""Longest folder name in bytes: on a local disk, and as a part of an object key of at most 1,024 bytes."""
_ESCAPED = r"""[\x01-\x1f\x7f"#%'*/:=?\\{\[\]^]"""
"""Regular expression of the characters that Spark escapes as three in a folder name."""

_PROBLEMS: Mapping[str, str] = {
    "empty": "an empty text",
    "null": f"the text {NULL_FOLDER}",
    "nul": "a text with a NUL character",
    "bytes": "bytes that are not text",
    "long": "a value that is too long for a folder's name",
    "year": "a time outside of the years 1 to 9999",
}
_RAISED = re.compile(r"\[USER_RAISED_EXCEPTION\] strandline: partition (\d+) (\w+)")
"""The error of a row in Spark's message. The query that the message quotes has the same words without the prefix."""


@contextmanager
def check_folder_values(rows: DataFrame, columns: Sequence[str], place: Place) -> Iterator[DataFrame]:
    """Yield the rows; writing them fails at a value that a folder name cannot hold under Spark's rules.

    Args:
        rows: rows to write within the context.
        columns: partition columns.
        place: place of the folders.

    Raises:
        RowsRefused: code ``partition_value``: the write met such a row.
    """
    with _check_values(rows, columns, place, _folder_problems) as checked_rows:
        yield checked_rows


@contextmanager
def check_iceberg_values(rows: DataFrame, columns: Sequence[str], place: Place) -> Iterator[DataFrame]:
    """Yield the rows; writing them fails at a value that makes an Iceberg folder name too long.

    Iceberg keeps the values themselves in files and manifests. Otherwise as :func:`check_folder_values`.
    """
    with _check_values(rows, columns, place, _iceberg_problems) as checked_rows:
        yield checked_rows


@contextmanager
def _check_values(
    rows: DataFrame,
    columns: Sequence[str],
    place: Place,
    problems: Callable[[str, DataType, int], Mapping[str, str]],
) -> Iterator[DataFrame]:
    from pyspark.sql import functions as F

    if not columns:
        yield rows
        return
    folded_names = {column.casefold() for column in columns}
    fields = [field for field in rows.schema.fields if field.name.casefold() in folded_names]
    longest = _LONGEST_NAME if place.local is not None else _LONGEST_KEY
    checked_columns = {}
    for number, field in enumerate(fields):
        column = F.col(quoted(field.name))
        conditions = problems(quoted(field.name), field.dataType, longest - len(f"{field.name}=".encode()))
        for problem, condition in reversed(list(conditions.items())):
            failing = F.raise_error(F.lit(f"strandline: partition {number} {problem}")).cast(field.dataType)
            column = F.when(F.expr(condition), failing).otherwise(column)
        if conditions:
            checked_columns[field.name] = column.alias(field.name, metadata=field.metadata)
    try:
        yield with_columns_as(rows.withColumns(checked_columns), rows) if checked_columns else rows
    except Exception as error:
        match = _RAISED.search(str(error))
        if match is None:
            raise
        name, problem = fields[int(match[1])].name, match[2]
        iceberg = "" if problem in ("long", "year") else " load into an Iceberg table, which keeps it;"
        raise RowsRefused(
            f"column {name} of partition_by has {_PROBLEMS[problem]}, which a folder name cannot hold. Change the value in sql;{iceberg} or remove"
            f" {name} from target.partition_by and load the table again",
            code=PARTITION_VALUE,
        ) from error


def _folder_problems(column: str, data_type: DataType, longest: int) -> Mapping[str, str]:
    from pyspark.sql import types as T

    match data_type:
        case T.StringType() | T.CharType() | T.VarcharType() | T.BinaryType():
            text = f"CAST({column} AS STRING)"
            escaped_length = f"octet_length({text}) + 2 * regexp_count({text}, {literal(_ESCAPED)})"
            return {
                "empty": f"{text} = ''",
                "null": f"{text} = {literal(NULL_FOLDER)}",
                "bytes": f"NOT is_valid_utf8({text})",
                "nul": f"instr({text}, char(0)) > 0",
                "long": f"{escaped_length} > {longest}",
            }
        case T.TimestampType() | T.TimestampNTZType() | T.DateType():
            return {"year": f"year({column}) NOT BETWEEN 1 AND 9999"}
    return {}


def _iceberg_problems(column: str, data_type: DataType, longest: int) -> Mapping[str, str]:
    from pyspark.sql import types as T

    match data_type:
        case T.StringType() | T.CharType() | T.VarcharType():
            return {"long": f"octet_length(url_encode({column})) > {longest}"}
        case T.BinaryType():
            return {"long": f"octet_length(base64({column})) * 3 > {longest}"}
    return {}
