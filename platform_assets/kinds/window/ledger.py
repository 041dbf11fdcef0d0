"""The ledger of windows for people: how far each unit is complete, and what it lacks."""

from __future__ import annotations

from collections import Counter
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
    rereads = sum(len(unit["failed_rereads"]) for unit in units)
    heading = f"{dataflow.name}: {up_to}, {pluralize(len(units), 'unit')}, {pluralize(gaps, 'gap')}"
    if rereads:
        heading += f", {pluralize(rereads, 'work unit')} loaded, but not read again"
    if outdated := sum(len(unit["outdated"]) for unit in units):
        heading += f", {pluralize(outdated, 'stretch', 'stretches')} loaded, but out of date"
    has_versions = any(unit["read_at"] for unit in units)
    rows = [
        (
            _unit_in_words(unit),
            unit["complete_up_to"] or "-",
            *([_versions_in_words(unit["read_at"])] if has_versions else []),
            _ranges_in_words([*unit["gaps"], *unit["failed_rereads"], *unit["outdated"]]),
            _ranges_in_words(unit["overlaps"]),
        )
        for unit in units[:_UNITS]
    ]
    hidden = len(units) - _UNITS
    more = f"  … and {hidden:,} more units (--json shows all)" if hidden > 0 else ""
    return LedgerPage(
        heading,
        columns=(
            "unit",
            "complete up to",
            *(["read at"] if has_versions else []),
            _name_of_lacks(rereads, outdated),
            "overlaps",
        ),
        rows=rows,
        hidden=more,
    )


def _name_of_lacks(rereads: int, outdated: int) -> str:
    """Return the name of the column of what is missing, failed or out of date."""
    if outdated:
        return "gaps and what is out of date"
    return "gaps and failures" if rereads else "gaps"


def _unit_in_words(unit: Mapping[str, Any]) -> str:
    text = ", ".join(f"{name} {value}" for name, value in unit["unit"].items()) or "-"
    return f"{text} (no longer listed)" if unit["gone"] else text


def _versions_in_words(stretches: Sequence[Mapping[str, Any]]) -> str:
    """Return the version that most stretches were read at, then the other ones with their versions."""
    if not stretches:
        return "-"
    ((usual, _),) = Counter(stretch["version"] for stretch in stretches).most_common(1)
    others = [{**stretch, "why": stretch["version"]} for stretch in stretches if stretch["version"] != usual]
    return "\n".join([usual, *([_ranges_in_words(others)] if others else [])])


def _ranges_in_words(ranges: Sequence[Mapping[str, Any]]) -> str:
    texts = [
        f"[{range_['start']}, {range_['end']}){': ' + range_['why'] if 'why' in range_ else ''}"
        for range_ in ranges[:_RANGES]
    ]
    more = [f"and {len(ranges) - _RANGES:,} more"] if len(ranges) > _RANGES else []
    return "\n".join([*texts, *more]) or "-"
