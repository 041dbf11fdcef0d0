"""The column kind of a dataflow, bound to its source."""

from __future__ import annotations

from functools import cache, partial

from partitions.column.definition import ColumnWatermark
from partitions.column.slices import ColumnSlice
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.last_look import SourceSnapshot
from resources.kinds.column.bad_parts import ColumnBadParts
from resources.kinds.column.decisions import ColumnRules
from resources.kinds.column.look import ColumnLook
from resources.kinds.column.planning import ColumnPlanning
from resources.kinds.column.reading import ColumnReading
from resources.kinds.column.stored_slices import StoredColumnSlices
from resources.kinds.column.writing import ColumnWriting
from resources.kinds.contract.kind import Kind
from resources.kinds.registered import unreadable_source
from resources.notes.looks import last_awaited, last_look
from resources.platform.stores import Stores
from resources.sources.files.rows import FileRows
from resources.sources.files.source import FileSource
from resources.sources.source import PinsRows, ReadsAbove
from resources.staging import Staging


def open_column(
    stores: Stores,
    dataflow: Dataflow,
    staging: Staging | None = None,
) -> Kind[ColumnSlice]:
    """Return the kind; raise ConfigurationError for another kind, or a source without order."""
    rows, look = source_and_look(stores, dataflow, staging)
    return Kind(
        ColumnPlanning(dataflow, look),
        StoredColumnSlices(),
        ColumnReading(dataflow, rows, look.above),
        ColumnWriting(dataflow),
        ColumnBadParts(dataflow, rows, look.above),
    )


def column_look(stores: Stores, dataflow: Dataflow) -> ColumnLook:
    """Return the look at the source, for callers that read no rows."""
    return source_and_look(stores, dataflow, None)[1]


def source_and_look(
    stores: Stores, dataflow: Dataflow, staging: Staging | None
) -> tuple[PinsRows, ColumnLook]:
    """Return the source, as its columns are pinned, and the look at it."""
    if not isinstance(dataflow.watermark, ColumnWatermark):
        raise ConfigurationError(
            f"dataflow {dataflow.name}: expected a watermark of type column, found {dataflow.kind}"
        )
    source, log = stores.source(dataflow, staging), stores.log
    if isinstance(source, FileSource):
        rows = _file_rows(stores, dataflow, source)
        return rows, ColumnLook(dataflow, rows)
    if isinstance(source, ReadsAbove):
        return source, ColumnLook(dataflow, source, partial(last_awaited, log, dataflow.name))
    raise unreadable_source(dataflow)


def column_rules(stores: Stores, dataflow: Dataflow) -> ColumnRules:
    """Return the rules for decisions."""
    return ColumnRules(dataflow, stores.table(dataflow), lambda: stores.log.history(dataflow.name))


def _file_rows(stores: Stores, dataflow: Dataflow, source: FileSource) -> FileRows:
    log = stores.log

    def pinned() -> str | None:
        entry = log.newest(dataflow.name)
        return log.get_schema(entry.pinned) if entry and entry.pinned else None

    def last_source_look() -> SourceSnapshot | None:
        return last_look(log, dataflow.name, log.newest(dataflow.name))

    return FileRows(
        dataflow, source, cache(lambda: stores.engine(dataflow).session()), pinned, last_source_look
    )
