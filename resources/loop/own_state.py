"""The addresses of the state that a table's commits may name (docs/how-to/moving-and-restoring.md).

Each commit names the state that it belongs to. A state that was copied to another address would write
numbers that the first one knows nothing of, so it stops before its first write, unless somebody said that
it is the same: `state copy`, or a decision that takes the table over.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass

from resources.connections.places import Place
from resources.connections.postgres import Database
from resources.tables.contract.commits import Writer
from resources.watermarks.log import WatermarkLog

ADDRESSES = "addresses"
"""The folder of the addresses that a state counts as its own, beside its entries."""

_MAX_ADDRESSES = 1000


@dataclass(frozen=True)
class OwnState:
    """The state of one dataflow, as commits of its table name it.

    Attributes:
        dataflow: the dataflow's name.
        log: the watermark log.
        writer: the state by its present addresses.
        takes_any: whether every state counts as this one, since a decision asks an operator about it.
    """

    dataflow: str
    log: WatermarkLog
    writer: Writer
    takes_any: bool = False

    def knows(self, writer: Writer | None) -> bool:
        """Return whether a commit's state is this one, also by an earlier address.

        A commit that names another address of the table came with a lake that was moved or copied: no
        other state writes here.
        """
        if (
            self.takes_any
            or writer is None
            or writer.state == self.writer.state
            or writer.table != self.writer.table
        ):
            return True
        return writer.state in stored_addresses(self.log, self.dataflow)

    def take_over(self, writer: Writer | None) -> None:
        """Store that the state of a commit counts as this one from now on. Repeating it does no harm.

        The present address is stored, too: a process that reaches this state by the other one shall know
        the commits of this one.
        """
        if not self.knows(writer) and writer is not None:
            store_address(self.log, self.dataflow, writer.state)
            store_address(self.log, self.dataflow, self.writer.state)


def store_address(log: WatermarkLog, dataflow: str, address: str) -> None:
    """Store an address that counts as a dataflow's own, unless it is stored already."""
    name = f"{hashlib.sha256(address.encode()).hexdigest()[:16]}.json"
    log.put_object(dataflow, ADDRESSES, name, json.dumps({"state": address}).encode())


def stored_addresses(log: WatermarkLog, dataflow: str) -> set[str]:
    """Return the addresses that count as a dataflow's own beside the present one."""
    names = log.names(dataflow, ADDRESSES, _MAX_ADDRESSES)
    objects = (log.get_object(dataflow, ADDRESSES, name) for name in names)
    return {str(json.loads(data)["state"]) for data in objects if data is not None}


def address_of(place: Place | Database) -> str:
    """Return an address for comparisons, without secrets; all links to a folder give the same address."""
    local = place.local if isinstance(place, Place) else None
    return os.path.realpath(local) if local is not None else str(place)
