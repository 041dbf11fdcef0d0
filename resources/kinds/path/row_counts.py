"""The rows that a table holds of each file."""

from __future__ import annotations

from partitions.predicate import EVERYTHING, Predicate
from resources.sources.files.paths import SOURCE_FILE
from resources.tables.contract.table import Table


def count_rows_of_files(table: Table, rows: Predicate = EVERYTHING) -> dict[str, int]:
    """Return the number of rows of each file; none if there is no table, or rows do not tell their file.

    Args:
        table: the table.
        rows: rows to look at.
    """
    if not table.exists():
        return {}
    counts = table.contents.text_counts(SOURCE_FILE, rows)
    return dict(zip(counts["text"].to_pylist(), counts["rows"].to_pylist(), strict=True))
