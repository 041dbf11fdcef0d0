"""The ledger in Dagster: a picture of units and time, and tables of units and gaps."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC
from itertools import islice
from typing import Any, NamedTuple

from dagster import MetadataValue, TableColumn, TableRecord, TableSchema

from partitions.instants import as_datetime
from partitions.intervals import Interval, union
from partitions.plan import pluralize
from partitions.window.ledger import GROWS, Gap, Ledger, UnitLedger
from partitions.window.units import NO_UNIT, unit_of
from partitions.window.work_unit import describe_unit
from platform_assets.factory.kinds.image import FAILED, FULL, INLINE, NONE, PART, chart
from platform_assets.factory.kinds.time_scale import cells_of_time, ticks_of_time

_ROWS, _NAMED = 100, 8
"""The most rows of a table, and the longest name that a row of several units begins with."""

_SIZES = (*((cells, rows) for rows in (12, 8, 5) for cells in (72, 40, 24)), (72, 12))
"""The most cells and rows, finest first: the first that stands on the page itself is drawn, else the finest."""

_LEGEND = {FULL: "green is loaded", PART: "yellow in part", FAILED: "red failed", NONE: "grey missing"}

_SEVERITY = (FULL, NONE, PART, FAILED)
"""The values of a cell, the least worrying first."""


def ledger_metadata(ledger: Ledger) -> dict[str, Any]:
    """Return how much is loaded, how far everything is complete, the picture, the units, the gaps.

    Loaded windows whose last read failed, or that are out of date, have a table of their own: their rows are
    not missing.
    """
    complete = ledger.complete_up_to
    metadata: dict[str, Any] = {
        "loaded": _summary(ledger),
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
        metadata["missing"] = _gap_table(ledger, lambda unit: unit.gaps)
    if any(_to_read_again(unit) for unit in ledger.units):
        metadata["loaded, to read again"] = _gap_table(ledger, _to_read_again)
    if any(unit.read_at for unit in ledger.units):
        metadata["read at"] = _gap_table(ledger, lambda unit: unit.read_at)
    return metadata


def _summary(ledger: Ledger) -> str:
    """Return how many units lack nothing, and how many stretches of the others failed, lack or grow."""
    units = [unit for unit in ledger.units if not unit.is_removed]
    growing = sum(gap.why == GROWS for unit in units for gap in unit.gaps)
    failed = sum(gap.why.startswith("failed") for unit in units for gap in unit.gaps)
    missing = sum(len(unit.gaps) for unit in units) - growing - failed
    whole = sum(all(gap.why == GROWS for gap in unit.gaps) for unit in units)
    parts = [
        f"{pluralize(count, 'stretch', 'stretches')} of time {what}"
        for count, what in ((failed, "failed"), (missing, "missing"), (growing, "still growing"))
        if count
    ]
    if rereads := sum(len(unit.failed_rereads) for unit in units):
        parts.append(f"{pluralize(rereads, 'work unit')} loaded, but not read again")
    if outdated := sum(len(unit.outdated) for unit in units):
        parts.append(f"{pluralize(outdated, 'stretch', 'stretches')} loaded, but out of date")
    of_units = f"{whole:,} of {pluralize(len(units), 'unit')} without a gap" if _has_units(ledger) else ""
    return "; ".join(filter(None, [of_units, ", ".join(parts) or "nothing is missing"]))


def ledger_picture(ledger: Ledger) -> str:
    """Return an image in Markdown: a row for each unit, a cell for each stretch of time.

    Units that look alike share a row; units that lack something come first. A cell is loaded, loaded in part,
    failed, or missing.
    """
    begins = [unit.covered[0][0] for unit in ledger.units if unit.covered] + [
        unit.gaps[0].start for unit in ledger.units if unit.gaps
    ]
    ends = [unit.covered[-1][1] for unit in ledger.units if unit.covered] + [
        unit.gaps[-1].end for unit in ledger.units if unit.gaps
    ]
    if not begins:
        return ""
    for most_cells, most_rows in _SIZES:
        columns = cells_of_time(min(begins), max(ends), ledger.zone, most=most_cells)
        drawn = _drawn(ledger, columns, most_rows)
        if len(drawn) < INLINE:
            break
    return drawn


def _drawn(ledger: Ledger, columns: list[Interval], most_rows: int) -> str:
    rows = _rows(ledger.units, columns, most_rows)
    names = {number: row.name for number, row in enumerate(rows)} if _has_units(ledger) else {}
    image = chart("ledger", [row.cells for row in rows], names, ticks_of_time(columns, ledger.zone))
    zone = "UTC" if ledger.zone is UTC else str(ledger.zone)
    used = {cell for row in rows for cell in row.cells}
    legend = ", ".join(text for value, text in _LEGEND.items() if value in used)
    return f"{image}\n\n{legend.capitalize()}. Times in {zone}."


class _Row(NamedTuple):
    """Units that look alike, or all others.

    Attributes:
        name: whose row it is.
        cells: the cells that they have in common; of others the worst of each.
    """

    name: str
    cells: Sequence[int]


def _rows(units: Sequence[UnitLedger], columns: Sequence[Interval], most: int) -> list[_Row]:
    """Return the rows: first those that lack most, at last all others together if there are too many."""
    by_cells: dict[tuple[int, ...], list[UnitLedger]] = defaultdict(list)
    for unit in units:
        by_cells[tuple(_cells(unit, columns))].append(unit)
    # The sort is stable: units that lack the same stay in their order.
    groups = sorted(by_cells.items(), key=lambda group: -sum(cell != FULL for cell in group[0]))
    rows = [_Row(_name_of(of_units), cells) for cells, of_units in groups]
    if len(rows) <= most:
        return rows
    others = groups[most - 1 :]
    worst = [max(cells, key=_SEVERITY.index) for cells in zip(*(cells for cells, _ in others), strict=True)]
    count = sum(len(of_units) for _, of_units in others)
    return [*rows[: most - 1], _Row(f"{count:,} others", worst)]


def _name_of(units: Sequence[UnitLedger]) -> str:
    """Return the name of one unit, or of the first one and how many others look like it."""
    first = ", ".join(str(value) for value in unit_of(units[0].unit).values()) or "all"
    more = len(units) - 1
    if not more:
        return first
    return f"{first} and {more:,} more" if len(first) <= _NAMED else pluralize(len(units), "unit")


def _has_units(ledger: Ledger) -> bool:
    return [unit.unit for unit in ledger.units] != [NO_UNIT]


def _cells(unit: UnitLedger, columns: Sequence[Interval]) -> Iterator[int]:
    failed = union((gap.start, gap.end) for gap in unit.gaps if gap.why.startswith("failed"))
    gaps = [(gap.start, gap.end) for gap in unit.gaps]
    for column in columns:
        is_loaded, lacks = _touches(unit.covered, column), _touches(gaps, column)
        if _touches(failed, column):
            yield FAILED
        elif is_loaded:
            yield PART if lacks else FULL
        else:
            yield NONE


def _touches(stretches: Sequence[Interval], column: Interval) -> bool:
    """Return whether one of some stretches, ascending and without overlaps, intersects a column."""
    index = bisect_left(stretches, column[1], key=lambda stretch: stretch[0])
    return index > 0 and stretches[index - 1][1] > column[0]


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


def _to_read_again(unit: UnitLedger) -> Sequence[Gap]:
    """Return the loaded stretches whose last read failed, or that are out of date."""
    return (*unit.failed_rereads, *unit.outdated)


def _gap_table(ledger: Ledger, gaps_of: Callable[[UnitLedger], Sequence[Gap]]) -> MetadataValue:
    all_gaps = ((unit, gap) for unit in ledger.units for gap in gaps_of(unit))
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
