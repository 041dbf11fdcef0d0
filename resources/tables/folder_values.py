"""Values of partition columns that the names of folders do not keep: rows with one are refused while they are written (docs/loads.md).

Spark writes an empty text, and the text that stands for NULL, as NULL; bytes that are no text become others; and a value that makes a folder's name too
long, or no name, fails the task each time. Iceberg keeps each value in its files and manifests, and asks for a folder beside.
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

NOT_KEPT = "partition_value"
"""Code of the error for rows with such a value."""
NULL_FOLDER = "__HIVE_DEFAULT_PARTITION__"

_LONGEST_NAME, _LONGEST_KEY = 255, 800
"""Bytes of a name on local disks, and of a part of an object's key, which has 1,024 in all."""
_ESCAPED = r"""[\x01-\x1f\x7f"#%'*/:=?\\{\[\]^]"""
"""Characters that Spark writes as three in a folder's name, as a regular expression."""

_WHY: Mapping[str, str] = {
    "empty": "an empty text",
    "null": f"the text {NULL_FOLDER}",
    "nul": "a text with a NUL character",
    "bytes": "bytes that are no text",
    "long": "a value that is too long for a folder's name",
    "year": "a time outside of the years 1 to 9999",
}
_REFUSED = re.compile(r"\[USER_RAISED_EXCEPTION\] strandline: partition (\d+) (\w+)")
"""What Spark says of a row; a query that it shows has the words, too."""


@contextmanager
def kept_by_folders(rows: DataFrame, columns: Sequence[str], place: Place) -> Iterator[DataFrame]:
    """Give the rows, whose write fails at one that names of folders do not keep, by Spark's rules.

    Args:
        rows: to be written within the context.
        columns: that folders stand for.
        place: of the folders.

    Raises:
        RowsRefused: code ``partition_value``: the write met such a row.
    """
    with _checked(rows, columns, place, _problems_of_folders) as checked:
        yield checked


@contextmanager
def kept_by_iceberg(rows: DataFrame, columns: Sequence[str], place: Place) -> Iterator[DataFrame]:
    """Do as :func:`kept_by_folders` where values are in files and manifests, and folders are called after them."""
    with _checked(rows, columns, place, _problems_of_names) as checked:
        yield checked


@contextmanager
def _checked(
    rows: DataFrame,
    columns: Sequence[str],
    place: Place,
    problems: Callable[[str, DataType, int], Mapping[str, str]],
) -> Iterator[DataFrame]:
    from pyspark.sql import functions as F

    if not columns:
        yield rows
        return
    named = {column.casefold() for column in columns}
    fields = [field for field in rows.schema.fields if field.name.casefold() in named]
    longest = _LONGEST_NAME if place.local is not None else _LONGEST_KEY
    made = {}
    for number, field in enumerate(fields):
        column = F.col(quoted(field.name))
        conditions = problems(quoted(field.name), field.dataType, longest - len(f"{field.name}=".encode()))
        for problem, condition in reversed(list(conditions.items())):
            failing = F.raise_error(F.lit(f"strandline: partition {number} {problem}")).cast(field.dataType)
            column = F.when(F.expr(condition), failing).otherwise(column)
        if conditions:
            made[field.name] = column.alias(field.name, metadata=field.metadata)
    try:
        yield with_columns_as(rows.withColumns(made), rows) if made else rows
    except Exception as error:
        found = _REFUSED.search(str(error))
        if found is None:
            raise
        name, problem = fields[int(found[1])].name, found[2]
        iceberg = "" if problem in ("long", "year") else " load into an Iceberg table, which keeps it;"
        raise RowsRefused(
            f"column {name} of partition_by has {_WHY[problem]}, which names of folders do not keep. Give it another value in sql;{iceberg} or take"
            f" {name} out of target.partition_by and load the table again",
            code=NOT_KEPT,
        ) from error


def _problems_of_folders(column: str, kind: DataType, longest: int) -> Mapping[str, str]:
    from pyspark.sql import types as T

    match kind:
        case T.StringType() | T.CharType() | T.VarcharType() | T.BinaryType():
            text = f"CAST({column} AS STRING)"
            escaped = f"octet_length({text}) + 2 * regexp_count({text}, {literal(_ESCAPED)})"
            return {
                "empty": f"{text} = ''",
                "null": f"{text} = {literal(NULL_FOLDER)}",
                "bytes": f"NOT is_valid_utf8({text})",
                "nul": f"instr({text}, char(0)) > 0",
                "long": f"{escaped} > {longest}",
            }
        case T.TimestampType() | T.TimestampNTZType() | T.DateType():
            return {"year": f"year({column}) NOT BETWEEN 1 AND 9999"}
    return {}


def _problems_of_names(column: str, kind: DataType, longest: int) -> Mapping[str, str]:
    from pyspark.sql import types as T

    match kind:
        case T.StringType() | T.CharType() | T.VarcharType():
            return {"long": f"octet_length(url_encode({column})) > {longest}"}
        case T.BinaryType():
            return {"long": f"octet_length(base64({column})) * 3 > {longest}"}
    return {}
