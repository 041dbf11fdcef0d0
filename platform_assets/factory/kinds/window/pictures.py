"""The ledger in Dagster: a picture of units and time, and tables of units and gaps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import Any

from dagster import MetadataValue, TableColumn, TableRecord, TableSchema

from partitions.instants import as_datetime
from partitions.intervals import Interval, subtract, union
from partitions.window.ledger import Ledger, UnitLedger
from partitions.window.work_unit import describe_unit
from platform_assets.factory.kinds.image import FAILED, FULL, NONE, PART, png_data_uri

_UNITS, _COLUMNS, _ROWS, _NAMED = 40, 60, 100, 10


def ledger_metadata(ledger: Ledger) -> dict[str, Any]:
    """Return how far everything is complete, the picture, the units, and the gaps."""
    complete = ledger.complete_up_to
    metadata: dict[str, Any] = {
        "complete_up_to": "nothing yet"
        if complete is None
        else as_datetime(complete, ledger.zone).isoformat(),
        "units": len(ledger.units),
        "gaps": ledger.gaps,
    }
    if image := ledger_picture(ledger):
        metadata["ledger"] = MetadataValue.md(image)
    if ledger.units:
        metadata["by_unit"] = _unit_table(ledger)
    if ledger.gaps:
        metadata["missing"] = _gap_table(ledger)
    return metadata


def ledger_picture(ledger: Ledger) -> str:
    """Return an image in Markdown: a row for each unit, a cell for each stretch of time.

    A cell is loaded, loaded in part, failed, or missing.
    """
    begins = [unit.covered[0][0] for unit in ledger.units if unit.covered] + [
        unit.gaps[0].start for unit in ledger.units if unit.gaps
    ]
    ends = [unit.covered[-1][1] for unit in ledger.units if unit.covered] + [
        unit.gaps[-1].end for unit in ledger.units if unit.gaps
    ]
    if not begins:
        return ""
    columns, drawn_units = _columns(min(begins), max(ends)), ledger.units[:_UNITS]
    image = png_data_uri([list(_cells(unit, columns)) for unit in drawn_units])
    first, last = (
        as_datetime(instant, ledger.zone).isoformat() for instant in (columns[0][0], columns[-1][1])
    )
    hidden = len(ledger.units) - _UNITS
    more = [f"{hidden:,} more units are not drawn"] if hidden > 0 else []
    names = ", ".join(_name(unit) for unit in drawn_units[:_NAMED]) + (
        ", …" if len(drawn_units) > _NAMED else ""
    )
    legend = f"green: loaded, yellow: in part, red: failed, grey: missing; from {first} to {last}"
    return "\n\n".join([f"![ledger]({image})", legend, f"from the top: {names}", *more])


def _columns(first: int, last: int) -> list[Interval]:
    """Return at most 60 equal stretches of time, each about a day wide if there are fewer."""
    count = min(_COLUMNS, max(1, -(-(last - first) // 86_400_000)))
    edges = [first + (last - first) * number // count for number in range(count + 1)]
    return list(pairwise(edges))


def _cells(unit: UnitLedger, columns: Sequence[Interval]) -> Iterator[int]:
    failed = union((gap.start, gap.end) for gap in unit.gaps if gap.why.startswith("failed"))
    for column in columns:
        missing = subtract([column], unit.covered)
        if subtract([column], failed) != [column]:
            yield FAILED
        elif not missing:
            yield FULL
        else:
            yield NONE if missing == [column] else PART


def _unit_table(ledger: Ledger) -> MetadataValue:
    """Return how far each unit is complete, for the first hundred units."""
    records = [
        TableRecord(
            {
                "unit": _name(unit),
                "complete up to": "-"
                if unit.complete_up_to is None
                else as_datetime(unit.complete_up_to, ledger.zone).isoformat(),
                "gaps": len(unit.gaps),
                "overlaps": len(unit.overlaps),
            }
        )
        for unit in ledger.units[:_ROWS]
    ]
    columns = [TableColumn("unit"), TableColumn("complete up to"), TableColumn("gaps", "int"), TableColumn("overlaps", "int")]  # fmt: skip
    return MetadataValue.table(records=records, schema=TableSchema(columns=columns))


def _name(unit: UnitLedger) -> str:
    return f"{describe_unit(unit.unit) or 'all'}{' (no longer listed)' if unit.is_removed else ''}"


def _gap_table(ledger: Ledger) -> MetadataValue:
    all_gaps = ((unit, gap) for unit in ledger.units for gap in unit.gaps)
    records = [
        TableRecord(
            {
                "unit": _name(unit),
                "from": as_datetime(gap.start, ledger.zone).isoformat(),
                "to": as_datetime(gap.end, ledger.zone).isoformat(),
                "why": gap.why,
            }
        )
        for unit, gap in islice(all_gaps, _ROWS)
    ]
    columns = [TableColumn(name) for name in ("unit", "from", "to", "why")]
    return MetadataValue.table(records=records, schema=TableSchema(columns=columns))
