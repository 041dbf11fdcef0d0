"""The ledger as Dagster shows it: a picture of units x time, and a table of what is missing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from dagster import MetadataValue, TableColumn, TableRecord, TableSchema

from partitions.instants import as_datetime
from partitions.intervals import Interval, difference
from partitions.window.coverage import Coverage
from partitions.window.ledger import Ledger
from partitions.window.slices import words

_UNITS, _COLUMNS, _GAPS = 40, 60, 100
_FULL, _PART, _FAILED, _NONE = "🟩", "🟨", "🟥", "⬜"


def ledger_metadata(ledger: Ledger) -> dict[str, Any]:
    """How far everything is complete, the picture, and the gaps."""
    complete = ledger.complete_up_to
    shown: dict[str, Any] = {
        "complete_up_to": "nothing yet"
        if complete is None
        else as_datetime(complete, ledger.zone).isoformat(),
        **ledger.counts,
    }
    if drawn := picture(ledger):
        shown["ledger"] = MetadataValue.md(drawn)
    if any(one.coverage.gaps for one, _ in ledger.groups):
        shown["missing"] = _gap_table(ledger)
    return shown


def picture(ledger: Ledger) -> str:
    """A line for each unit, a square for each stretch of time: loaded, loaded in part, failed, or missing."""
    if ledger.start is None or ledger.end is None or ledger.start >= ledger.end:
        return ""
    columns = _columns(ledger.start, ledger.end)
    lines = [
        f"{''.join(_square(one.coverage, *column) for column in columns)} {words(one.unit) or 'all'}{' (gone)' if one.gone else ''}"
        for one in ledger.units[:_UNITS]
    ]
    more = [f"… and {len(ledger.units) - _UNITS:,} more units"] if len(ledger.units) > _UNITS else []
    first, last = (
        as_datetime(instant, ledger.zone).isoformat() for instant in (columns[0][0], columns[-1][1])
    )
    legend = f"{_FULL} loaded {_PART} in part {_FAILED} failed {_NONE} missing, from {first} to {last}"
    return "\n".join(["```", *lines, *more, "```", legend])


def _columns(first: int, last: int) -> list[Interval]:
    """Equal stretches, as wide as a day where there are few."""
    count = min(_COLUMNS, max(1, -(-(last - first) // 86_400_000)))
    edges = [first + (last - first) * number // count for number in range(count + 1)]
    return list(pairwise(edges))


def _square(one: Coverage, start: int, end: int) -> str:
    if any(cause.why == "failed" and first < end and start < last for first, last, cause in one.gaps):
        return _FAILED
    left = difference([(start, end)], one.covered)
    if not left:
        return _FULL
    return _NONE if left == [(start, end)] else _PART


def _gap_table(ledger: Ledger) -> MetadataValue:
    records = [
        TableRecord(
            {
                "unit": words(one.unit) or "all",
                "from": as_datetime(start, ledger.zone).isoformat(),
                "to": as_datetime(end, ledger.zone).isoformat(),
                "why": cause.words,
            }
        )
        for one in ledger.units
        for start, end, cause in one.coverage.gaps
    ]
    columns = [TableColumn(name) for name in ("unit", "from", "to", "why")]
    return MetadataValue.table(records=records[:_GAPS], schema=TableSchema(columns=columns))
