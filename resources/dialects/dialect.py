"""What every dialect has to say, and what most say alike."""

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
    """Names, literals and comparisons; what ``resources.dialects.predicates`` needs."""

    @abstractmethod
    def name(self, column: str) -> str:
        """A name, quoted."""

    @abstractmethod
    def text(self, value: str) -> str:
        """A literal of text that no setting of the server reads in another way."""

    @abstractmethod
    def instant(self, value: datetime) -> str:
        """A literal of an instant; ``value`` is in UTC."""

    def local(self, value: datetime) -> str:
        """A literal of a time without a zone."""
        return f"TIMESTAMP '{clock(value)}'"

    def number(self, value: float | Decimal) -> str:
        """A literal of a number that is finite."""
        return format(value, "f") if isinstance(value, Decimal) else repr(value)

    def literal(self, value: Any) -> str:
        """A value as the dialect writes its type; None is NULL."""
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
        """Return a column of text as it is compared with < and >: by bytes, as watermarks order texts."""
        return self.name(column)

    def compared(self, column: str, sign: str, bound: Any) -> str:
        """Return that a column lies on one side of a bound; texts are compared by bytes, whatever the collation."""
        name = self.ordered(column) if isinstance(bound, str) else self.name(column)
        return f"{name} {sign} {self.literal(bound)}"

    def among(self, column: str, values: Sequence[Any]) -> str:
        """That a column has one of these values."""
        if len(values) == 1:
            return f"{self.name(column)} = {self.literal(values[0])}"
        return f"{self.name(column)} IN ({', '.join(map(self.literal, values))})"


class Dialect(SqlSyntax):
    """The words of a database that is asked by queries.

    Attributes:
        lexical_rules: how it reads quotes and comments of a user's query.
        clock: a query of its clock.
        text_type: in which a cast keeps any value as it is.
        moment_says_offset: whether :meth:`moment` gives the offset, too, and columns with instants take notice of it.
    """

    lexical_rules: ClassVar[LexicalRules]
    clock: ClassVar[str]
    text_type: ClassVar[str]
    moment_says_offset: ClassVar[bool] = True

    @abstractmethod
    def known_columns(self, parts: Sequence[str]) -> str:
        """Return a query about a table that is no view: rows of a column's name, whether an index begins with it, and whether it is never NULL."""

    def histogram(self, parts: Sequence[str], column: str, kind: ValueType) -> str | None:
        """Return a query of the histogram of a column of a table: rows of how many rows lie between two bounds, and a bound, ascending.

        No row if its statistics are old, or say nothing of most rows. None if the database keeps none.
        """

    def locked_tables(self) -> str | None:
        """Return a query of the tables that this transaction has read, and of their partitions; None if the database does not tell.

        Rows of an oid, a name, and why its transactions are not told, if they are not.
        """
        return None

    def identity(self, parts: Sequence[str]) -> str | None:
        """Return a query, for a transaction that has read the source, of what tells it from another one of its name; None if nothing does.

        Rows of the server's identity (NULL: none), a table's name, and its identity (NULL: none).

        Args:
            parts: of the table's name; none for a query.
        """
        raise NotImplementedError

    def sequences(self, tables: Sequence[int], columns: Sequence[str]) -> str:
        """Return a query of the sequences that number some columns of tables: rows of an oid, a name, and how many numbers a session takes at once."""
        raise NotImplementedError

    def open_transactions(self, tables: Sequence[int], sequences: Sequence[int]) -> Sequence[str]:
        """Return queries, the last of which is of the other transactions that are open at this moment, whatever the snapshot.

        Rows of whether it holds a lock for writing on one of the tables or sequences (of any, if none is named), its id, its number or NULL,
        its process (NULL: prepared), whose it is, when it began (NULL: not told), and when the server was started.
        """
        raise NotImplementedError

    def finite(self, column: str, kind: ValueType) -> Sequence[str] | None:
        """Return the conditions that a value is one that Python and Spark have, behind WHERE; None: all are."""

    @abstractmethod
    def moment(self, value: datetime) -> str:
        """What stands for ``{start}`` and ``{end}`` without a form; ``value`` is local, with its offset."""

    @abstractmethod
    def transfer_expression(self, column: str, type_: ColumnType, keys: Sequence[str] = ()) -> str:
        """Return a column under its own name, in the form that its driver and Spark pass on exactly.

        A time's text is ISO 8601 without an offset, an instant's in UTC: Java's classes for times go through the zone of the machine, where some
        local times do not exist. What is no date or time of the years 1 to 9999, or another array than its type says, is sent as a text that
        no reader takes for one; or the database itself refuses it with a note (``ColumnType.note``).

        Args:
            column: its name.
            type_: what becomes of it.
            keys: columns that tell a row in such a note.
        """

    def replacements(self, column: str, value: str) -> Sequence[str]:
        """Return expressions for a query that stand for a column with a value that no run can load: NULL in its place, and all values as text."""
        name = self.name(column)
        return (
            f"NULLIF({name}, {self.text(value)}) AS {name} (NULL in its place)",
            f"CAST({name} AS {self.text_type}) AS {name} (text)",
        )

    def array_replacements(self, column: str, value: str) -> Sequence[str]:
        """Return the same for a column of arrays."""
        return self.replacements(column, value)

    def for_driver(self, query: str) -> str:
        """Return a query as its JDBC driver takes it."""
        return query

    def relation(self, parts: Sequence[str]) -> str:
        """A table's name, each part quoted."""
        return ".".join(map(self.name, parts))


def clock(value: datetime) -> str:
    """Date and time in microseconds, without an offset."""
    return value.replace(tzinfo=None).isoformat(sep=" ", timespec="microseconds")
