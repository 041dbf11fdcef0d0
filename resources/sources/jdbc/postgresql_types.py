"""The types of a PostgreSQL query's columns.

Most come from the driver's list, custom types and the dimensions of arrays from the catalog.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from partitions.sources.database_types import ColumnType, postgresql_type

Ask = Callable[[str], Sequence[tuple[Any, ...]]]


def postgresql_types(cursor: Any, ask: Ask) -> Sequence[ColumnType]:
    """Return the type of each column of a query that a cursor has run.

    Args:
        cursor: psycopg's cursor.
        ask: runs a query of the catalog; used only for arrays and custom types.
    """
    from psycopg import adapters

    columns, known_types = cursor.description, adapters.types
    custom_oids = {column.type_code for column in columns if known_types.get(column.type_code) is None}
    custom_arrays = _arrays(custom_oids, ask) if custom_oids else frozenset[int]()
    dimensions = _dimensions(cursor.pgresult, columns, custom_arrays, ask)

    def type_of(number: int, column: Any) -> ColumnType:
        known_type = known_types.get(column.type_code)
        name = known_type.name if known_type is not None else ""
        # Of bit psycopg tells no length.
        length = column._fmod if name == "bit" else column.precision
        scalar = postgresql_type(name, length, column.scale)
        return scalar.as_array(dimensions[number]) if number in dimensions else scalar

    return [type_of(number, column) for number, column in enumerate(columns)]


def _is_array(column: Any, custom_arrays: frozenset[int]) -> bool:
    from psycopg import adapters

    known_type = adapters.types.get(column.type_code)
    return column.type_code in custom_arrays or (
        known_type is not None and known_type.array_oid == column.type_code
    )


def _arrays(oids: set[int], ask: Ask) -> frozenset[int]:
    """Return which of these types are arrays."""
    oid_list = ", ".join(map(str, sorted(oids)))
    rows = ask(f"SELECT oid FROM pg_type WHERE oid IN ({oid_list}) AND typcategory = 'A' AND typelem <> 0")  # noqa: S608 - numbers
    return frozenset(int(oid) for (oid,) in rows)


def _dimensions(
    result: Any, columns: Sequence[Any], custom_arrays: frozenset[int], ask: Ask
) -> Mapping[int, int]:
    """Return the dimensions of each array column by its number: as declared, else one."""
    origins = {
        number: (result.ftable(number), result.ftablecol(number))
        for number, column in enumerate(columns)
        if _is_array(column, custom_arrays)
    }
    tables = ", ".join(str(table) for table in sorted({table for table, _ in origins.values() if table}))
    query = (
        f"SELECT attrelid, attnum, attndims FROM pg_attribute WHERE attrelid IN ({tables}) AND attndims > 1"  # noqa: S608 - numbers
    )
    rows = ask(query) if tables else ()
    declared_dimensions = {(int(table), number): dimensions for table, number, dimensions in rows}
    return {number: declared_dimensions.get(origin, 1) for number, origin in origins.items()}
