"""Where rows come from, as a user declares it: files, a database, a table of the lake (spec 09)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from partitions.errors import ConfigurationError
from partitions.model import Model
from partitions.placeholders import Template
from partitions.sql_text import MARIADB, POSTGRESQL, Reading, spans, without_end


def _form(name: object) -> object:
    return "ndjson" if name == "jsonl" else name  # two names of one format


FileFormat = Annotated[Literal["ndjson", "json", "csv", "parquet"], BeforeValidator(_form)]

_COMPRESSED = ("", ".gz", ".bz2")
_PLAIN: dict[str, tuple[str, ...]] = {
    "ndjson": (".ndjson", ".jsonl", ".json"),
    "json": (".json",),
    "csv": (".csv", ".tsv"),
    "parquet": (".parquet",),
}
_NAME_PART = re.compile(r'(?:"((?:[^"\x00]|"")+)"|([^\s".\x00](?:[^".\x00]*[^\s".\x00])?))(\.|\Z)')
_LONGEST_NAME = 3
"""Parts of a table's name: database, schema, table."""


def _table_name(text: str) -> str:
    parts = text.split("/")
    if len(parts) != 2 or not all(
        part.isidentifier() and part.isascii() and not part.startswith("_") for part in parts
    ):
        raise ValueError("expected <layer>/<name>, letters, digits and underscores")
    return text


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


def _column(text: str) -> str:
    if "\x00" in text:
        raise ValueError("expected the name of a column")
    return text


def _query(text: str) -> str:
    template = Template.parse(text)
    if not without_end(text, POSTGRESQL):
        raise ValueError("expected a query, such as SELECT * FROM orders")
    if template.names and all(_quoted_placeholder(text, reading) for reading in (POSTGRESQL, MARIADB)):
        raise ValueError(_quoted_placeholder(text, POSTGRESQL))
    return text


def _quoted_placeholder(text: str, reading: Reading) -> str | None:
    """What is wrong with a query whose placeholders stand where a literal would not be one."""
    found = list(spans(text, reading))
    for each in Template.parse(text).placeholders:
        around = next((span for span in found if span.start < each.position < span.end), None)
        if around:
            where = "in a comment" if around.kind == "comment" else "in quotes"
            return (
                f"expected placeholders outside of quotes and comments, since a value comes with its own quotes;"
                f" found {{{each.name}}} {where}"
            )
    return None


TableName = Annotated[str, AfterValidator(_table_name)]
ColumnName = Annotated[str, Field(min_length=1), AfterValidator(_column)]


class FilesSource(Model):
    """Files under a root.

    Attributes:
        path: a folder (relative paths count from the project folder) or an object store's ``s3://bucket/prefix``.
        schema_: Spark DDL; without it the schema is inferred once from a bounded sample and pinned.
        options: for Spark's reader.
        extensions: case-sensitive endings; by default the format's own, each plain, .gz and .bz2.
        missing: what a window's folder that is not there, or holds no file, means where ``path`` has placeholders.
    """

    type: Literal["files"]
    path: Annotated[str, Field(min_length=1)]
    connection: str | None = None
    format: FileFormat
    schema_: Annotated[str | None, Field(alias="schema", min_length=1)] = None
    options: dict[str, str | int | float | bool] = Field(default_factory=dict)
    extensions: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(min_length=1)] | None = None

    missing: Literal["fail", "empty"] | None = None

    @property
    def placeholders(self) -> frozenset[str]:
        """What its path asks for by ``{start}``, ``{end}``, ``{unit.NAME}``, without the braces; only windows have them."""
        return Template.parse(self.path).names

    @property
    def root(self) -> str:
        """The part of the path above the first placeholder."""
        first = min((one.position for one in Template.parse(self.path).placeholders), default=len(self.path))
        return (
            self.path[: self.path.rfind("/", 0, first) + 1].rstrip("/") or "/"
            if first < len(self.path)
            else self.path
        )

    @property
    def folder_template(self) -> Template:
        """The rest of it."""
        return Template.parse(self.path[len(self.root) :])

    @property
    def declared_schema(self) -> str | None:
        """The schema that the definition declares, Spark DDL; None if it is inferred."""
        return self.schema_

    def undeclared(self) -> FilesSource:
        """Return the same source without a declared schema."""
        return self.model_copy(update={"schema_": None})

    @property
    def endings(self) -> tuple[str, ...]:
        """The endings of the files that belong to the source."""
        if self.extensions is not None:
            return self.extensions
        compressed = ("",) if self.format == "parquet" else _COMPRESSED
        return tuple(plain + packed for plain in _PLAIN[self.format] for packed in compressed)

    @property
    def shown(self) -> str:
        """In a description."""
        return self.path

    def identity(self) -> dict[str, Any]:
        """What makes it another source (spec 09, Fingerprint)."""
        return {
            "type": self.type,
            "connection": self.connection,
            "path": self.path,
            "extensions": sorted(self.endings),
        }

    @property
    def infers_schema(self) -> bool:
        """Whether a schema that is not declared is inferred from a sample; a source of rows has its own."""
        return True

    def reading(self) -> dict[str, Any]:
        """What else its rows depend on."""
        options = {key: self.options[key] for key in sorted(self.options)}
        return {"format": self.format, "schema": self.schema_, "options": options}


