"""What a replay aside leaves: its table goes first, then its log, then what tells of it (docs/replay.md, Aside)."""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from resources.aside.standing import Aside, forget
from resources.loop.outcome import Observer, Step
from resources.platform import Platform
from resources.tables import find_table
from resources.tables.table import CanStandAside


def remove(platform: Platform, dataflow: Dataflow, aside: Aside, observer: Observer) -> None:
    """Remove a replay's table, its log, and what tells of it. Whatever dies between, the same again removes the rest.

    Raises:
        TargetError: some of the table is still there.
    """
    standing = aside.of(dataflow)
    for name in filter(None, (aside.table, standing.bad_records_table)):
        table = find_table(platform.lake.child(name))
        if not isinstance(table, CanStandAside):
            raise ConfigurationError(
                f"dataflow {dataflow.name}: expected table {name} to be the one that the replay has made, found one of another format. Move it away"
            )
        table.remove(platform.engine(standing).session)
    observer(Step.TABLE_REMOVED, f"table {aside.table} removed")
    forget(platform.log, aside)
    observer(Step.FORGOTTEN, f"the log of the replay into {aside.table} removed")
