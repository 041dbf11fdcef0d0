"""The contract of a kind of replay aside: what it reads, and what a promote of it swaps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from partitions.dataflow import Dataflow
from partitions.plan import Plan, Slice
from partitions.predicate import Predicate
from partitions.request import Request
from partitions.sentinels import Watermark
from resources.kinds.kind import Kind
from resources.platform.stores import Stores
from resources.replay.asked import Asked
from resources.replay.isolated.chunks import AsideChunk, Parts
from resources.replay.isolated.standing import Aside
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Begun(NamedTuple):
    """What a replay that begins now is.

    Attributes:
        range: lower (inclusive) and upper (exclusive) bound, sentinel JSON text.
        column: that bounds it; None if its chunks are stored.
        interval: of chunks of a column; None: one chunk.
    """

    range: str
    column: str | None = None
    interval: dict[str, int] | None = None


class Swap(NamedTuple):
    """What a promote puts in the place of what.

    Attributes:
        slice: what is swapped, as the log keeps it.
        lower: of the entry.
        upper: of the entry.
        where: from rows with the table's columns: the rows that go, and those that come.
        amount: what is swapped, for people.
        stays: what of the replay is not swapped, a sentence each.
    """

    slice: Slice
    lower: Watermark | None
    upper: Watermark
    where: Callable[[DataFrame], Predicate]
    amount: str
    stays: Sequence[str] = ()


@dataclass(frozen=True)
class AsideKind(ABC):
    """Replays aside of a dataflow.

    Attributes:
        platform: the resources.
        dataflow: the live one.
    """

    platform: Stores
    dataflow: Dataflow

    @abstractmethod
    def check(self, asked: Asked, now: datetime) -> None:
        """Raise ConfigurationError if the range cannot be read aside."""

    @abstractmethod
    def planned(self, asked: Asked, now: datetime) -> Plan[Any]:
        """Return what a replay that begins now reads, a slice for each chunk. Changes nothing; of columns it opens no source."""

    @abstractmethod
    def begun(self, asked: Asked, now: datetime) -> Begun:
        """Return what a replay that begins now is."""

    @abstractmethod
    def parts(self, aside: Aside, now: datetime) -> Parts:
        """Return what is stored once it has begun; nothing of columns, whose bounds tell the chunks."""

    @abstractmethod
    def loaded_by(self, aside: Aside) -> Dataflow:
        """Return the dataflow that loads it."""

    @abstractmethod
    def request(self, aside: Aside, chunk: AsideChunk) -> Request:
        """Return what is asked for of a chunk."""

    @abstractmethod
    def kind_of(self, loaded_by: Dataflow) -> Kind[Any]:
        """Return the kind of :meth:`loaded_by`, bound to its source."""

    def slices(self, aside: Aside, chunk: AsideChunk, now: datetime) -> Sequence[Slice]:
        """Return what of a chunk would be read now."""
        loaded_by = self.loaded_by(aside)
        newest = self.platform.log.newest(aside.log)
        plan = self.kind_of(loaded_by).plan(newest, now, self.request(aside, chunk))
        return tuple(plan.slices)

    @abstractmethod
    def swap(self, aside: Aside, entry: Entry | None, since: Sequence[Entry]) -> Swap:
        """Return what a promote swaps on top of the newest live entry.

        Args:
            aside: that is complete.
            entry: the newest live one.
            since: the live entries since the replay began, newest first.

        Raises:
            NeedsDecision: nothing of it can be promoted, or nothing tells what.
        """
