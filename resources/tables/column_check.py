"""Check that a table has the requested columns and that they hold single values."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from partitions.errors import SourceError
from partitions.spelling import nearest_name


def check_columns(
    table: object, table_columns: Mapping[str, Any], columns: Sequence[str], hidden: Collection[str] = ()
) -> None:
    """Raise SourceError unless a table has all requested columns, each with single values.

    Args:
        table: table, as messages show it.
        table_columns: type of each column in Spark's JSON, by name; a nested type is an object.
        columns: requested columns.
        hidden: columns that messages do not list.

    Raises:
        SourceError: names the column, and a similar one if there is one.
    """
    for name in columns:
        if name not in table_columns:
            visible_columns = [column_name for column_name in table_columns if column_name not in hidden]
            close = nearest_name(name, visible_columns)
            hint = f" (did you mean {close}?)" if close else ""
            raise SourceError(
                f"table {table}: expected a column {name}{hint}, found the columns {', '.join(visible_columns)}"
            )
        if not isinstance(table_columns[name], str):
            raise SourceError(
                f"table {table}: expected a column with single values, found {name}, which holds nested "
                "values"
            )
