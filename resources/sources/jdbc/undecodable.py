"""Texts that PostgreSQL cannot send because they are not UTF-8; SQL_ASCII allows any bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from partitions.errors import BadPart, SourceError, shorten_to_line
from partitions.sources.database_types import MAX_SHOWN_LETTERS, ColumnType
from resources.connections.jdbc import JdbcConnection
from resources.dialects import DIALECTS
from resources.sources.jdbc.client import Client
from resources.sources.jdbc.questions import Questions


def is_undecodable(error: SourceError) -> bool:
    """Return whether PostgreSQL could not send a text that is not UTF-8."""
    return 'invalid byte sequence for encoding "UTF8"' in error.message


def find_undecodable(
    database: Client, questions: Questions, types: Mapping[str, ColumnType], keys: Sequence[str]
) -> tuple[str, str, str] | None:
    """Return column, hexadecimal bytes and row of the first unsendable text; None if there is none.

    Args:
        database: the open connection.
        questions: about the source.
        types: the types of the source's columns, by name.
        keys: the columns that identify a row; without any the row is empty.

    Raises:
        SourceError: the database refuses, or does not answer.
    """
    for name in (name for name, type_ in types.items() if type_.data_type == "string"):
        for encoded, *texts in database.ask(questions.undecodable(name)):
            cells = zip(keys, texts, strict=True)
            return name, encoded, ", ".join(f"{key} = {text}" for key, text in cells if text is not None)
    return None


def undecodable_text(column: str, encoded: str, row: str, connection: JdbcConnection, label: str) -> BadPart:
    """Return the error for a text that is not UTF-8; ``encoded`` has its bytes in hexadecimal."""
    cut = encoded if len(encoded) <= MAX_SHOWN_LETTERS else f"{encoded[:MAX_SHOWN_LETTERS]}…"
    where = f" in the row with {shorten_to_line(connection.hide(row))}" if row else ""
    why = f"column {column}: expected text in UTF-8, found the bytes {cut}{where}"
    name = DIALECTS[connection.system].name(column)
    as_latin = (
        f"convert_from(convert(convert_to({name}, 'SQL_ASCII'), 'LATIN1', 'UTF8'), 'SQL_ASCII') AS {name}"
    )
    return BadPart(
        f"{label}: {why}. Nothing of the slice is loaded. Correct it at the source, or read the table through a `query` in which the column is"
        f" {as_latin} (if its texts are in LATIN1)",
        part=label,
        why=why,
        code="bad_value",
    )
