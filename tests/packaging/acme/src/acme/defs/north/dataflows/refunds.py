"""Refunds of a service, a day at a time: rows and watermark are one commit."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from strandline import Request, incremental_asset

REFUNDS = {"2026-01-04": [5, 6], "2026-01-05": [7]}  # in place of a service


@incremental_asset(
    watermark={
        "type": "window",
        "definition": [
            {"name": "day", "type": "datetime", "range": {"from": "2026-01-04", "to": "2026-01-06"}}
        ],
        "window": "daily",
    },
    target={"load": "merge_overwrite", "replace_by_watermark": True},
    schema={"day": "date", "amount": "decimal(10,2)"},
    window_column="day",
)
def refunds(request: Request) -> Iterator[list[Mapping[str, Any]]]:
    """The refunds of the days that are due."""
    start, end = request.time_range
    days = [date.fromisoformat(day) for day in REFUNDS]
    yield [
        {"day": day, "amount": amount}
        for day in days
        if start.date() <= day < end.date()
        for amount in REFUNDS[day.isoformat()]
    ]
