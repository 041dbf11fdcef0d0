"""What a replay aside leaves: its table goes first, then its log, its names, and what tells of it (docs/reference/replay.md, Isolated)."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from resources.listing.removal import is_empty
from resources.outcome import Observer, Step
from resources.platform.opener import Opener
from resources.replay.isolated.claim import has_names, release
from resources.replay.isolated.standing import MARKS, Aside, names_of, withdraw
from resources.tables.registry import find_format, find_table, open_table


def has_table(platform: Opener, aside: Aside) -> bool:
    """Return whether what lies at a replay's name is its own: not if it never had the name or never began to write, or if others have made the table."""
    log = platform.log
    begun = log.newest(aside.log) or log.open_intent(aside.log, None)
    if begun is None or not has_names(log, aside):
        return False
    table = find_table(platform.lake.child(aside.table))
    # A first write that died may have left a table without a commit of its own.
    return not table.exists() or table.tip(begun.app_id).highest_tag > 0 or not table.contents.has_data()


def remove(platform: Opener, dataflow: Dataflow, aside: Aside, observer: Observer) -> None:
    """Remove a replay's table, its log, and what tells of it. Whatever dies between, the same again removes the rest.

    A table that is not its own stays.

    Raises:
        TargetError: some of the table is still there.
    """
    log = platform.log
    if has_table(platform, aside):
        for place in map(platform.lake.child, names_of(aside.table)):
            # A first write that died has left files, and no table that would tell its format.
            found = find_format(place)
            if found or not is_empty(place):
                open_table(found or dataflow.target.format, place).remove(platform.engine(dataflow).session)
    observer(Step.TABLE_REMOVED, f"table {aside.table} removed")
    log.delete_all(aside.log, keep=MARKS)
    release(log, aside)
    withdraw(log, aside)
    observer(Step.FORGOTTEN, f"the log of the replay into {aside.table} removed")
