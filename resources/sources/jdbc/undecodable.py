"""A text that PostgreSQL cannot send, since its bytes are no UTF-8: a database in SQL_ASCII takes any bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partitions.errors import BadPart, SourceError, shorten_to_line
from partitions.sources.database_types import MAX_SHOWN_LETTERS, ColumnType
from resources.connections.jdbc import JdbcConnection
from resources.dialects import DIALECTS
from resources.sources.jdbc.client import Client
from resources.sources.jdbc.questions import Questions


def is_undecodable(error: SourceError) -> bool:
    """Return whether PostgreSQL could not send a text, since its bytes are no UTF-8."""
    return 'invalid byte sequence for encoding "UTF8"' in error.message


def find_undecodable(
    database: Client, questions: Questions, types: Mapping[str, ColumnType], keys: Sequence[str]
) -> tuple[str, str, str] | None:
    """Return column, bytes in hexadecimal and row of the first text that the database cannot send; None if none is found.

    Args:
        database: that is asked.
        questions: about the source.
        types: of the source's columns, by name.
        keys: columns that tell a row; the row is empty without any.

    Raises:
        SourceError: the database refuses, or does not answer.
    """
    for name in (name for name, type_ in types.items() if type_.data_type == "string"):
        for encoded, *texts in database.ask(questions.undecodable(name)):
            cells = zip(keys, texts, strict=True)
            return name, encoded, ", ".join(f"{key} = {text}" for key, text in cells if text is not None)
    return None


def undecodable_text(column: str, encoded: str, row: str, connection: JdbcConnection, shown: str) -> BadPart:
    """The error for a text that is no UTF-8, in a database that takes any bytes; ``encoded`` are its bytes in hexadecimal."""
    cut = encoded if len(encoded) <= MAX_SHOWN_LETTERS else f"{encoded[:MAX_SHOWN_LETTERS]}…"
    where = f" in the row with {shorten_to_line(connection.hide(row))}" if row else ""
    why = f"column {column}: expected text in UTF-8, found the bytes {cut}{where}"
    name = DIALECTS[connection.system].name(column)
    as_latin = (
        f"convert_from(convert(convert_to({name}, 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'SQL_ASCII') AS {name}"
    )
    return BadPart(
        f"{shown}: {why}. Nothing of the slice is loaded. Correct it at the source, or read the table through a `query` in which the column is"
        f" {as_latin} (if its texts are in LATIN1)",
        part=shown,
        why=why,
        code="bad_value",
    )
