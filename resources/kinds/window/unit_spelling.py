"""Units as the state spells them, where a list may spell them otherwise.

See docs/reference/windows.md, Units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from partitions.api.values import as_text
from partitions.dataflow import Dataflow
from partitions.ddl import value_types
from partitions.errors import StrandlineError
from partitions.sentinels import canonical
from partitions.sources import ApiSource, FilesSource
from partitions.unit_values import ValueType
from partitions.window.spelling import may_have_equal_units, state_identities, unit_value
from partitions.window.state import WindowState
from partitions.window.units import NO_UNIT
from resources.kinds.state_of_entry import state_of
from resources.loop.loop import clock
from resources.sources.registry import Source
from resources.sources.schema import kinds, pinned_struct
from resources.sources.source import ReadsAbove
from resources.sources.table import TableRows
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog


def as_known(
    dataflow: Dataflow,
    units: tuple[str, ...],
    log: WatermarkLog,
    source: Callable[[], Source],
) -> tuple[str, ...]:
    """Return listed units, each value of their columns once, under the identities that the newest entry knows.

    Without a column whose type is known values stay what they are: ``1`` is not ``"1"`` then. Starts no Spark.

    Args:
        dataflow: with a window watermark.
        units: identities, as they are listed.
        log: the watermark log.
        source: opens what the dataflow reads.
    """
    if units == (NO_UNIT,):
        return units
    entry = log.newest(dataflow.name)
    known: set[str] = set()
    if entry is not None and entry.kind == "window":
        state = state_of(WindowState, dataflow, entry)
        known = {*state.units, *state.failed}
    zone = dataflow.window.zone
    if not may_have_equal_units(units, known, zone):
        return units
    columns = dict(dataflow.source.row_columns.units)
    held = _held(dataflow, entry, log, source) if columns else {}
    of_names = {name: held[column] for name, column in columns.items() if column in held}
    value = partial(unit_value, kinds=of_names, texts=_texts(dataflow), zone=zone)
    return state_identities(units, known, value)


def _texts(dataflow: Dataflow) -> Mapping[str, Callable[[Any], str]]:
    """Return how values are written in a folder, request or query, by name; in a query text is no number."""
    source = dataflow.source
    match source:
        case FilesSource():
            return {each.unit: str for each in source.folder_template.placeholders if each.unit}
        case ApiSource():
            return {each.unit: as_text for each in source.request_placeholders if each.unit}
    return {each.unit: canonical for each in source.request_placeholders if each.unit}


def _held(
    dataflow: Dataflow, entry: Entry | None, log: WatermarkLog, source: Callable[[], Source]
) -> Mapping[str, ValueType]:
    """What the columns hold: as they were pinned, are declared, or as the source tells it without Spark; nothing of what nothing tells."""
    if entry is not None and entry.pinned:
        return kinds(pinned_struct(log.get_schema(entry.pinned)))
    if dataflow.source.declared_schema is not None:
        return value_types(dataflow.source.declared_schema)
    # Before a first load nothing is lost if the source does not answer: a run asks again, and says so.
    with suppress(StrandlineError):
        opened = source()
        if isinstance(opened, TableRows):
            return opened.types_by_name()
        if isinstance(opened, ReadsAbove):
            return opened.observe(list(dataflow.source.row_columns.units.values()), clock()).kinds
    return {}
