"""What PostgreSQL tells of the types of a query's columns: most by the driver's list, the user's own and the dimensions of arrays by the catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from partitions.sources.database_types import ColumnType, postgresql_type

Ask = Callable[[str], Sequence[tuple[Any, ...]]]


def postgresql_types(cursor: Any, ask: Ask) -> Sequence[ColumnType]:
    """Return what becomes of each column of a query that a cursor has run.

    Args:
        cursor: of psycopg.
        ask: runs a query of the catalog; asked only about arrays and types that an extension or the user has made.
    """
    from psycopg import adapters

    columns, known = cursor.description, adapters.types
    own = {column.type_code for column in columns if known.get(column.type_code) is None}
    arrays_of_own = _arrays(own, ask) if own else frozenset[int]()
    dimensions = _dimensions(cursor.pgresult, columns, arrays_of_own, ask)

    def type_of(number: int, column: Any) -> ColumnType:
        known_type = known.get(column.type_code)
        name = known_type.name if known_type is not None else ""
        # Of bit psycopg tells no length.
        length = column._fmod if name == "bit" else column.precision
        scalar = postgresql_type(name, length, column.scale)
        return scalar.as_array(dimensions[number]) if number in dimensions else scalar

    return [type_of(number, column) for number, column in enumerate(columns)]


def _is_array(column: Any, arrays_of_own: frozenset[int]) -> bool:
    from psycopg import adapters

    known_type = adapters.types.get(column.type_code)
    return column.type_code in arrays_of_own or (
        known_type is not None and known_type.array_oid == column.type_code
    )


def _arrays(oids: set[int], ask: Ask) -> frozenset[int]:
    """Return which of these types are arrays."""
    listed = ", ".join(map(str, sorted(oids)))
    rows = ask(f"SELECT oid FROM pg_type WHERE oid IN ({listed}) AND typcategory = 'A' AND typelem <> 0")  # noqa: S608 - numbers
    return frozenset(int(oid) for (oid,) in rows)


def _dimensions(
    result: Any, columns: Sequence[Any], arrays_of_own: frozenset[int], ask: Ask
) -> Mapping[int, int]:
    """Return the dimensions of each column that is an array, by its number: as its table declares them, else one."""
    origins = {
        number: (result.ftable(number), result.ftablecol(number))
        for number, column in enumerate(columns)
        if _is_array(column, arrays_of_own)
    }
    tables = ", ".join(str(table) for table in sorted({table for table, _ in origins.values() if table}))
    query = (
        f"SELECT attrelid, attnum, attndims FROM pg_attribute WHERE attrelid IN ({tables}) AND attndims > 1"  # noqa: S608 - numbers
    )
    rows = ask(query) if tables else ()
    declared = {(int(table), number): dimensions for table, number, dimensions in rows}
    return {number: declared.get(origin, 1) for number, origin in origins.items()}
