"""The window kind of a dataflow, bound to its source and its units."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from partitions.dataflow import Dataflow
from partitions.window.slices import WindowSlice
from resources.kinds.contract.kind import Kind
from resources.kinds.window.awaited import awaited_versions, find_awaited, find_changes, newest_entries
from resources.kinds.window.bad_parts import WindowBadParts
from resources.kinds.window.columns import WindowColumns
from resources.kinds.window.decisions import RefreshingWindowRules, WindowRules
from resources.kinds.window.planning import WindowPlanning
from resources.kinds.window.reading import WindowReading
from resources.kinds.window.source_changes import find_source_changes
from resources.kinds.window.sources import FolderWindows, NumberedWindows, QueriedWindows, WindowSource
from resources.kinds.window.stored_slices import StoredWindowSlices
from resources.kinds.window.unit_lookup import units_of
from resources.kinds.window.writing import WindowWriting
from resources.kinds.window.zone_change import moves_local_times
from resources.platform.stores import Stores
from resources.sources.files.source import FileSource
from resources.sources.registry import Source
from resources.sources.source import CanNumber
from resources.staging import Staging
from resources.watermarks.entry import Entry


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
            partial(find_changes, stores, dataflow),
        ),
        StoredWindowSlices(dataflow),
        reading,
        WindowWriting(dataflow, columns),
        WindowBadParts(dataflow, source, reading),
    )


def window_rules(stores: Stores, dataflow: Dataflow) -> WindowRules:
    """Return the rules for decisions."""
    moves_local_times = partial(_moves_local_times, stores, dataflow)
    history = partial(stores.log.history, dataflow.name)
    if dataflow.window.refreshes:
        look = partial(find_source_changes, stores, dataflow)
        return RefreshingWindowRules(dataflow, history, moves_local_times, look)
    return WindowRules(dataflow, history, moves_local_times)


def _moves_local_times(stores: Stores, dataflow: Dataflow, last: Entry) -> bool:
    return moves_local_times(dataflow, last, stores.log)


def _window_source(dataflow: Dataflow, source: Source) -> WindowSource:
    if isinstance(source, FileSource):
        return FolderWindows(dataflow, source)
    return (
        NumberedWindows(dataflow, source, source)
        if isinstance(source, CanNumber)
        else QueriedWindows(dataflow, source)
    )
