"""The ledger of windows for people: how far each unit is complete, and what it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from partitions.dataflow import Dataflow
from partitions.plan import pluralize
from platform_assets.kinds.profile import LedgerPage

_UNITS, _RANGES = 50, 3
"""The most units of a page, and the most ranges of a unit."""


def unit_ledger_page(dataflow: Dataflow, document: Mapping[str, Any]) -> LedgerPage:
    """Return a ledger's public JSON form as a page for people, with a row for each unit."""
    units, complete = document["units"], document["complete_up_to"]
    gaps = sum(len(unit["gaps"]) for unit in units)
    up_to = f"complete up to {complete}" if complete else "nothing is complete"
    heading = f"{dataflow.name}: {up_to}, {pluralize(len(units), 'unit')}, {pluralize(gaps, 'gap')}"
    rows = [
        (
            _unit_in_words(unit),
            unit["complete_up_to"] or "-",
            _ranges_in_words(unit["gaps"]),
            _ranges_in_words(unit["overlaps"]),
        )
        for unit in units[:_UNITS]
    ]
    hidden = len(units) - _UNITS
    more = f"  … and {hidden:,} more units (--json shows all)" if hidden > 0 else ""
    return LedgerPage(heading, columns=("unit", "complete up to", "gaps", "overlaps"), rows=rows, hidden=more)


def _unit_in_words(unit: Mapping[str, Any]) -> str:
    text = ", ".join(f"{name} {value}" for name, value in unit["unit"].items()) or "-"
    return f"{text} (no longer listed)" if unit["gone"] else text


def _ranges_in_words(ranges: Sequence[Mapping[str, Any]]) -> str:
    texts = [
        f"[{range_['start']}, {range_['end']}){': ' + range_['why'] if 'why' in range_ else ''}"
        for range_ in ranges[:_RANGES]
    ]
    more = [f"and {len(ranges) - _RANGES:,} more"] if len(ranges) > _RANGES else []
    return "\n".join([*texts, *more]) or "-"
