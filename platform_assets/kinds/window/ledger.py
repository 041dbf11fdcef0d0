"""The ledger of windows on the command line: how far each unit is complete, and what it lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from partitions.dataflow import Dataflow
from partitions.plan import counted

if TYPE_CHECKING:
    from platform_assets.cli.context import Context

_UNITS, _RANGES = 50, 3
"""How many are shown."""


def print_unit_ledger(context: Context, dataflow: Dataflow, document: Mapping[str, Any]) -> None:
    """Print a ledger in its public JSON form, a line for each unit."""
    from rich.table import Table

    units, complete = document["units"], document["complete_up_to"]
    gaps = sum(len(unit["gaps"]) for unit in units)
    up_to = f"complete up to {complete}" if complete else "nothing is complete"
    click.secho(f"{dataflow.name}: {up_to}, {counted(len(units), 'unit')}, {counted(gaps, 'gap')}", bold=True)
    table = Table("unit", "complete up to", "gaps", "overlaps")
    for unit in units[:_UNITS]:
        gaps_, overlaps = _ranges_in_words(unit["gaps"]), _ranges_in_words(unit["overlaps"])
        table.add_row(_unit_in_words(unit), unit["complete_up_to"] or "-", gaps_, overlaps)
    context.console.print(table)
    if len(units) > _UNITS:
        click.echo(f"  … and {len(units) - _UNITS:,} more units (--json shows all)")


def _unit_in_words(unit: Mapping[str, Any]) -> str:
    named = ", ".join(f"{name} {value}" for name, value in unit["unit"].items()) or "-"
    return f"{named} (gone)" if unit["gone"] else named


def _ranges_in_words(ranges: Sequence[Mapping[str, Any]]) -> str:
    shown = [
        f"[{range_['start']}, {range_['end']}){': ' + range_['why'] if 'why' in range_ else ''}"
        for range_ in ranges[:_RANGES]
    ]
    more = [f"and {len(ranges) - _RANGES:,} more"] if len(ranges) > _RANGES else []
    return "\n".join([*shown, *more]) or "-"
