"""The SQL that every dialect must provide, and defaults that most share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, ClassVar

from partitions.sources.database_types import ColumnType
from partitions.sql_text import LexicalRules
from partitions.unit_values import ValueType


class SqlSyntax(ABC):
    """Names, literals and comparisons for ``resources.dialects.predicates``."""

    @abstractmethod
    def name(self, column: str) -> str:
        """Return a quoted name."""

    @abstractmethod
    def text(self, value: str) -> str:
        """Return a text literal that reads the same under all settings of the server."""

    @abstractmethod
    def instant(self, value: datetime) -> str:
        """Return a literal of an instant; ``value`` is in UTC."""

    def local(self, value: datetime) -> str:
        """Return a literal of a time without a zone."""
        return f"TIMESTAMP '{clock(value)}'"

    def number(self, value: float | Decimal) -> str:
        """Return a literal of a finite number."""
        return format(value, "f") if isinstance(value, Decimal) else repr(value)

    def literal(self, value: Any) -> str:
        """Return a value as a literal of its type; None is NULL."""
        match value:
            case None:
                return "NULL"
            case bool():
                return "TRUE" if value else "FALSE"
            case int() | float() | Decimal():
                return self.number(value)
            case datetime():
                return self.local(value) if value.tzinfo is None else self.instant(value.astimezone(UTC))
            case date():
                return f"DATE '{value.isoformat()}'"
        return self.text(str(value))

    def ordered(self, column: str) -> str:
        """Return a text column in the form that < and > compare by bytes, as watermarks order texts."""
        return self.name(column)

    def compared(self, column: str, sign: str, bound: Any) -> str:
        """Return the condition that a column lies on one side of a bound.

        Texts compare by bytes, whatever the collation.
        """
        name = self.ordered(column) if isinstance(bound, str) else self.name(column)
        return f"{name} {sign} {self.literal(bound)}"

    def among(self, column: str, values: Sequence[Any]) -> str:
        """Return the condition that a column has one of these values."""
        if len(values) == 1:
            return f"{self.name(column)} = {self.literal(values[0])}"
        return f"{self.name(column)} IN ({', '.join(map(self.literal, values))})"


class Dialect(SqlSyntax):
    """The SQL of a database that is queried directly.

    Attributes:
        lexical_rules: how it reads quotes and comments of a user's query.
        clock: a query of its clock.
        text_type: a type that keeps any value unchanged in a cast.
        moment_says_offset: whether :meth:`moment` includes the offset, and columns with instants use it.
    """

    lexical_rules: ClassVar[LexicalRules]
    clock: ClassVar[str]
    text_type: ClassVar[str]
    moment_says_offset: ClassVar[bool] = True

    @abstractmethod
    def known_columns(self, parts: Sequence[str]) -> str:
        """Return a query of a table's columns; no rows for a view.

        Rows: a column's name, whether an index starts with it, and whether it is never NULL.
        """

    def histogram(self, parts: Sequence[str], column: str, kind: ValueType) -> str | None:
        """Return a query of a column's histogram; None if the database keeps none.

        Rows: the number of rows between two bounds, and a bound, ascending. No row if the statistics are
        old, or cover few rows.
        """

    def locked_tables(self) -> str | None:
        """Return a query of the tables and partitions that this transaction has read; None if unsupported.

        Rows: an oid, a name, and the reason why the database does not show its transactions, if so.
        """
        return None

    def identity(self, parts: Sequence[str]) -> str | None:
        """Return a query of the identity of a source that this transaction has read; None if there is none.

        Rows: the server's identity (NULL: none), a table's name, and its identity (NULL: none).

        Args:
            parts: parts of the table's name; empty for a query.
        """
        raise NotImplementedError

    def sequences(self, tables: Sequence[int], columns: Sequence[str]) -> str:
        """Return a query of the sequences that number these columns of tables.

        Rows: an oid, a name, and how many numbers a session takes at once. Only dialects whose
        :meth:`locked_tables` is supported have it.
        """
        raise NotImplementedError

    def open_transactions(self, tables: Sequence[int], sequences: Sequence[int]) -> Sequence[str]:
        """Return queries; the last lists the other transactions that are open now, whatever the snapshot.

        Rows: whether a transaction holds a write lock on one of the tables or sequences (on any, if none is
        named), its id, its number or NULL, its process (NULL: prepared), its owner, its start (NULL:
        hidden), and the start of the server. Only dialects whose :meth:`locked_tables` is supported have
        it.
        """
        raise NotImplementedError

    def finite(self, column: str, kind: ValueType) -> Sequence[str] | None:
        """Return conditions for WHERE that exclude values which Python or Spark lacks; () or None: none."""

    @abstractmethod
    def moment(self, value: datetime) -> str:
        """Return the literal for ``{start}`` and ``{end}`` without a form; ``value`` is local with offset."""

    @abstractmethod
    def transfer_expression(self, column: str, type_: ColumnType, keys: Sequence[str] = ()) -> str:
        """Return a column under its own name, in a form that driver and Spark transfer exactly.

        A time's text is ISO 8601 without an offset, an instant's in UTC: Java's time classes go through
        the zone of the machine, where some local times do not exist. Values that are no date or time of
        the years 1 to 9999, or arrays that do not fit their type, are sent as a text that no reader takes
        for a value; or the database itself refuses them with a note (``ColumnType.note``).

        Args:
            column: the column's name.
            type_: its type in Spark.
            keys: columns that identify a row in such a note.
        """

    def replacements(self, column: str, value: str) -> Sequence[str]:
        """Return expressions that a query can use for a column with a value that no run can load.

        One puts NULL in its place, the other turns all values into text.
        """
        name = self.name(column)
        return (
            f"NULLIF({name}, {self.text(value)}) AS {name} (NULL in its place)",
            f"CAST({name} AS {self.text_type}) AS {name} (text)",
        )

    def array_replacements(self, column: str, value: str) -> Sequence[str]:
        """Return expressions for a column of arrays with a value that no run can load."""
        return self.replacements(column, value)

    def for_driver(self, query: str) -> str:
        """Return a query in the form that its JDBC driver accepts."""
        return query

    def relation(self, parts: Sequence[str]) -> str:
        """Return a table's name with each part quoted."""
        return ".".join(map(self.name, parts))


def clock(value: datetime) -> str:
    """Return date and time as text with microseconds, without an offset."""
    return value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
