"""A table or a query of a database (docs/reference/project-files.md)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from partitions.errors import ConfigurationError
from partitions.placeholders import Placeholder, Template
from partitions.sources.definition import ConnectionType, IncrementalSupport
from partitions.sources.rows import RowsSource
from partitions.sql_text import MARIADB, POSTGRESQL, LexicalRules, non_code_spans, strip_end

_NAME_PART = re.compile(r'(?:"((?:[^"\x00]|"")+)"|([^\s".\x00](?:[^".\x00]*[^\s".\x00])?))(\.|\Z)')
_LONGEST_NAME = 3
"""The most parts of a table's name: database, schema, table."""


def _check_table_name(text: str) -> str:
    _split_name(text)
    return text


def _split_name(text: str) -> tuple[str, ...]:
    """Return the unquoted parts of a dotted table name."""
    parts: list[str] = []
    position, expects_part = 0, True
    while expects_part and (match := _NAME_PART.match(text, position)):
        parts.append(match[2] or match[1].replace('""', '"'))
        position, expects_part = match.end(), match[3] == "."
    if expects_part or position != len(text) or len(parts) > _LONGEST_NAME:
        raise ValueError(
            "expected table or schema.table; a part with a dot or a blank is quoted, '\"a.b\".t'"
        )
    return tuple(parts)


def _check_query(text: str) -> str:
    template = Template.parse(text)
    if not strip_end(text, POSTGRESQL):
        raise ValueError("expected a query, such as SELECT * FROM orders")
    if template.names and all(_quoted_placeholder(text, syntax) for syntax in (POSTGRESQL, MARIADB)):
        raise ValueError(_quoted_placeholder(text, POSTGRESQL))
    return text


def _quoted_placeholder(text: str, syntax: LexicalRules) -> str | None:
    """Return what is wrong with a query whose placeholder is quoted or commented; None if none is."""
    quoted_spans = list(non_code_spans(text, syntax))
    for placeholder in Template.parse(text).placeholders:
        enclosing = next(
            (span for span in quoted_spans if span.start < placeholder.position < span.end), None
        )
        if enclosing:
            where = "in a comment" if enclosing.kind == "comment" else "in quotes"
            return (
                "expected placeholders outside of quotes and comments, since Strandline quotes each value; found {"
                f"{placeholder.name}}} {where}"
            )
    return None


class JdbcSource(RowsSource):
    """A table or a query of a database.

    Attributes:
        connection: a connection of ``platform.yaml``, of type jdbc.
        table: its name with dots between the parts; a part that contains a dot is quoted.
        query: a SELECT. ``{start}``, ``{end}`` and ``{unit.NAME}`` stand for literals.
    """

    connection_type: ClassVar[ConnectionType | None] = "jdbc"
    has_query: ClassVar[bool] = True

    type: Literal["jdbc"]
    connection: Annotated[str, Field(min_length=1)]
    table: Annotated[str, AfterValidator(_check_table_name)] | None = None
    query: Annotated[str, AfterValidator(_check_query)] | None = None

    @model_validator(mode="after")
    def _has_table_or_query(self) -> JdbcSource:
        if self.table is not None and self.query is not None:
            raise ValueError("table and query cannot stand together: expected one of them")
        if self.table is None and self.query is None:
            raise ValueError("expected table or query, found neither")
        return self

    @property
    def table_parts(self) -> tuple[str, ...]:
        """The parts of the table's name, without quotes; empty for a query."""
        return _split_name(self.table) if self.table is not None else ()

    @property
    def template(self) -> Template:
        """The query with its placeholders; empty for a table."""
        return Template.parse(self.query or "")

    @property
    def request_placeholders(self) -> Sequence[Placeholder]:
        """The placeholders of its query."""
        return self.template.placeholders

    @property
    def window_placeholders(self) -> Sequence[Placeholder]:
        """The placeholders of its query, if no column identifies the window of a row."""
        return self.request_placeholders if self.window_column is None else ()

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of its query's placeholders, without braces."""
        return self.template.names

    @property
    def label(self) -> str:
        """The table or query, and the connection."""
        return f"{self.table or 'a query'} of {self.connection}"

    def check(self, syntax: LexicalRules) -> None:
        """Check the query once more, with the lexical rules of its own database.

        Raises:
            ConfigurationError: a placeholder is in quotes or in a comment.
        """
        problem = _quoted_placeholder(self.query or "", syntax)
        if problem:
            raise ConfigurationError(f"source.query: {problem}")

    @property
    def incremental_support(self) -> IncrementalSupport:
        """Detects new rows; a database may show its open transactions."""
        return super().incremental_support._replace(shows_transactions=True)

    def identity(self) -> dict[str, Any]:
        """Return the keys that identify the source: a change makes it another one (docs/reference/state.md)."""
        return self.model_dump(
            include={"type", "connection", "table", "query", "window_column", "unit_columns"}
        )
