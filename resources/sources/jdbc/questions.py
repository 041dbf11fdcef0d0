"""SQL of questions whose answer is a value or a few rows, asked without Spark.

Belongs here: their SQL around a table or query (:mod:`resources.sources.jdbc.relation`). The connection
that runs them is :mod:`resources.sources.jdbc.client`.
"""

from __future__ import annotations

from collections.abc import Sequence

from partitions.predicate import NOTHING, Predicate
from partitions.unit_values import ValueType
from resources.dialects.predicates import predicate_sql
from resources.sources.jdbc.relation import SourceQueries

_UTF8 = "^([0-7].|(c[2-9a-f]|d.)[89ab].|e0[ab].[89ab].|e[1-9abcef]([89ab].){2}|ed[89].[89ab].|f0[9ab].([89ab].){2}|f[123]([89ab].){3}|f48.([89ab].){2})*$"
"""Bytes of UTF-8, in hexadecimal."""


class Questions(SourceQueries):
    """The SQL of questions about one source."""

    def columns(self) -> str:
        """Return a query of all columns; without rows, if the database can skip them."""
        return f"SELECT * FROM {self._relation.sample()} WHERE {predicate_sql(NOTHING, self._dialect)}"  # noqa: S608 - names are quoted, values are literals

    def only(self, columns: Sequence[str]) -> str:
        """Return a query of some columns and no row."""
        names = ", ".join(map(self._dialect.name, columns))
        return f"SELECT {names} FROM {self._relation.whole()} WHERE {predicate_sql(NOTHING, self._dialect)}"  # noqa: S608 - names are quoted, values are literals

    def known_columns(self) -> str | None:
        """Return a query of the catalog about the table's columns; None for a source that is a query."""
        return (
            None if self._source.query is not None else self._dialect.known_columns(self._source.table_parts)
        )

    def spread(self, column: str, kind: ValueType) -> str | None:
        """Return a query of the statistics of a column's values; None for a source that is a query."""
        if self._source.query is not None:
            return None
        return self._dialect.histogram(self._source.table_parts, column, kind)

    def some(self, rows: Predicate) -> str:
        """Return a query that has one row if a row matches a predicate."""
        return f"SELECT 1 FROM {self._relation.whole()} WHERE {predicate_sql(rows, self._dialect)} LIMIT 1"  # noqa: S608 - names are quoted, values are literals

    def count(self, rows: Predicate) -> str:
        """Return a query that counts the rows that match a predicate."""
        return f"SELECT count(*) FROM {self._relation.whole()} WHERE {predicate_sql(rows, self._dialect)}"  # noqa: S608 - names are quoted, values are literals

    def highest(self, column: str, kind: ValueType, rows: Predicate | None = None) -> str:
        """Return a query of a column's highest finite value that Spark can hold, in some or all rows."""
        name = self._dialect.name(column)
        conditions = [
            *(self._dialect.finite(column, kind) or ()),
            *([f"({predicate_sql(rows, self._dialect)})"] if rows is not None else []),
        ]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT max({name}) FROM {self._relation.whole()}{where}"  # noqa: S608 - names are quoted, values are literals

    def last(self, column: str, rows: Predicate) -> str:
        """Return a query of a column's highest value in matching rows, with texts ordered by bytes.

        It has no row if there is no value.
        """
        name, order = self._dialect.name(column), self._dialect.ordered(column)
        some = predicate_sql(rows, self._dialect)
        return (
            f"SELECT {name} FROM {self._relation.whole()} WHERE ({some}) AND {name} IS NOT NULL"  # noqa: S608 - names are quoted, values are literals
            f" ORDER BY {order} DESC LIMIT 1"
        )

    def nth(self, column: str, rows: Predicate, number: int) -> str:
        """Return a query of a column's n-th value, from 1, in matching rows ordered by it."""
        name = self._dialect.name(column)
        return (
            f"SELECT {name} FROM {self._relation.whole()} WHERE {predicate_sql(rows, self._dialect)}"  # noqa: S608 - names are quoted, values are literals
            f" ORDER BY {name} LIMIT 1 OFFSET {number - 1}"
        )

    def undecodable(self, column: str) -> str:
        """Return a query of the first text that is not UTF-8, with the texts of the keys.

        Its bytes are in hexadecimal. Only PostgreSQL databases in SQL_ASCII accept such texts.
        """

        def encoded(name: str) -> str:
            return f"encode(convert_to(CAST({self._dialect.name(name)} AS text), 'SQL_ASCII'), 'hex')"

        row = ", ".join(
            f"CASE WHEN {encoded(key)} ~ '{_UTF8}' THEN CAST({self._dialect.name(key)} AS text) END"
            for key in self._keys
        )
        return (
            f"SELECT {encoded(column)}{', ' if row else ''}{row} FROM {self._relation.whole()}"  # noqa: S608 - names are quoted
            f" WHERE {encoded(column)} !~ '{_UTF8}' LIMIT 1"
        )
