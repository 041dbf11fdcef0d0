"""Which files of a table hold which values, as its statistics tell."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from resources.tables.contract.commits import Version


class FileSpan(NamedTuple):
    """What statistics tell of one data file.

    Attributes:
        group: the value of a column that is the same in all of the file's rows.
        lowest: value of another column.
        highest: value of it.
        rows: how many it has.
    """

    group: Any
    lowest: Any
    highest: Any
    rows: int


@runtime_checkable
class TellsSpans(Protocol):
    """The contents of a format whose statistics tell the lowest value of a column, too."""

    def file_spans(self, version: Version, group: str, column: str) -> list[FileSpan] | None:
        """Return the span of a column in each data file of a version, in any order; None if statistics do not tell it of all files.

        They do not where another writer has joined files of several groups, or has deleted rows of files that stay. Times may be cut to
        milliseconds. Starts no Spark, reads no row.

        Args:
            version: of the table.
            group: a column with one value in each file.
            column: with single values, never NULL.
        """
        ...
