"""What every replay into the dataflow's own table is, whatever its kind (docs/replay.md, In place)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from partitions.dataflow import Dataflow
from partitions.plan import Plan
from resources.loop.loop import Loop
from resources.platform.stores import Stores
from resources.replay.reading import Piece


@dataclass(frozen=True)
class InPlaceReplay(ABC):
    """A replay into the dataflow's own table. A kind makes one by its ``of``, which refuses what it cannot read again.

    Attributes:
        platform: the resources.
        dataflow: whose rows they are.
        words: what was asked for: the reason of its entries, and what tells it from other replays.
        now: the clock, aware.
    """

    platform: Stores
    dataflow: Dataflow
    words: str
    now: datetime

    @property
    def loaded_by(self) -> Dataflow:
        """The dataflow whose loop reads the chunks."""
        return self.dataflow

    @abstractmethod
    def plan(self) -> Plan[Any]:
        """Return a slice for each chunk that is still to be read. Changes nothing; of columns it opens no source."""

    @abstractmethod
    def pieces(self, loop: Loop[Any]) -> tuple[Sequence[Piece], Sequence[str]]:
        """Begin, or go on: return all chunks, and what there is to warn of."""
