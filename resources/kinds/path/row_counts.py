"""The rows that a table holds of each file."""

from __future__ import annotations

from resources.sources.files.paths import SOURCE_FILE
from resources.tables.contract.table import Table


def count_rows_of_files(table: Table) -> dict[str, int]:
    """Return the number of rows of each file; none if there is no table, or rows do not tell their file."""
    if not table.exists():
        return {}
    counts = table.contents.text_counts(SOURCE_FILE)
    return dict(zip(counts["text"].to_pylist(), counts["rows"].to_pylist(), strict=True))
