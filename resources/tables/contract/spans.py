"""The span of values in each data file, from statistics."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from resources.tables.contract.commits import Version


class FileSpan(NamedTuple):
    """The span of a column in one data file, from statistics.

    Attributes:
        group: value of the group column, which all rows of the file share.
        lowest: lowest value of the other column.
        highest: highest value of the other column.
        rows: number of rows.
    """

    group: Any
    lowest: Any
    highest: Any
    rows: int


@runtime_checkable
class TellsSpans(Protocol):
    """Contents of a format whose statistics also hold the lowest value of a column."""

    def file_spans(self, version: Version, group: str, column: str) -> list[FileSpan] | None:
        """Return the span of a column in each data file of a version; None if statistics are incomplete.

        The order is arbitrary. Statistics are incomplete if another writer joined files of several groups,
        or deleted rows of files that stay. Times may be cut to milliseconds. Starts no Spark and reads no
        row.

        Args:
            version: version of the table.
            group: column with one value in each file.
            column: column with single values, never NULL.
        """
        ...
