"""What a replay aside leaves: its table goes first, then its log, then what tells of it (docs/replay.md, Aside)."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from resources.aside.standing import Aside, forget
from resources.loop.outcome import Observer, Step
from resources.platform import Platform
from resources.tables import find_format, open_table


def remove(platform: Platform, dataflow: Dataflow, aside: Aside, observer: Observer) -> None:
    """Remove a replay's table, its log, and what tells of it. Whatever dies between, the same again removes the rest.

    Raises:
        TargetError: some of the table is still there.
    """
    standing = aside.of(dataflow)
    for name in filter(None, (aside.table, standing.bad_records_table)):
        place = platform.lake.child(name)
        # A first write that died has left files, and no table that would tell its format.
        table_format = find_format(place) or standing.target.format
        open_table(table_format, place).remove(platform.engine(standing).session)
    observer(Step.TABLE_REMOVED, f"table {aside.table} removed")
    forget(platform.log, aside)
    observer(Step.FORGOTTEN, f"the log of the replay into {aside.table} removed")
