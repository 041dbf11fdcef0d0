"""The rows of a ledger have the same columns for each kind of watermark."""

from __future__ import annotations

from typing import Any

from platform_assets.ledger_files.csv_text import csv_text
from platform_assets.ledger_files.rows import COLUMNS, ledger_rows

DAY, NEXT = "2026-01-01T00:00:00+00:00", "2026-01-02T00:00:00+00:00"


def cells(document: dict[str, Any]) -> list[dict[str, Any]]:
    rows = list(ledger_rows(document))
    assert all(set(row) <= set(COLUMNS) for row in rows)
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def test_windows_have_a_row_for_each_unit_and_stretch() -> None:
    unit = {
        "unit": {"shop": "a"},
        "gone": False,
        "complete_up_to": DAY,
        "covered": [{"start": DAY, "end": NEXT}],
        "gaps": [{"start": NEXT, "end": NEXT, "why": "never loaded"}],
        "overlaps": [],
    }
    document = {"dataflow": "days", "complete_up_to": DAY, "units": [unit]}
    name = {"dataflow": "days", "unit": '{"shop": "a"}'}
    assert cells(document) == [
        {"dataflow": "days", "row": "total", "complete_up_to": DAY},
        {**name, "row": "unit", "complete_up_to": DAY},
        {**name, "row": "covered", "start": DAY, "end": NEXT},
        {**name, "row": "gap", "start": NEXT, "end": NEXT, "why": "never loaded"},
    ]


def test_a_column_has_its_total_and_what_expired() -> None:
    document = {
        "dataflow": "orders",
        "units": None,
        "covered": {"after": None, "up_to": {"id": 9}, "files": 0, "rows": 7},
        "late": {"count": 0},
        "quarantined": {"count": 0},
        "retention": {"column": "at", "keep": "90 days", "before": DAY, "expired_rows": 3},
    }
    total = {"files": 0, "rows": 7, "late": 0, "quarantined": 0, "complete_up_to": '{"id": 9}'}
    assert cells(document) == [
        {"dataflow": "orders", "row": "total", **total},
        {"dataflow": "orders", "row": "expired", "end": DAY, "rows": 3, "why": "at keeps 90 days"},
    ]


def test_an_error_is_a_row_and_no_text_is_a_formula() -> None:
    document = {"dataflow": "orders", "units": [], "error": {"message": "=1+1, stopped"}}
    header, row = csv_text(ledger_rows(document)).splitlines()
    assert header == ",".join(COLUMNS)
    assert (row.startswith("orders,error,"), row.endswith(',"\'=1+1, stopped"')) == (True, True)
