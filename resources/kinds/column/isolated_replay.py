"""Replays aside of rows above columns: chunks of the calendar, or of a step; a promote swaps rows of the range."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from partitions.column.predicates import shown
from partitions.column.slices import ColumnSlice
from partitions.column.state import ColumnState
from partitions.dataflow import Dataflow
from partitions.plan import Plan
from partitions.predicate import Predicate
from partitions.replay.chunks import Chunk
from partitions.replay.promotion import (
    Loaded,
    lies_below,
    loaded_again,
    promoted_rows,
    swaps_nothing,
)
from partitions.replay.reading import adds_above
from partitions.request import Replay
from partitions.sentinels import deserialise
from resources.kinds.column.kind import ColumnKind
from resources.kinds.column.opening import open_column
from resources.kinds.column.replay import typed_range
from resources.replay.asked import Asked, asked_chunks
from resources.replay.isolated.chunks import AsideChunk, Parts
from resources.replay.isolated.kind import AsideKind, Begun, Swap
from resources.replay.isolated.refusals import again_refused, moved_refused, never_loaded
from resources.replay.isolated.standing import Aside
from resources.watermarks.entry import LOADS, Entry, Why

_MOVES: frozenset[Why] = frozenset({"set", "adopt", "import"})
"""Decisions after which rows at or below the watermark need not have been loaded by a run."""


class AsideColumns(AsideKind):
    """Rows of a range of a column."""

    def check(self, asked: Asked, now: datetime) -> None:
        """Cut the range."""
        asked_chunks(self.dataflow, asked)

    def planned(self, asked: Asked, now: datetime) -> Plan[ColumnSlice]:
        """A slice for each chunk, bounded as it was asked for."""
        slices = tuple(map(_slice, asked_chunks(self.dataflow, asked)))
        return Plan(self.dataflow.name, self.dataflow.kind, 0, now, "", slices)

    def begun(self, asked: Asked, now: datetime) -> Begun:
        """Bounds are values of the column, which the source tells."""
        column = asked_chunks(self.dataflow, asked)[0].column
        return Begun(typed_range(self.platform, self.dataflow, asked, now), column, asked.interval)

    def parts(self, aside: Aside, now: datetime) -> Parts:
        """Nothing."""
        return Parts()

    def loaded_by(self, aside: Aside) -> Dataflow:
        """The live dataflow under the replay's name."""
        return aside.of(self.dataflow)

    def kind_of(self, loaded_by: Dataflow) -> ColumnKind:
        """The live source under the replay's name."""
        return open_column(self.platform, loaded_by)

    def request(self, aside: Aside, chunk: AsideChunk) -> Replay:
        """Its rows."""
        return Replay(_chunk(aside, chunk))

    def slices(self, aside: Aside, chunk: AsideChunk, now: datetime) -> Sequence[ColumnSlice]:
        """One."""
        return (_slice(_chunk(aside, chunk)),)

    def swap(self, aside: Aside, entry: Entry | None, since: Sequence[Entry]) -> Swap:
        """The rows of the range, but for what the live flow has loaded since and what it will load."""
        dataflow, now = self.dataflow, ColumnState.of(entry.state() if entry else None)
        leaves_above = adds_above(dataflow.target, dataflow.column.columns, now)
        if not now.marks and leaves_above:
            raise never_loaded(aside)
        begun, columns = ColumnState.of(deserialise(aside.watermark)), dataflow.column.columns
        range_ = aside.rows
        if entry is not None and entry.number != aside.number:
            if self.platform.log.floor(dataflow.name) > aside.number:
                raise again_refused(aside, "an entry that is no longer in the log")
            loads = [
                Loaded(past.number, _state(past.lower), _state(past.upper))
                for past in since
                if past.why in LOADS
            ]
            for again in loaded_again(loads, aside.rows, columns, begun):
                raise again_refused(aside, f"entry {again.number}")
        moved = [past for past in since if past.why in _MOVES]
        if moved and not lies_below(range_, columns, begun):
            raise moved_refused(aside, moved[0])
        if swaps_nothing(range_, columns, begun, now, leaves_above=leaves_above):
            loaded = [past for past in since if past.why in LOADS]
            if not loaded:
                raise never_loaded(aside)
            raise again_refused(aside, f"entry {loaded[-1].number}")
        where = promoted_rows(
            range_,
            columns,
            begun,
            now,
            keeps_boundary=dataflow.column.boundary == "inclusive",
            leaves_above=leaves_above,
        )
        slice_ = ColumnSlice(entry.state() if entry else {}, (range_.range,))
        column = range_.column
        return Swap(
            slice_,
            {column: range_.lower},
            {column: range_.upper},
            partial(_same, where),
            f"rows with {aside.words}",
            () if lies_below(range_, columns, begun) else (_staying(begun, leaves_above=leaves_above),),
        )


def _same(where: Predicate, rows: object) -> Predicate:  # noqa: ARG001 - bounds have their columns' types
    return where


def _staying(begun: ColumnState, *, leaves_above: bool) -> str:
    """What of a range does not come that reaches above the state when the replay began."""
    stood = ", ".join(f"{name} = {shown(mark.value)}" for name, mark in begun.marks.items())
    above = f"above {stood}, where the watermark stood when the replay began," if stood else "of the range"
    also = ", or are left to its next run" if leaves_above else ""
    return f"rows {above} stay as they are if the live flow has loaded them since{also}"


def _chunk(aside: Aside, chunk: AsideChunk) -> Chunk:
    assert aside.column is not None
    return Chunk(aside.column, *chunk.bounds)


def _slice(chunk: Chunk) -> ColumnSlice:
    return ColumnSlice({}, (chunk.range,), why="replay")


def _state(text: str | None) -> ColumnState | None:
    return ColumnState.of(deserialise(text)) if text else None
