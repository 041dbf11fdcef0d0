"""The contract of replays of a kind of watermark, in place and isolated: how a range is cut, what is asked for of a chunk, what a promote swaps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from partitions.dataflow import Dataflow
from partitions.plan import Plan, Skip, Slice, pluralize
from partitions.predicate import Predicate
from partitions.request import Request
from partitions.sentinels import Watermark
from resources.kinds.contract.kind import Kind
from resources.platform.stores import Stores
from resources.replay.chunks import ReplayChunk
from resources.replay.isolated.standing import Aside
from resources.replay.options import ReplayOptions
from resources.replay.under_way import InPlace, done_keys
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Cut(NamedTuple):
    """A range as it is cut into chunks now.

    Attributes:
        chunks: in order.
        slices: what each chunk reads; none of what is left to the next run.
        skips: what of the range no chunk reads.
        warnings: what there is to say of it, such as which files are gone at the source.
    """

    chunks: Sequence[ReplayChunk]
    slices: Sequence[Sequence[Slice]]
    skips: Sequence[Skip] = ()
    warnings: Sequence[str] = ()


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
class ReplayKind(ABC):
    """A replay of a range, in place or isolated.

    Attributes:
        platform: the resources.
        dataflow: the live one, whose rows they are.
        options: the range, and where its rows go.
        now: the clock, aware.
    """

    platform: Stores
    dataflow: Dataflow
    options: ReplayOptions
    now: datetime

    @property
    def column(self) -> str | None:
        """The column that bounds the range; None of files and windows."""
        return None

    @property
    def newest(self) -> Entry | None:
        """The newest entry of the live dataflow."""
        return self.platform.log.newest(self.dataflow.name)

    @abstractmethod
    def check(self) -> None:
        """Raise ConfigurationError if the range cannot be read again so. Opens no source, changes nothing."""

    @abstractmethod
    def range(self) -> str:
        """Return the lower (inclusive) and upper (exclusive) bound, sentinel JSON text. Of a column the source tells their type."""

    @abstractmethod
    def cut(self, range_: str | None = None) -> Cut:
        """Cut the range into chunks. Changes nothing; of columns it opens no source.

        Args:
            range_: as :meth:`range` was when the replay began; None: it has not begun.
        """

    @abstractmethod
    def request(self, chunk: ReplayChunk, since: int = 0, table: Table | None = None) -> Request:
        """Return what is asked for of a chunk.

        Args:
            chunk: of the range.
            since: number of the newest entry when the replay began; 0 of an isolated one, whose log has no other entries.
            table: the live one, that a replay in place loads.
        """

    @abstractmethod
    def kind_of(self, dataflow: Dataflow) -> Kind[Any]:
        """Return the kind of the live dataflow, or of the one that loads the isolated table, bound to its source."""

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

    def loaded_by(self, dataflow: Dataflow) -> Dataflow:
        """Return the dataflow whose loop reads the chunks: as it is, unless one of its runs would not take all of a chunk."""
        return dataflow

    def slices(self, dataflow: Dataflow, chunk: ReplayChunk) -> Sequence[Slice]:
        """Return what the dataflow that loads the isolated table would read of a chunk now."""
        newest = self.platform.log.newest(dataflow.name)
        return self.kind_of(dataflow).planning.plan(newest, self.now, self.request(chunk)).slices

    def done(self, cut: Cut, begun: InPlace | None) -> Collection[ReplayChunk]:
        """Return the chunks that a replay in place has read, as far as the log knows."""
        if begun is None:
            return ()
        keys = done_keys(self.platform.log, self.kind_of(self.dataflow), begun)
        return {chunk for chunk in cut.chunks if keys.issuperset(chunk.keys)}

    def passed_over(self, remaining: Sequence[ReplayChunk]) -> Sequence[str] | None:
        """Return which rows no run reads once these chunks are read, a sentence each; None if there are none."""

    def reason(self, chunk: ReplayChunk) -> str:
        """Return the reason of a chunk's entries: in place it tells them from those of others, in a log of their own from those of other chunks."""
        return chunk.words if self.options.is_isolated else self.options.words

    def plan(self, cut: Cut, done: Collection[ReplayChunk]) -> Plan[Any]:
        """Return the slices that are still to be read."""
        slices = tuple(
            slice_
            for chunk, parts in zip(cut.chunks, cut.slices, strict=True)
            if chunk not in done
            for slice_ in parts
        )
        skips = [Skip(chunk.words, "done before") for chunk in cut.chunks if chunk in done]
        table = self.options.table or self.dataflow.table
        why = f"{pluralize(len(slices), 'chunk')} of {len(cut.chunks)} to replay into {table}"
        number = 0 if self.options.is_isolated or (newest := self.newest) is None else newest.number
        flow = self.dataflow
        return Plan(
            flow.name, flow.kind, number, self.now, why, slices, (*skips, *cut.skips), tuple(cut.warnings)
        )
