"""The ledger as CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from io import StringIO
from typing import Any

from platform_assets.ledger_files.rows import COLUMNS, Row

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""The first characters of texts that spreadsheets take for formulas."""


def csv_text(rows: Iterable[Row]) -> str:
    """Return rows as a text of CSV with a header; lines end in CR LF (RFC 4180).

    Unknown values are empty. A text that a spreadsheet would take for a formula gets a ``'`` in front.
    """
    buffer = StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in COLUMNS])
    return buffer.getvalue()


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
