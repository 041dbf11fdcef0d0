"""The contract of a kind's replays: chunks, requests, and the swap of a promote."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from partitions.dataflow import Dataflow
from partitions.errors import StrandlineError
from partitions.plan import Plan, Skip, Slice, pluralize
from partitions.predicate import Predicate
from partitions.request import Request
from partitions.sentinels import Watermark
from resources.kinds.contract.kind import Kind
from resources.kinds.contract.lost_rows import LostRows, check_lost_rows, lost_in_all
from resources.outcome import Outcome
from resources.platform.stores import Stores
from resources.replay.chunks import ReplayChunk
from resources.replay.isolated.standing import IsolatedReplay
from resources.replay.options import ChosenPartitions, ReplayOptions
from resources.replay.under_way import ReplayInPlace, done_keys
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Cut(NamedTuple):
    """A range, cut into chunks.

    Attributes:
        chunks: the chunks, in order.
        slices: the slices that each chunk reads; empty for what the next run loads.
        skips: the parts of the range that no chunk reads.
        warnings: warnings about the range, such as files that are missing at the source.
    """

    chunks: Sequence[ReplayChunk]
    slices: Sequence[Sequence[Slice]]
    skips: Sequence[Skip] = ()
    warnings: Sequence[str] = ()


class Swap(NamedTuple):
    """The rows that a promote swaps.

    Attributes:
        slice: the swapped part, as the log stores it.
        lower: the entry's lower bound.
        upper: the entry's upper bound.
        where: given rows with the table's columns, returns the predicate of the rows that are deleted and
            inserted.
        amount: the swapped amount, for people.
        stays: sentences about the parts of the replay that are not swapped.
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
        dataflow: the live dataflow.
        options: the range, and where its rows go.
        now: the clock, aware.
    """

    platform: Stores
    dataflow: Dataflow
    options: ReplayOptions
    now: datetime

    @property
    def column(self) -> str | None:
        """The column that bounds the range; None for files and windows."""
        return None

    @property
    def can_promote(self) -> bool:
        """Whether a promote can swap the rows of an isolated replay."""
        return True

    @property
    def newest(self) -> Entry | None:
        """The newest entry of the live dataflow."""
        return self.platform.log.newest(self.dataflow.name)

    @abstractmethod
    def check(self) -> None:
        """Raise ConfigurationError if the range cannot be replayed. Opens no source, changes nothing."""

    def check_answers(self, ended: Stores) -> None:
        """Raise NeedsDecision if an operator has to say what becomes of rows, and has not.

        Partitions that were chosen in Dagster have nobody to ask, and an isolated replay shows what it does
        before its promote.

        Args:
            ended: the resources over a log in which the open intent has ended.
        """
        if self.options.is_isolated or isinstance(self.options, ChosenPartitions):
            return
        name, options = self.dataflow.name, self.options
        commands = [replace(options, deleted="load").command(name)]
        check_lost_rows(name, self.lost_rows(ended), options.deleted, commands)

    def describe_lost_rows(self, ended: Stores) -> Sequence[str]:
        """Return a sentence about rows that others have deleted, and that would come back; none if none would."""
        lost_rows = self.lost_rows(ended)
        return () if lost_rows.are_none else (lost_rows.describe(),)

    def lost_rows(self, ended: Stores) -> LostRows:
        """Return the rows that others have deleted from the live table, and that the range may hold.

        A commit whose entry is still missing has deleted rows, too: ``ended`` is a log that counts it.
        """
        return lost_in_all(self.platform.table(self.dataflow), ended.log.newest(self.dataflow.name))

    @abstractmethod
    def range(self) -> str:
        """Return the lower (inclusive) and upper (exclusive) bound, as sentinel JSON text.

        For a column the source determines their type.
        """

    @abstractmethod
    def cut(self, range_: str | None = None) -> Cut:
        """Cut the range into chunks. Changes nothing; opens no source for a column.

        Args:
            range_: the result of :meth:`range` when the replay began; None if it has not begun.
        """

    @abstractmethod
    def request(self, chunk: ReplayChunk, since: int = 0, table: Table | None = None) -> Request:
        """Return the request for a chunk.

        Args:
            chunk: a chunk of the range.
            since: the number of the newest entry when the replay began; 0 for an isolated one, whose log
                has no other entries.
            table: the live table, which a replay in place loads.
        """

    @abstractmethod
    def kind_of(self, dataflow: Dataflow) -> Kind[Any]:
        """Return the kind of the live dataflow, or of the isolated one, bound to its source."""

    @abstractmethod
    def swap(self, isolated: IsolatedReplay, entry: Entry | None, since: Sequence[Entry]) -> Swap:
        """Return what a promote swaps on top of the newest live entry.

        Args:
            isolated: the complete replay.
            entry: the newest live entry.
            since: the live entries since the replay began, newest first.

        Raises:
            NeedsDecision: no part of it can be promoted, or it is unknown which part.
        """

    def loaded_by(self, dataflow: Dataflow) -> Dataflow:
        """Return the dataflow whose loop reads the chunks.

        A kind overrides it if one run would not load a whole chunk.
        """
        return dataflow

    def slices(self, dataflow: Dataflow, chunk: ReplayChunk) -> Sequence[Slice]:
        """Return the slices that the isolated dataflow would read for a chunk now."""
        newest = self.platform.log.newest(dataflow.name)
        return self.kind_of(dataflow).planning.plan(newest, self.now, self.request(chunk)).slices

    def done(self, cut: Cut, in_progress: ReplayInPlace | None) -> Collection[ReplayChunk]:
        """Return the chunks that a replay in place has read, as far as the log shows."""
        if in_progress is None:
            return ()
        keys = done_keys(self.platform.log, self.kind_of(self.dataflow), in_progress)
        return {chunk for chunk in cut.chunks if keys.issuperset(chunk.keys)}

    def describe_unread_rows(self, remaining: Sequence[ReplayChunk]) -> Sequence[str] | None:
        """Return sentences about the rows that no run reads after these chunks; None if there are none."""

    def find_unread(self, outcome: Outcome) -> StrandlineError | None:
        """Return the error of a chunk's run that has left out a part of the chunk; None if it has not."""

    def reason(self, chunk: ReplayChunk) -> str:
        """Return the reason of a chunk's entries.

        In place it identifies the replay, in an isolated log the chunk.
        """
        return chunk.words if self.options.is_isolated else self.options.words

    def plan(self, cut: Cut, done: Collection[ReplayChunk]) -> Plan[Any]:
        """Return the plan of the slices that are still to be read."""
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
