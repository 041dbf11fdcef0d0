"""The kind of a dataflow that reads the log of a table, bound to its source."""

from __future__ import annotations

from pathlib import Path

from partitions.dataflow import Dataflow
from partitions.offset.slices import OffsetSlice
from resources.connections.places import Place
from resources.kinds.contract.kind import Kind
from resources.kinds.offset.bad_parts import OffsetBadParts
from resources.kinds.offset.decisions import OffsetRules
from resources.kinds.offset.planning import OffsetPlanning
from resources.kinds.offset.reading import OffsetReading
from resources.kinds.offset.source_log import SourceLog
from resources.kinds.offset.stored_slices import StoredOffsetSlices
from resources.kinds.offset.writing import OffsetWriting
from resources.kinds.registered import unreadable_source
from resources.platform.stores import Stores
from resources.sources.table import TableRows
from resources.staging import Staging


def open_offset(stores: Stores, dataflow: Dataflow, staging: Staging | None = None) -> Kind[OffsetSlice]:
    """Return the kind over a table of the lake.

    Raises:
        ConfigurationError: the source is none.
    """
    log = source_log(stores, dataflow, staging)
    return Kind(
        OffsetPlanning(dataflow, log),
        StoredOffsetSlices(),
        OffsetReading(dataflow, log),
        OffsetWriting(dataflow),
        OffsetBadParts(log),
    )


def offset_rules(stores: Stores, dataflow: Dataflow) -> OffsetRules:
    """Return the rules for decisions."""

    def open_place(address: str) -> Place:
        return Place.parse(address, stores.folder or Path.cwd(), stores.lake.connection)

    return OffsetRules(dataflow, source_log(stores, dataflow, None), open_place)


def source_log(stores: Stores, dataflow: Dataflow, staging: Staging | None = None) -> SourceLog:
    """Return the log of the table that a dataflow reads.

    Raises:
        ConfigurationError: it reads something else.
    """
    source = stores.source(dataflow, staging)
    if not isinstance(source, TableRows):
        raise unreadable_source(dataflow)
    return SourceLog(dataflow, source)
