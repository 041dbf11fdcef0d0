"""The window kind of a dataflow, bound to its source and its units."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from partitions.dataflow import Dataflow
from partitions.window.slices import WindowSlice
from resources.kinds.contract.kind import Kind
from resources.kinds.window.awaited import awaited_versions, find_awaited, newest_entries
from resources.kinds.window.bad_parts import WindowBadParts
from resources.kinds.window.columns import WindowColumns
from resources.kinds.window.decisions import WindowRules
from resources.kinds.window.planning import WindowPlanning
from resources.kinds.window.reading import WindowReading
from resources.kinds.window.sources import FolderWindows, NumberedWindows, QueriedWindows, WindowSource
from resources.kinds.window.stored_slices import StoredWindowSlices
from resources.kinds.window.unit_lookup import units_of
from resources.kinds.window.writing import WindowWriting
from resources.platform.stores import Stores
from resources.sources.files.source import FileSource
from resources.sources.registry import Source
from resources.sources.source import CanNumber
from resources.staging import Staging


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
        WindowPlanning(
            dataflow,
            source,
            columns,
            units,
            history,
            partial(awaited_versions, stores, dataflow),
            partial(newest_entries, stores),
            partial(find_awaited, stores, dataflow),
        ),
        StoredWindowSlices(dataflow),
        reading,
        WindowWriting(dataflow, columns),
        WindowBadParts(dataflow, source, reading),
    )


def window_rules(stores: Stores, dataflow: Dataflow) -> WindowRules:
    """Return the rules for decisions."""
    return WindowRules(dataflow, lambda: stores.log.history(dataflow.name))


def _window_source(dataflow: Dataflow, source: Source) -> WindowSource:
    if isinstance(source, FileSource):
        return FolderWindows(dataflow, source)
    return (
        NumberedWindows(dataflow, source, source)
        if isinstance(source, CanNumber)
        else QueriedWindows(dataflow, source)
    )
