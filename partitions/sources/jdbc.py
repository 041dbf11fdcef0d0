"""A table or a query of a database (docs/reference/project-files.md)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field, model_validator

from partitions.errors import ConfigurationError
from partitions.placeholders import Placeholder, Template
from partitions.sources.definition import ConnectionType
from partitions.sources.rows import RowsSource
from partitions.sql_text import MARIADB, POSTGRESQL, LexicalRules, spans, without_end

_NAME_PART = re.compile(r'(?:"((?:[^"\x00]|"")+)"|([^\s".\x00](?:[^".\x00]*[^\s".\x00])?))(\.|\Z)')
_LONGEST_NAME = 3
"""Parts of a table's name: database, schema, table."""


def _database_table(text: str) -> str:
    _parts(text)
    return text


def _parts(text: str) -> tuple[str, ...]:
    """The parts of a dotted name as they are in the database."""
    parts: list[str] = []
    position, more = 0, True
    while more and (match := _NAME_PART.match(text, position)):
        parts.append(match[2] or match[1].replace('""', '"'))
        position, more = match.end(), match[3] == "."
    if more or position != len(text) or len(parts) > _LONGEST_NAME:
        raise ValueError(
            "expected table or schema.table; a part with a dot or a blank is quoted, '\"a.b\".t'"
        )
    return tuple(parts)


def _query(text: str) -> str:
    template = Template.parse(text)
    if not without_end(text, POSTGRESQL):
        raise ValueError("expected a query, such as SELECT * FROM orders")
    if template.names and all(_quoted_placeholder(text, reading) for reading in (POSTGRESQL, MARIADB)):
        raise ValueError(_quoted_placeholder(text, POSTGRESQL))
    return text


def _quoted_placeholder(text: str, reading: LexicalRules) -> str | None:
    """What is wrong with a query whose placeholders stand where a literal would not be one."""
    quoted = list(spans(text, reading))
    for placeholder in Template.parse(text).placeholders:
        around = next((span for span in quoted if span.start < placeholder.position < span.end), None)
        if around:
            where = "in a comment" if around.kind == "comment" else "in quotes"
            return (
                f"expected placeholders outside of quotes and comments, since a value comes with its own quotes;"
                f" found {{{placeholder.name}}} {where}"
            )
    return None


class JdbcSource(RowsSource):
    """A table or a query of a database.

    Attributes:
        connection: of ``platform.yaml``, of type jdbc.
        table: parts split at dots; quotes around a part with a dot.
        query: a SELECT. ``{start}``, ``{end}`` and ``{unit.NAME}`` stand for literals.
    """

    connection_type: ClassVar[ConnectionType | None] = "jdbc"
    has_query: ClassVar[bool] = True

    type: Literal["jdbc"]
    connection: Annotated[str, Field(min_length=1)]
    table: Annotated[str, AfterValidator(_database_table)] | None = None
    query: Annotated[str, AfterValidator(_query)] | None = None

    @model_validator(mode="after")
    def _one_text(self) -> JdbcSource:
        if self.table is not None and self.query is not None:
            raise ValueError("table and query both say what is read: expected one of them")
        if self.table is None and self.query is None:
            raise ValueError("expected table or query, found neither")
        return self

    @property
    def table_parts(self) -> tuple[str, ...]:
        """The parts of the table's name, without quotes; none for a query."""
        return _parts(self.table) if self.table is not None else ()

    @property
    def template(self) -> Template:
        """The query with its placeholders; of a table without any part."""
        return Template.parse(self.query or "")

    @property
    def asked(self) -> Sequence[Placeholder]:
        """The placeholders of its query."""
        return self.template.placeholders

    @property
    def places(self) -> Sequence[Placeholder]:
        """The placeholders of its query, if no column tells the window of a row."""
        return self.asked if self.window_column is None else ()

    @property
    def placeholders(self) -> frozenset[str]:
        """What its query asks for by ``{start}``, ``{end}``, ``{unit.NAME}``, without the braces."""
        return self.template.names

    @property
    def shown(self) -> str:
        """The table or query, and the connection."""
        return f"{self.table or 'a query'} of {self.connection}"

    def check(self, reading: LexicalRules) -> None:
        """Look at the query again as its own database reads quotes and comments.

        Raises:
            ConfigurationError: if a placeholder stands in quotes or in a comment.
        """
        problem = _quoted_placeholder(self.query or "", reading)
        if problem:
            raise ConfigurationError(f"source.query: {problem}")

    def identity(self) -> dict[str, Any]:
        """Return what makes it another source (docs/reference/state.md)."""
        return self.model_dump(
            include={"type", "connection", "table", "query", "window_column", "unit_columns"}
        )
