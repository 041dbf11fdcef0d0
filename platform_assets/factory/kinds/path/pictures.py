"""The picture of how many files arrived on each day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from dagster import MetadataValue, TableColumn, TableRecord, TableSchema

from partitions.path.ledger import FileCounts
from partitions.path.ledger_partitions import LedgerPartition
from partitions.plan import pluralize
from platform_assets.factory.kinds.image import FAILED, FULL, NONE, PART, Mark, chart
from resources.kinds.path.arrivals import DayArrivals

_LEGEND = {FULL: "green is loaded", PART: "yellow late", FAILED: "red in quarantine"}

_FEWEST, _MOST, _HIGH = 14, 60, 10
"""The fewest and most days that are drawn, and the cells of the highest bar."""


def arrivals_metadata(days: Mapping[str, DayArrivals], today: date) -> dict[str, Any]:
    """Return the picture as metadata; nothing if no file arrived."""
    image = arrivals_picture(days, today)
    return {"arrivals": MetadataValue.md(image)} if image else {}


def partitions_metadata(
    dataflow: str, partitions: Sequence[tuple[LedgerPartition, FileCounts]]
) -> dict[str, Any]:
    """Return the partitions with their files and bytes as a table; nothing if there are none."""
    if not partitions:
        return {}
    types = {"partition": "string", "files": "int", "bytes": "int", "skipped": "int", "duplicates": "int"}
    records = [
        TableRecord(
            {"partition": partition.name, **{name: getattr(counts, name) for name in list(types)[1:]}}
        )
        for partition, counts in partitions
    ]
    schema = TableSchema(columns=[TableColumn(name, type_) for name, type_ in types.items()])
    return {
        "partitions": MetadataValue.table(records, schema),
        "all_partitions": f"strandline ledger {dataflow}",
    }


def arrivals_picture(days: Mapping[str, DayArrivals], today: date) -> str:
    """Return a bar for each day as an image in Markdown; "" if no file arrived.

    The colours show files loaded, loaded late, and quarantined.

    Args:
        days: arrivals by ISO day in UTC.
        today: the last day that is drawn, unless a run's clock put files on a later day.
    """
    if not days:
        return ""
    last = max(today, date.fromisoformat(max(days)))
    count = min(_MOST, max(_FEWEST, (last - date.fromisoformat(min(days))).days + 1))
    drawn_days = [(last - timedelta(days=count - 1 - number)).isoformat() for number in range(count)]
    bars = [days.get(day, DayArrivals()) for day in drawn_days]
    most_files = max(sum(bar) for bar in bars) or 1
    columns = [_bar(bar, most_files) for bar in bars]
    cells = [list(row) for row in zip(*columns, strict=True)]
    names = {0: pluralize(most_files, "file"), _HIGH - 1: "0"}
    marks = range(count - 1, -1, -max(7, -(-count // 4 // 7) * 7))
    ticks = [Mark(number + 0.5, f"{date.fromisoformat(drawn_days[number]):%b %-d}") for number in marks]
    image = chart("arrivals", cells, names, ticks[::-1], row_height=8, gap=1)
    parts = [text for value, text in _LEGEND.items() if any(value in row for row in cells)]
    total = pluralize(sum(map(sum, bars)), "file")
    return f"{image}\n\n{', '.join(parts).capitalize()}. Files by day in UTC, {total} in all."


def _bar(day: DayArrivals, most_files: int) -> list[int]:
    """Return the cells of a day from the top. Each count above 0 gets at least one cell."""
    red, yellow, green = (-(-count * _HIGH // most_files) for count in (day.quarantined, day.late, day.files))
    green = max(0, min(green, _HIGH - red - yellow))
    cells = [FAILED] * red + [PART] * yellow + [FULL] * green
    return ([NONE] * _HIGH + cells)[-_HIGH:]