class RowsSource(Model):
    """A source that is asked for rows.

    Attributes:
        window_column: the time that decides on a row's window: a date or a timestamp, with or without a zone.
        unit_columns: the names of a unit's values to the columns that hold them.
    """

    window_column: ColumnName | None = None
    unit_columns: dict[Annotated[str, Field(min_length=1)], ColumnName] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _own_columns(self) -> RowsSource:
        names = [*([self.window_column] if self.window_column else []), *self.unit_columns.values()]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice:
            raise ValueError(
                f"window_column and unit_columns: expected a column of its own for each, found {twice} twice"
            )
        return self

    @property
    def placeholders(self) -> frozenset[str]:
        """What its query asks for by ``{start}``, ``{end}``, ``{unit.NAME}``, without the braces."""
        return frozenset()

    @property
    def declared_schema(self) -> str | None:
        """None: the source has a schema of its own."""
        return None

    def undeclared(self) -> Self:
        """Return the same source."""
        return self

    @property
    def infers_schema(self) -> bool:
        """Whether a schema is inferred from a sample."""
        return False

    def reading(self) -> dict[str, Any]:
        """What else its rows depend on."""
        return {}


class TableSource(RowsSource):
    """A table of the lake, by dataflow or not; ``table`` is ``<layer>/<name>``."""

    type: Literal["table"]
    table: TableName

    @property
    def shown(self) -> str:
        """In a description."""
        return self.table

    def identity(self) -> dict[str, Any]:
        """What makes it another source (spec 09, Fingerprint)."""
        return self.model_dump(include={"type", "table", "window_column", "unit_columns"})


class JdbcSource(RowsSource):
    """A table or a query of a database.

    Attributes:
        connection: of ``platform.yaml``, of type jdbc.
        table: parts split at dots; quotes around a part with a dot.
        query: a SELECT. ``{start}``, ``{end}`` and ``{unit.NAME}`` stand for literals.
    """

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
    def placeholders(self) -> frozenset[str]:
        """What its query asks for by ``{start}``, ``{end}``, ``{unit.NAME}``, without the braces."""
        return self.template.names

    @property
    def shown(self) -> str:
        """In a description."""
        return f"{self.table or 'a query'} of {self.connection}"

    def check(self, reading: Reading) -> None:
        """Look at the query again as its own database reads quotes and comments.

        Raises:
            ConfigurationError: where a placeholder stands in quotes or in a comment.
        """
        problem = _quoted_placeholder(self.query or "", reading)
        if problem:
            raise ConfigurationError(f"source.query: {problem}")

    def identity(self) -> dict[str, Any]:
        """What makes it another source (spec 09, Fingerprint)."""
        return self.model_dump(
            include={"type", "connection", "table", "query", "window_column", "unit_columns"}
        )


Source = FilesSource | JdbcSource | TableSource
