"""A side in a database: its own functions count and hash the rows, in one snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from partitions.reconcile.cells import Cell
from partitions.sources.database_types import ColumnType
from resources.dialects import DIALECTS
from resources.dialects.dialect import Dialect
from resources.reconcile.canonical.canonical_sql import CanonicalSql
from resources.reconcile.canonical.mariadb import MARIADB_TEXTS
from resources.reconcile.canonical.postgresql import POSTGRESQL_TEXTS
from resources.reconcile.expressions import (
    BUCKET,
    CHECKSUM,
    KEY_HASH,
    RANGE,
    ROWS,
    Expressions,
    HashedColumns,
    cell_text,
)
from resources.reconcile.side import CellsOf
from resources.sources.jdbc.client import Client, SqlSnapshot

if TYPE_CHECKING:
    import pyarrow as pa

TEXTS: Mapping[Dialect, CanonicalSql] = {
    DIALECTS["postgresql"]: POSTGRESQL_TEXTS,
    DIALECTS["mariadb"]: MARIADB_TEXTS,
}
"""Canonical texts of each database, by its dialect."""


@dataclass(frozen=True)
class DatabaseSide:
    """The rows of a table or query of a database.

    Attributes:
        snapshot: connection, relation and types.
    """

    snapshot: SqlSnapshot

    @property
    def database(self) -> Client:
        """The open connection."""
        return self.snapshot.database

    @property
    def _dialect(self) -> Dialect:
        return self.database.dialect

    def columns(self) -> Mapping[str, ColumnType | None]:
        """Return the types of the columns."""
        return self.snapshot.types

    def lowest(self, column: str) -> Any:
        """Return the lowest value, from an index if there is one."""
        return self.database.value(f"SELECT min({self._dialect.name(column)}) FROM {self.snapshot.relation}")  # noqa: S608 - names are quoted

    def cells(self, columns: HashedColumns, digits: int, within: CellsOf | None = None) -> Sequence[Cell]:
        """Return the sums with one query."""
        name, expressions = self._dialect.name, self._expressions(columns)
        hashed = self._select(expressions.of_cells(digits), expressions.condition(columns.ranges.rows))
        checksum = f", sum({name(CHECKSUM)})" if columns.compared else ""
        where = f" WHERE {self._in_cells(expressions, BUCKET, within)}" if within is not None else ""
        groups = f"{name(BUCKET)}, {name(RANGE)}"
        query = (
            f"SELECT {groups}, count(*) AS {name(ROWS)}{checksum} FROM ({hashed}) AS hashed{where}"  # noqa: S608 - names are quoted, values are literals
            f" GROUP BY {groups} ORDER BY {self._dialect.ordered(BUCKET)}, {name(RANGE)}"
        )
        return [
            Cell(str(bucket), int(number), int(count), *map(int, sums))
            for bucket, number, count, *sums in self.database.ask(query)
        ]

    def rows(self, columns: HashedColumns, within: CellsOf) -> Iterator[pa.Table]:
        """Yield the rows of one query as the database sends them."""
        expressions = self._expressions(columns)
        hashed = self._select(expressions.of_rows(), expressions.condition(columns.rows_to_fetch))
        query = (
            f"SELECT * FROM ({hashed}) AS hashed WHERE {self._in_cells(expressions, KEY_HASH, within)}"  # noqa: S608 - names are quoted, values are literals
            f" ORDER BY {self._dialect.ordered(KEY_HASH)}"
        )
        yield from self.database.stream(query, columns.names_of_rows)

    def _expressions(self, columns: HashedColumns) -> Expressions:
        return Expressions(self._dialect, TEXTS[self._dialect], columns)

    def _select(self, named: Sequence[tuple[str, str]], condition: str) -> str:
        names = ", ".join(f"{expression} AS {self._dialect.name(name)}" for expression, name in named)
        return f"SELECT {names} FROM {self.snapshot.relation} WHERE {condition}"  # noqa: S608 - names are quoted, values are literals

    def _in_cells(self, expressions: Expressions, hash_column: str, within: CellsOf) -> str:
        cells = ", ".join(f"'{cell_text(cell)}'" for cell in within.cells)
        return f"{expressions.cell_name(self._dialect.name(hash_column), within.digits)} IN ({cells})"
