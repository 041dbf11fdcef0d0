"""The names of a table aside are claimed once for all dataflows of a store, before a chunk is read (docs/reference/replay.md, Isolated).

A claim is put if absent, so of two replays that begin at the same moment one gets the name. It is put after the replay's object and goes before it:
each claim has a replay that can be dropped, and a replay without its claims has no table.
"""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from resources.replay.isolated.refusals import stopped
from resources.replay.isolated.standing import Aside, is_marked, names_of, put_aside, stored_aside, withdraw
from resources.watermarks.entry import StoredRecord, read_record
from resources.watermarks.log import WatermarkLog

_ALL, _CLAIMS = "~replays", "claims"
"""The folder that no dataflow has, and the one in it."""


class Claim(StoredRecord):
    """Which replay has the name of a table.

    Attributes:
        id: of the replay.
        dataflow: its name.
        table: that it was asked for; the name may be that of its bad records.
    """

    id: str
    dataflow: str
    table: str


def begin(log: WatermarkLog, aside: Aside) -> Aside:
    """Put a replay, unless one into the same table is there, and claim its names; return the one that is.

    Raises:
        ConfigurationError: another replay has one of the names; nothing stays of this one.
        NeedsDecision: it is being dropped.
    """
    stored = put_aside(log, aside)
    own = Claim(id=stored.id, dataflow=stored.dataflow, table=stored.table)
    for name in names_of(stored.table):
        holder = _claim(log, name, own)
        if holder != own:
            release(log, stored)
            withdraw(log, stored)
            raise _taken(stored.dataflow, name, holder)
    # Looked at after the claim: a drop marks the replay before it gives the names back.
    if is_marked(log, stored, "dropping") or stored_aside(log, stored) != stored:
        release(log, stored)
        raise stopped(stored)
    return stored


def check_unclaimed(log: WatermarkLog, dataflow: Dataflow, table: str) -> None:
    """Raise ConfigurationError if a replay into another table, or of another dataflow, has one of the names."""
    for name in names_of(table):
        holder = _holder(log, name)
        if holder is not None and (holder.dataflow, holder.table) != (dataflow.name, table):
            raise _taken(dataflow.name, name, holder)


def has_names(log: WatermarkLog, aside: Aside) -> bool:
    """Return whether a replay has claimed its names, and has not given them back."""
    holders = [_holder(log, name) for name in names_of(aside.table)]
    return all(holder is not None and holder.id == aside.id for holder in holders)


def release(log: WatermarkLog, aside: Aside) -> None:
    """Give the names back that a replay has."""
    for name in names_of(aside.table):
        holder = _holder(log, name)
        if holder is not None and holder.id == aside.id:
            log.delete(_ALL, _CLAIMS, [_object(name)])


def _claim(log: WatermarkLog, name: str, own: Claim) -> Claim:
    """Return who has a name, which is asked for."""
    while True:
        log.put_object(_ALL, _CLAIMS, _object(name), own.to_bytes())
        if (holder := _holder(log, name)) is not None:
            return holder


def _holder(log: WatermarkLog, name: str) -> Claim | None:
    data = log.get_object(_ALL, _CLAIMS, _object(name))
    return None if data is None else read_record(Claim, data, f"claim of table {name}")


def _taken(dataflow: str, name: str, holder: Claim) -> ConfigurationError:
    return ConfigurationError(
        f"dataflow {dataflow}: --into: expected a table that no other replay has, found {name}, which the replay of {holder.dataflow} into {holder.table} has."
        " Use another name, or promote or drop that replay",
    )


def _object(name: str) -> str:
    return f"{name.replace('/', '.')}.json"
