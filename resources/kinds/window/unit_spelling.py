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
from partitions.window.listed_units import may_have_equal_units, state_identities, unit_value
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
    """Return listed units, each value once, as the newest entry spells them.

    If the type of a column is unknown, its values stay as they are: ``1`` is not ``"1"`` then. Starts no
    Spark.

    Args:
        dataflow: a dataflow with a window watermark.
        units: the identities as they are listed.
        log: the watermark log.
        source: opens the dataflow's source.
    """
    if units == (NO_UNIT,):
        return units
    entry = log.newest(dataflow.name)
    known_identities: set[str] = set()
    if entry is not None and entry.kind == "window":
        state = state_of(WindowState, dataflow, entry)
        known_identities = {*state.units, *state.failed}
    zone = dataflow.window.zone
    if not may_have_equal_units(units, known_identities, zone):
        return units
    columns = dict(dataflow.source.row_columns.units)
    data_types = _data_types(dataflow, entry, log, source) if columns else {}
    of_names = {name: data_types[column] for name, column in columns.items() if column in data_types}
    value = partial(unit_value, kinds=of_names, texts=_texts(dataflow), zone=zone)
    return state_identities(units, known_identities, value)


def _texts(dataflow: Dataflow) -> Mapping[str, Callable[[Any], str]]:
    """Return, by a value's name, the function that writes it into a folder, a request or a query.

    A query tells text from numbers.
    """
    source = dataflow.source
    match source:
        case FilesSource():
            return {part.unit: str for part in source.folder_template.placeholders if part.unit}
        case ApiSource():
            return {part.unit: as_text for part in source.request_placeholders if part.unit}
    return {part.unit: canonical for part in source.request_placeholders if part.unit}


def _data_types(
    dataflow: Dataflow, entry: Entry | None, log: WatermarkLog, source: Callable[[], Source]
) -> Mapping[str, ValueType]:
    """Return the data types of the columns: pinned, declared, or from the source without Spark."""
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
