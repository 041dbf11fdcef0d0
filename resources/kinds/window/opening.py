"""The window kind of a dataflow, bound to its source and its units."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from partitions.dataflow import Dataflow
from partitions.readings import dataflow_of_units
from partitions.window.definition import WindowWatermark
from partitions.window.secondary_input import SecondaryInput
from partitions.window.slices import WindowSlice
from partitions.window.units import list_units
from resources.connections.places import Place
from resources.kinds.contract.kind import Kind
from resources.kinds.window.bad_parts import WindowBadParts
from resources.kinds.window.columns import WindowColumns
from resources.kinds.window.decisions import WindowRules
from resources.kinds.window.planning import WindowPlanning
from resources.kinds.window.reading import WindowReading
from resources.kinds.window.sources import FolderWindows, NumberedWindows, QueriedWindows, WindowSource
from resources.kinds.window.stored_slices import StoredWindowSlices
from resources.kinds.window.stream_completeness import Waits, find_waits
from resources.kinds.window.unit_spelling import as_known
from resources.kinds.window.units import rows_in_time
from resources.kinds.window.writing import WindowWriting
from resources.platform.stores import Stores
from resources.sources.files.source import FileSource
from resources.sources.registry import Source
from resources.sources.source import CanNumber, ListsRows
from resources.staging import Staging
from resources.tables.registry import find_table


def open_windows(
    stores: Stores,
    dataflow: Dataflow,
    staging: Staging | None = None,
    *,
    units: Callable[[], tuple[str, ...]] | None = None,
) -> Kind[WindowSlice]:
    """Return the kind; ``units`` looks up its units, for callers that share them."""
    source, columns = _window_source(dataflow, stores.source(dataflow, staging)), WindowColumns.of(dataflow)
    units, history = units or partial(units_of, stores, dataflow), partial(stores.log.history, dataflow.name)
    reading = WindowReading(dataflow, source, columns)
    return Kind(
        WindowPlanning(dataflow, source, columns, units, history, partial(_waits, stores, dataflow)),
        StoredWindowSlices(dataflow),
        reading,
        WindowWriting(dataflow, columns),
        WindowBadParts(dataflow, source, reading),
    )


def window_rules(stores: Stores, dataflow: Dataflow) -> WindowRules:
    """Return the rules for decisions."""
    return WindowRules(dataflow, lambda: stores.log.history(dataflow.name))


def windows_of(stores: Stores, dataflow: Dataflow) -> WindowWatermark:
    """Return the window watermark; if its windows wait for a stream, up to where the stream is complete."""
    waits = _waits(stores, dataflow)
    return dataflow.window.up_to(waits.reached) if waits else dataflow.window


def units_of(stores: Stores, dataflow: Dataflow) -> tuple[str, ...]:
    """Return the identities of all units in listed order, as the state spells them. Starts no Spark.

    Raises:
        PlanError: if a secondary input cannot be read.
    """
    watermark = dataflow.window
    units = list_units(watermark.units, watermark.secondary_input, partial(_unit_rows, stores, dataflow))
    return as_known(dataflow, units, stores.log, partial(stores.source, dataflow))


def _waits(stores: Stores, dataflow: Dataflow) -> Waits | None:
    return find_waits(dataflow, stores.lineage, stores.log, stores.table)


def _window_source(dataflow: Dataflow, source: Source) -> WindowSource:
    if isinstance(source, FileSource):
        return FolderWindows(dataflow, source)
    return (
        NumberedWindows(dataflow, source, source)
        if isinstance(source, CanNumber)
        else QueriedWindows(dataflow, source)
    )


def _unit_rows(stores: Stores, dataflow: Dataflow, secondary: SecondaryInput) -> Iterable[Mapping[str, Any]]:
    reading = dataflow_of_units(dataflow, secondary)
    if reading is not None:
        source, number = stores.source(reading), dataflow.window.secondary_input.index(secondary)
        if not isinstance(source, ListsRows):
            raise AssertionError(source)
        what = f"dataflow {dataflow.name}, secondary_input {number + 1} ({reading.source.label})"
        return rows_in_time(what, partial(source.listed, secondary.columns), secondary.columns)
    if secondary.path:
        place = Place.parse(secondary.path, stores.folder)
    else:
        place = stores.lake.child(secondary.table or stores.lineage.table_of(secondary.asset or ""))
    return find_table(place).contents.distinct_rows(secondary.columns)
