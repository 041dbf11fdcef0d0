"""Columns that are asked of a table by name: each is there, and holds single values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from partitions.errors import SourceError
from partitions.spelling import nearest


def check_columns(
    table: object, known: Mapping[str, Any], columns: Sequence[str], hidden: Collection[str] = ()
) -> None:
    """Raise unless a table has these columns, and each holds single values.

    Args:
        table: as it is shown.
        known: its columns by name, each with its type in Spark's JSON, where a nested one is an object.
        columns: that are asked for.
        hidden: columns of the table that are not shown.

    Raises:
        SourceError: naming the column, and what may have been meant.
    """
    for name in columns:
        if name not in known:
            shown = [column for column in known if column not in hidden]
            close = nearest(name, shown)
            hint = f" (did you mean {close}?)" if close else ""
            raise SourceError(
                f"table {table}: expected a column {name}{hint}, found the columns {', '.join(shown)}"
            )
        if not isinstance(known[name], str):
            raise SourceError(
                f"table {table}: expected a column with single values, found {name}, which holds nested ones"
            )
