"""Claims of the names of isolated tables, one per name for all dataflows of a store.

A claim is stored only if the name is free, so of two replays that begin at once one gets it. It is stored
after the replay's object and removed before it: each claim belongs to a replay that can be dropped, and a
replay without its claims has no table.
"""

from __future__ import annotations

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from resources.replay.isolated.refusals import dropped_while_read
from resources.replay.isolated.standing import (
    REJECTED_SUFFIX,
    IsolatedReplay,
    is_marked,
    names_of,
    put_replay,
    stored_replay,
    withdraw,
)
from resources.watermarks.entry import StoredRecord, read_record
from resources.watermarks.log import WatermarkLog

_FOLDER, _CLAIMS = "~replays", "claims"
"""The folder that no dataflow has, and the one in it."""


class Claim(StoredRecord):
    """The claim of a replay to the name of a table.

    Attributes:
        id: the replay's id.
        dataflow: its dataflow.
        table: the replay's table; the claimed name may be that of its bad records.
    """

    id: str
    dataflow: str
    table: str


def begin_isolated(log: WatermarkLog, isolated: IsolatedReplay) -> IsolatedReplay:
    """Store a replay and claim its names; return the stored one, if the same table has one already.

    Raises:
        ConfigurationError: another replay has one of the names; nothing of this one stays.
        NeedsDecision: the replay is being dropped, or was dropped or promoted meanwhile.
    """
    stored = put_replay(log, isolated)
    own = Claim(id=stored.id, dataflow=stored.dataflow, table=stored.table)
    for name in names_of(stored.table):
        holder = _claim(log, name, own)
        if holder != own:
            release_names(log, stored)
            withdraw(log, stored)
            raise _taken_error(stored.dataflow, name, holder)
    # Looked at after the claim: a drop marks the replay before it gives the names back.
    if is_marked(log, stored, "dropping") or stored_replay(log, stored) != stored:
        release_names(log, stored)
        raise dropped_while_read(stored)
    return stored


def check_unclaimed(log: WatermarkLog, dataflow: Dataflow, table: str) -> None:
    """Raise ConfigurationError if another replay has claimed one of a table's names."""
    for name in names_of(table):
        holder = _holder(log, name)
        if holder is not None and (holder.dataflow, holder.table) != (dataflow.name, table):
            raise _taken_error(dataflow.name, name, holder)


def has_names(log: WatermarkLog, isolated: IsolatedReplay) -> bool:
    """Return whether a replay holds the claims to its names."""
    # A replay of an older version has claimed no name for rejected rows.
    names = [name for name in names_of(isolated.table) if not name.endswith(REJECTED_SUFFIX)]
    holders = [_holder(log, name) for name in names]
    return all(holder is not None and holder.id == isolated.id for holder in holders)


def release_names(log: WatermarkLog, isolated: IsolatedReplay) -> None:
    """Release the names that a replay has claimed."""
    for name in names_of(isolated.table):
        holder = _holder(log, name)
        if holder is not None and holder.id == isolated.id:
            log.delete(_FOLDER, _CLAIMS, [_object(name)])


def _claim(log: WatermarkLog, name: str, own: Claim) -> Claim:
    """Claim a name, and return the claim that holds it."""
    while True:
        log.put_object(_FOLDER, _CLAIMS, _object(name), own.to_bytes())
        if (holder := _holder(log, name)) is not None:
            return holder


def _holder(log: WatermarkLog, name: str) -> Claim | None:
    data = log.get_object(_FOLDER, _CLAIMS, _object(name))
    return None if data is None else read_record(Claim, data, f"claim of table {name}")


def _taken_error(dataflow: str, name: str, holder: Claim) -> ConfigurationError:
    return ConfigurationError(
        f"dataflow {dataflow}: --into: expected a table that no other replay has, found {name}, a table of the replay of {holder.dataflow} into {holder.table}."
        " Use another name, or promote or drop that replay",
    )


def _object(name: str) -> str:
    return f"{name.replace('/', '.')}.json"
