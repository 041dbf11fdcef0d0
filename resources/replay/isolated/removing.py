"""Removal of an isolated replay: its table first, then its log, its names and its object.

See docs/reference/replay.md.
"""

from __future__ import annotations

from partitions.dataflow import Dataflow
from resources.listing.removal import is_empty
from resources.outcome import Observer, Step
from resources.platform.opener import Opener
from resources.replay.isolated.claim import has_names, release_names
from resources.replay.isolated.standing import MARKS, IsolatedReplay, names_of, withdraw
from resources.tables.registry import find_format, find_table, open_table


def has_table(platform: Opener, isolated: IsolatedReplay) -> bool:
    """Return whether the table at a replay's name is the replay's own.

    It is not if the replay never had the name or never began to write, or if others created the table.
    """
    log = platform.log
    first_record = log.newest(isolated.log) or log.open_intent(isolated.log, None)
    if first_record is None or not has_names(log, isolated):
        return False
    table = find_table(platform.lake.child(isolated.table))
    # A first write that died may have left a table without a commit of its own.
    return (
        not table.exists() or table.tip(first_record.app_id).highest_tag > 0 or not table.contents.has_data()
    )


def remove_replay(platform: Opener, dataflow: Dataflow, isolated: IsolatedReplay, observer: Observer) -> None:
    """Remove a replay's table, its log and its object. After a crash, a second call removes the rest.

    A table that is not the replay's own stays.

    Raises:
        TargetError: a part of the table could not be removed.
    """
    log = platform.log
    if has_table(platform, isolated):
        for place in map(platform.lake.child, names_of(isolated.table)):
            # A first write that died has left files, and no table that would tell its format.
            table_format = find_format(place)
            if table_format or not is_empty(place):
                open_table(table_format or dataflow.target.format, place).remove(
                    platform.engine(dataflow).session
                )
    observer(Step.TABLE_REMOVED, f"table {isolated.table} removed")
    log.delete_all(isolated.log, keep=MARKS)
    release_names(log, isolated)
    withdraw(log, isolated)
    observer(Step.FORGOTTEN, f"the log of the replay into {isolated.table} removed")
