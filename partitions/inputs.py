"""Tables of the lake that a dataflow reads: as its source, for units, or as extra inputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from partitions.refusal import Refusal
from partitions.sources import Source
from partitions.window.secondary_input import SecondaryInput

_VIEW = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Input(NamedTuple):
    """A table of the lake that a dataflow reads.

    Attributes:
        key: key of the definition that names it.
        name: ``<layer>/<name>``.
        is_asset: whether the name is an asset's; its table may have another name.
    """

    key: tuple[str | int, ...]
    name: str
    is_asset: bool = False


def tables_read(
    source: Source, units: Sequence[SecondaryInput], views: Mapping[str, str]
) -> tuple[Input, ...]:
    """Return the tables that a dataflow reads.

    Args:
        source: source of its own rows.
        units: secondary inputs of its windows.
        views: extra tables, by the names of their views.
    """
    tables = [
        Input((*key, "table"), part.lake_table)
        for key, part in source.parts.items()
        if part.lake_table is not None
    ]
    for index, entry in enumerate(units):
        key = ("watermark", "secondary_input", index)
        if entry.table:
            tables.append(Input((*key, "table"), entry.table))
        elif entry.asset:
            tables.append(Input((*key, "asset"), entry.asset, is_asset=True))
        elif entry.source is not None and entry.source.lake_table is not None:
            tables.append(Input((*key, "source", "table"), entry.source.lake_table))
    tables += [Input(("inputs", name), table) for name, table in views.items()]
    return tuple(tables)


def view_refusals(views: Iterable[str], *, has_step: bool) -> Iterator[Refusal]:
    """Yield why names cannot be views. Spark's views are case-insensitive.

    Args:
        views: the names of the views.
        has_step: whether ``sql`` or ``transform`` reads them.
    """
    names = list(views)
    if names and not has_step:
        yield Refusal(("inputs",), "nothing that reads them", "sql or transform beside inputs")
    views_by_name = {"input": "the view of the dataflow's own rows"}
    for name in names:
        if not _VIEW.fullmatch(name):
            yield Refusal(("inputs", name), name, "a name of letters, digits and underscores")
        elif (earlier_view := views_by_name.get(name.casefold())) is not None:
            yield Refusal(("inputs", name), name, f"another name than {earlier_view}")
        views_by_name.setdefault(name.casefold(), name)


def awaited_refusals(awaited: Iterable[str], views: Mapping[str, str]) -> Iterator[Refusal]:
    """Yield why windows cannot wait for inputs: names that are none."""
    for name in awaited:
        if name not in views:
            names = ", ".join(views) or "nothing"
            yield Refusal(("watermark", "wait_for", name), name, f"the name of an input, of {names}")


def unit_refusals(source: Source, units: Sequence[SecondaryInput]) -> Iterator[Refusal]:
    """Yield why the units of windows cannot be read.

    Args:
        source: source of the dataflow's own rows.
        units: secondary inputs that units are read from.
    """
    for index, entry in enumerate(units):
        key = ("watermark", "secondary_input", index)
        if entry.query and source.connection_type != "jdbc":
            yield Refusal(
                (*key, "query"),
                f"a source of type {source.type}",
                "a source of type jdbc, whose database the query asks; or source: {type: jdbc, …} for another database; or table, asset or path",
            )
        for refusal in entry.source.unit_refusals() if entry.source else ():
            yield refusal._replace(key=(*key, *refusal.key))
