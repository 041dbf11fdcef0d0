"""The columns of an scd2 table, as a user declares them (docs/reference/loads.md, scd2)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from partitions.model import Model

ColumnName = Annotated[str, Field(min_length=1)]


class HistoryNames(Model):
    """The names of the columns that an scd2 table has beside those of its rows.

    Attributes:
        valid_from: start of a version.
        valid_to: end of a version.
        is_current: whether the version is the last one.
        is_deleted: whether a delete ended the version; only a table whose loads can delete has it.
    """

    valid_from: ColumnName = "_valid_from"
    valid_to: ColumnName = "_valid_to"
    is_current: ColumnName = "_is_current"
    is_deleted: ColumnName = "_is_deleted"

    @property
    def of_versions(self) -> tuple[str, str, str]:
        """Start, end and whether it is the last one: the columns of every scd2 table."""
        return (self.valid_from, self.valid_to, self.is_current)

    @property
    def flags(self) -> tuple[str, str]:
        """The columns that are true or false; the others have the type of the effective column."""
        return (self.is_current, self.is_deleted)

    @property
    def all(self) -> tuple[str, ...]:
        """All columns."""
        return (*self.of_versions, self.is_deleted)


DEFAULT_NAMES = HistoryNames()


def _as_text(value: Any) -> Any:
    """Return a date, time or number of YAML as a text; anything else unchanged."""
    if isinstance(value, date):  # or a datetime, which is one
        return value.isoformat()
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


OpenEnd = Annotated[str, BeforeValidator(_as_text), Field(min_length=1)]
"""The end of a version that is still current, as a text; its type is that of the effective column."""


def end_value(text: str, data_type: str) -> str | None:
    """Return an open end in the form that Spark casts exactly to a type; None if the type lacks it.

    Args:
        text: value as the user wrote it; a time without a zone is UTC.
        data_type: type of the effective column, as Spark's simple string.
    """
    read = _READERS.get(data_type.partition("(")[0])
    try:
        return None if read is None else read(text.strip())
    except (ValueError, InvalidOperation):
        return None


def _date(text: str) -> str:
    return date.fromisoformat(text).isoformat()


def _instant(text: str) -> str:
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC).isoformat()


def _local_time(text: str) -> str | None:
    time = datetime.fromisoformat(text)
    return None if time.tzinfo else time.isoformat()


def _whole(text: str) -> str:
    return str(int(text))


def _number(text: str) -> str | None:
    number = Decimal(text)
    return str(number) if number.is_finite() else None


_READERS: dict[str, Callable[[str], str | None]] = {
    "date": _date,
    "timestamp": _instant,
    "timestamp_ntz": _local_time,
    **dict.fromkeys(("tinyint", "smallint", "int", "bigint"), _whole),
    **dict.fromkeys(("decimal", "float", "double"), _number),
    "string": str,
}
"""By type: how a text is read."""
