"""Whether another zone of the windows puts other rows into them.

See docs/reference/windows.md, Changing a definition.
"""

from __future__ import annotations

from partitions.dataflow import Dataflow
from resources.loop.guards.definition import changed_parts
from resources.sources.schema import kinds, pinned_struct
from resources.watermarks.entry import Entry
from resources.watermarks.log import WatermarkLog


def moves_local_times(dataflow: Dataflow, entry: Entry, log: WatermarkLog) -> bool:
    """Return whether the zone has changed since an entry, and the times of rows have no zone.

    Args:
        dataflow: the definition.
        entry: the newest entry.
        log: the log that has it.
    """
    column, changed = dataflow.source.row_columns.window, changed_parts(dataflow, entry, log) or ()
    if column is None or entry.pinned is None or all(change.name != "timezone" for change in changed):
        return False
    types = kinds(pinned_struct(log.get_schema(entry.pinned)))
    data_type = {name.casefold(): kind for name, kind in types.items()}.get(column.casefold())
    return data_type is not None and data_type != "instant"
