"""The queries that a database is asked: the user's table or query, and around it exactly the rows of some extents (docs/project-files.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING

from partitions.bound_text import Wording
from partitions.errors import ConfigurationError, PlanError
from partitions.instants import as_datetime
from partitions.local_time import covering, earliest, latest
from partitions.placeholders import Placeholder, inexpressible, wording, written
from partitions.predicate import NOTHING, Predicate, columns_of, renamed
from partitions.sources import JdbcSource
from partitions.sources.database_types import ColumnType
from partitions.sql_text import without_end
from partitions.unit_values import Kind
from partitions.window.extent import Extent
from partitions.window.predicates import Columns, disjoint, rows_of
from resources.dialects import Dialect
from resources.dialects.predicates import sql
from resources.sources.schema import kinds
from resources.sources.source import NUMBER

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

Types = Mapping[str, ColumnType]
"""What becomes of each column, by its name."""

_INSTANT = timedelta(microseconds=1)

_SAMPLE = Extent(0, 1, ({},))
"""What stands for the window if only the columns are asked for; its units are NULL."""


_UTF8 = "^([0-7].|(c[2-9a-f]|d.)[89ab].|e0[ab].[89ab].|e[1-9abcef]([89ab].){2}|ed[89].[89ab].|f0[9ab].([89ab].){2}|f[123]([89ab].){3}|f48.([89ab].){2})*$"
"""Bytes of UTF-8, in hexadecimal."""


class JdbcQuery:
    """Builds the queries of one source. No value reaches a query but as a literal of the dialect."""

    def __init__(self, source: JdbcSource, dialect: Dialect, zone: tzinfo, keys: Sequence[str] = ()) -> None:
        """Use a source.

        Args:
            source: what is read.
            dialect: of its database.
            zone: of local times and days.
            keys: columns that tell a row in an error.

        Raises:
            ConfigurationError: if the query's placeholders stand in what the database reads as quotes or a comment.
        """
        source.check(dialect.reading)
        self._source, self._dialect, self._zone, self._keys = source, dialect, zone, keys

    def columns(self) -> str:
        """A query of all columns, and of no row if the database need not look for any."""
        relation = self._relation(_SAMPLE, sample=True)
        return f"SELECT * FROM {relation} WHERE {sql(NOTHING, self._dialect)}"  # noqa: S608 - names are quoted, values are literals

    def rows(self, extents: Sequence[Extent], schema: StructType, types: Types) -> str:
        """The rows of these extents, in the forms of their columns' types.

        Raises:
            ConfigurationError: if nothing tells a row's window or unit, or a value cannot be one of its column.
        """
        if not self._source.placeholders:
            return self._select(self._relation(), extents, schema, types)
        queries = [self._within(extent, schema, types) for extent in disjoint(extents)]
        return "\nUNION ALL\n".join(queries)

    def matching(self, rows: Predicate, types: Types) -> str:
        """The rows that a predicate means, in the forms of their columns' types."""
        return f"SELECT {self._sent(types)} FROM {self._relation()} WHERE {sql(rows, self._dialect)}"  # noqa: S608 - names are quoted, values are literals

    def in_parts(self, parts: Sequence[Predicate], types: Types) -> tuple[str, list[str]]:
        """All rows as a table, in the forms of their columns' types, and a condition on it for each part.

        The condition is on columns that stand there once more as they are, for which the database's indexes serve; Spark does not ask for them.
        """
        there, more = set(types), {}
        for number, column in enumerate(dict.fromkeys(name for part in parts for name in columns_of(part))):
            more[column] = f"strandline_{number}"
            while more[column] in there:
                more[column] += "_"
        name = self._dialect.name
        names = ", ".join(
            [self._sent(types), *(f"{name(column)} AS {name(again)}" for column, again in more.items())]
        )
        table = f"(SELECT {names} FROM {self._relation()}) AS parts"  # noqa: S608 - names are quoted
        return table, [sql(renamed(part, more), self._dialect) for part in parts]

    def some(self, rows: Predicate) -> str:
        """One row of a constant, if there is a row that a predicate means."""
        return f"SELECT 1 FROM {self._relation()} WHERE {sql(rows, self._dialect)} LIMIT 1"  # noqa: S608 - as above

    def undecodable(self, column: str) -> str:
        """The bytes of a text of PostgreSQL that is no UTF-8, in hexadecimal, and the texts of the keys; a database in SQL_ASCII takes any bytes."""

        def encoded(name: str) -> str:
            return f"encode(convert_to(CAST({self._dialect.name(name)} AS text), 'SQL_ASCII'), 'hex')"

        row = ", ".join(
            f"CASE WHEN {encoded(key)} ~ '{_UTF8}' THEN CAST({self._dialect.name(key)} AS text) END"
            for key in self._keys
        )
        return (
            f"SELECT {encoded(column)}{', ' if row else ''}{row} FROM {self._relation()}"  # noqa: S608 - names are quoted
            f" WHERE {encoded(column)} !~ '{_UTF8}' LIMIT 1"
        )

    def count(self, rows: Predicate) -> str:
        """The number of rows that a predicate means."""
        return f"SELECT count(*) FROM {self._relation()} WHERE {sql(rows, self._dialect)}"  # noqa: S608 - as above

    def only(self, columns: Sequence[str]) -> str:
        """Some columns, and no row."""
        names = ", ".join(map(self._dialect.name, columns))
        return f"SELECT {names} FROM {self._relation()} WHERE {sql(NOTHING, self._dialect)}"  # noqa: S608 - as above

    def highest(self, column: str, kind: Kind, rows: Predicate | None = None) -> str:
        """The highest value of a column that holds what ``kind`` says, in some rows or in all; the highest that Spark knows, and no infinity."""
        name = self._dialect.name(column)
        conditions = [
            *(self._dialect.finite(column, kind) or ()),
            *([f"({sql(rows, self._dialect)})"] if rows is not None else []),
        ]
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"SELECT max({name}) FROM {self._relation()}{where}"  # noqa: S608 - as above

    def last(self, column: str, rows: Predicate) -> str:
        """The highest value of a column in the rows that a predicate means, texts by their bytes; no row without one."""
        name, order = self._dialect.name(column), self._dialect.ordered(column)
        some = sql(rows, self._dialect)
        return (
            f"SELECT {name} FROM {self._relation()} WHERE ({some}) AND {name} IS NOT NULL"  # noqa: S608 - as above
            f" ORDER BY {order} DESC LIMIT 1"
        )

    def nth(self, column: str, rows: Predicate, number: int) -> str:
        """The value of a column in the row of a number, from 1, of the rows that a predicate means, ordered by it."""
        name = self._dialect.name(column)
        return (
            f"SELECT {name} FROM {self._relation()} WHERE {sql(rows, self._dialect)}"  # noqa: S608 - as above
            f" ORDER BY {name} LIMIT 1 OFFSET {number - 1}"
        )

    def spread(self, column: str, kind: Kind) -> str | None:
        """What statistics know of a column's values; None for a query, of which there are none."""
        if self._source.query is not None:
            return None
        return self._dialect.spread(self._source.table_parts, column, kind)

    def known_columns(self) -> str | None:
        """What the database knows of the table's columns; None for a query, of which it knows nothing."""
        return (
            None if self._source.query is not None else self._dialect.known_columns(self._source.table_parts)
        )

    def numbered(self, extents: Sequence[Extent], schema: StructType, types: Types) -> str:
        """The same for extents of one unit each, with the number of each in a column of its own.

        Raises:
            ConfigurationError: as for :meth:`rows`.
        """
        return "\nUNION ALL\n".join(
            self._within(extent, schema, types, f", {number} AS {self._dialect.name(NUMBER)}")
            for number, extent in enumerate(extents)
        )

    def _within(self, extent: Extent, schema: StructType, types: Types, more: str = "") -> str:
        """The rows of one extent, of a query that is told its ends: these hold all rows that the column says are in it."""
        kind = kinds(schema).get(self._source.window_column or "")
        lower, upper = covering(extent.lower, extent.upper, kind, self._zone)
        relation = self._relation(Extent(lower, upper, extent.units), kind)
        return self._select(relation, [extent], schema, types, more)

    def _select(
        self, relation: str, extents: Sequence[Extent], schema: StructType, types: Types, more: str = ""
    ) -> str:
        known = kinds(schema)
        columns = Columns(
            known,
            self._source.window_column,
            self._source.unit_columns,
            self._zone,
            self._source.placeholders,
        )
        condition = sql(rows_of(extents, columns), self._dialect)
        return f"SELECT {self._sent(types)}{more} FROM {relation} WHERE {condition}"  # noqa: S608 - names are quoted, values are literals

    def _sent(self, types: Types) -> str:
        keys = [key for key in self._keys if key in types]
        return ", ".join(self._dialect.sent(name, type_, keys) for name, type_ in types.items())

    def _relation(
        self, extent: Extent | None = None, kind: Kind | None = None, *, sample: bool = False
    ) -> str:
        """The table, or the user's query on lines of its own: a comment at its end ends there."""
        if self._source.query is None:
            return self._dialect.relation(self._source.table_parts)
        text = self._source.template.filled(lambda each: self._literal(each, extent, kind, sample))
        return f"(\n{without_end(text, self._dialect.reading)}\n) AS source"

    def _literal(
        self, placeholder: Placeholder, extent: Extent | None, kind: Kind | None, sample: bool
    ) -> str:
        if extent is None:  # a query without placeholders has none to fill
            raise AssertionError(placeholder)
        name = placeholder.unit
        if name is None:
            return self._moment(placeholder, extent, kind)
        (unit,) = extent.units
        if name not in unit and not sample:
            raise ConfigurationError(
                f"source.query: expected a unit with a value {name} for {{unit.{name}}}, found {', '.join(unit) or 'no units'}"
            )
        return self._dialect.literal(unit.get(name))

    def _moment(self, placeholder: Placeholder, extent: Extent, kind: Kind | None) -> str:
        ms = extent.lower if placeholder.name == "start" else extent.upper
        if ms is None:
            raise ConfigurationError(
                f"source.query: expected a watermark with a datetime entry for {{{placeholder.name}}}, found none"
            )
        exact, filters = as_datetime(ms, self._zone), self._source.window_column is not None
        # Rows that tell their time are filtered again, so a bound may lie further out: also beside a column that knows no offset.
        says_offset = self._dialect.moment_says_offset and not filters
        words = wording(self._source.asked, placeholder.name, self._zone, plain_says_offset=says_offset)
        if filters:
            words = replace(words, says_offset=False)
        elif not words.names(exact) and extent is not _SAMPLE:
            raise PlanError(inexpressible(placeholder.name, exact))
        moment = exact
        if filters:
            moment = self._outwards(placeholder, words, exact)
            if kind == "instant" and self._is_local_time(placeholder, words):
                moment = self._outwards_in_utc(placeholder, words, exact, moment)
        if placeholder.form is None:
            return self._dialect.moment(moment)
        return self._dialect.text(written(placeholder, moment))

    @staticmethod
    def _outwards(placeholder: Placeholder, words: Wording, exact: datetime) -> datetime:
        return words.below(exact) if placeholder.name == "start" else words.above(exact)

    def _outwards_in_utc(
        self, placeholder: Placeholder, words: Wording, exact: datetime, moment: datetime
    ) -> datetime:
        """A bound that is also far enough out for a database that takes it for a time in its session's zone, which is UTC, beside an instant."""
        in_utc = self._outwards(placeholder, replace(words, zone=UTC), exact)
        if placeholder.name == "end":
            return max(moment, in_utc, key=_wall)
        outer = min(moment, in_utc, key=_wall)
        if latest(_wall(outer), self._zone) <= exact:
            return outer
        # Clocks of the zone skip it, and some take it for a later time then: no bound lies there.
        return words.below(earliest(_wall(outer), self._zone) - _INSTANT)

    def _is_local_time(self, placeholder: Placeholder, words: Wording) -> bool:
        """Whether a literal is a bound without an offset that may stand beside an instant.

        A day, or what is coarser, is one if the other end is told so, too; else it may name the day of a column of days, by equality.
        """
        if placeholder.form is None:
            return not self._dialect.moment_says_offset
        if "%z" in placeholder.form:
            return False
        forms = {each.form for each in self._source.asked if each.name != placeholder.name}
        return not words.is_coarser_than("hour") or placeholder.form in forms


def _wall(moment: datetime) -> datetime:
    """The local time of a moment, which is what is written of it."""
    return moment.replace(tzinfo=None, fold=0)
