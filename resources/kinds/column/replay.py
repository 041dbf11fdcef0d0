"""Replays of rows above columns, in chunks of the calendar or of a step (docs/reference/replay.md).

A promote swaps rows of the range.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from typing_extensions import override

from partitions.column.predicates import format_bound
from partitions.column.slices import ColumnSlice
from partitions.column.state import ColumnState
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.plan import Skip
from partitions.replay.chunk_slice import adds_above, chunk_slice
from partitions.replay.chunks import Chunk, chunk_column, chunks
from partitions.replay.chunks import chunks_above as chunks_above
from partitions.replay.every import fitted_chunks
from partitions.replay.promotion import LoadedEntry, lies_below, loaded_again, promoted_rows, swaps_nothing
from partitions.request import Replay
from partitions.retention import refuse_below_retention
from partitions.sentinels import deserialise, serialise
from partitions.unit_values import value_type_of
from partitions.watermark import compare_values
from resources.kinds.column.opening import column_look, open_column
from resources.kinds.contract.kind import Kind
from resources.replay.chunks import ReplayChunk
from resources.replay.isolated.refusals import never_loaded, range_loaded_again, watermark_moved
from resources.replay.isolated.standing import IsolatedReplay
from resources.replay.kind import Cut, ReplayKind, Swap
from resources.replay.options import name_dataflow_in_errors, refuse_gone
from resources.replay.under_way import ReplayInPlace, entries_of
from resources.tables.contract.table import Table
from resources.watermarks.entry import LOADS, Entry, Why

_MOVES: frozenset[Why] = frozenset({"set", "adopt", "import"})
"""Decisions after which rows at or below the watermark need not have been loaded by a run."""


@dataclass(frozen=True)
class ColumnReplay(ReplayKind):
    """A replay of a column's range, in chunks."""

    @property
    def column(self) -> str:
        """The requested column, or the first watermark column."""
        return chunk_column(self.options.column, self.dataflow.column.columns)

    def check(self) -> None:
        """Check the range by cutting it."""
        if self.options.by:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: --by: expected a watermark of type path, found column"
            )
        refuse_gone(self.dataflow, self.options)
        last = self._requested_chunks()[-1]
        retention = self.dataflow.target.retention
        refuse_below_retention(self.dataflow.name, retention, self.column, last.upper, self.now)

    def range(self) -> str:
        """Return the bounds as values of the column's type, which the source knows."""
        planned, look = self._requested_chunks(), column_look(self.platform, self.dataflow)
        kinds = look.data_types(look.above.observe(self.dataflow.column.columns, self.now))
        with name_dataflow_in_errors(self.dataflow):
            fitted = fitted_chunks(planned, kinds.get(self.column))
        return serialise({"lower": fitted[0].lower, "upper": fitted[-1].upper})

    def cut(self, range_: str | None = None) -> Cut:
        """Cut at the calendar's boundaries, or by a step; untyped bounds get the type of the watermark."""
        live_state = _state(self.newest)
        if range_ is not None:
            bounds = deserialise(range_)
            planned = chunks(self.column, bounds["lower"], bounds["upper"], self.options.interval)
        else:
            planned, mark = self._requested_chunks(), live_state.bounds.get(self.column)
            with name_dataflow_in_errors(self.dataflow):
                planned = fitted_chunks(planned, value_type_of(mark.value)) if mark else planned
        replay_chunks = tuple(ReplayChunk.of(chunk.lower, chunk.upper) for chunk in planned)
        state = ColumnState.of({}) if self.options.is_isolated else live_state
        slices = [self._slices(chunk, state) for chunk in replay_chunks]
        above = [
            Skip(chunk.words, "lies above the watermark; the next run reads it")
            for chunk, parts in zip(replay_chunks, slices, strict=True)
            if not parts
        ]
        return Cut(replay_chunks, slices, above)

    @override
    def slices(self, dataflow: Dataflow, chunk: ReplayChunk) -> Sequence[ColumnSlice]:
        """Return the chunk's slice, without asking the source."""
        return self._slices(chunk, ColumnState.of({}))

    def _slices(self, chunk: ReplayChunk, state: ColumnState) -> Sequence[ColumnSlice]:
        columns, request = self.dataflow.column.columns, self.request(chunk)
        slice_ = chunk_slice(self.dataflow.target, columns, state, request, None)
        return () if slice_ is None else (slice_,)

    def request(self, chunk: ReplayChunk, since: int = 0, table: Table | None = None) -> Replay:
        """Return the request for the chunk's rows.

        An empty chunk is loaded, too, if the table has rows to delete.
        """
        options, isolated = self.options, self.options.is_isolated
        request = Replay(
            self._chunk(chunk),
            since,
            self.reason(chunk),
            saves=options.save_watermark or isolated,
            replaces=options.replace and not isolated,
            leaves_above=not options.save_watermark and not isolated,
        )
        clears = request.replaces or self.dataflow.target.replace_by_watermark
        if not clears or table is None or not table.exists():
            return request
        return replace(
            request,
            clears=table.contents.holds_any(table.contents.newest_version(), request.chunk.range.rows),
        )

    def kind_of(self, dataflow: Dataflow) -> Kind[ColumnSlice]:
        """Return the column kind."""
        return open_column(self.platform, dataflow)

    def done(self, cut: Cut, under_way: ReplayInPlace | None) -> Collection[ReplayChunk]:
        """Return the chunks below the saved watermark, or up to the last one with an entry."""
        if self.options.save_watermark:
            reached = {name: mark.value for name, mark in _state(self.newest).bounds.items()}
        else:
            highest = self._highest(under_way) if under_way else None
            reached = {} if highest is None else {self.column: highest}
        remaining_chunks = chunks_above([self._chunk(chunk) for chunk in cut.chunks], reached)
        return {*cut.chunks[: len(cut.chunks) - len(remaining_chunks)]}

    def _highest(self, under_way: ReplayInPlace) -> Any:
        """Return the highest upper bound of a chunk with an entry; None if there is none."""
        highest = None
        for entry in entries_of(self.platform.log, under_way):
            upper = deserialise(entry.upper)[self.column] if entry.upper else None
            if upper is not None and (highest is None or compare_values(upper, highest) > 0):
                highest = upper
        return highest

    def describe_unread_rows(self, remaining: Sequence[ReplayChunk]) -> Sequence[str] | None:
        """Return the rows between watermark and first chunk, and later ones, that a saved watermark skips."""
        if not self.options.save_watermark or not remaining:
            return None
        sentences, mark = [], _state(self.newest).bounds.get(self.column)
        (lower, _), (_, upper) = remaining[0].bounds, remaining[-1].bounds
        if mark is not None and compare_values(mark.value, lower) < 0:
            sentences.append(
                "no run reads the rows between the earlier watermark and the start of chunk "
                f"{remaining[0].words}"
            )
        if isinstance(upper, datetime) and upper.tzinfo is not None and upper > self.now:
            sentences.append(
                f"chunk {remaining[-1].words} ends in the future: if its watermark is saved, no run reads "
                f"rows of {self.column} that arrive later below that end"
            )
        return sentences

    def swap(self, isolated: IsolatedReplay, entry: Entry | None, since: Sequence[Entry]) -> Swap:
        """Swap the rows of the range, except what live runs have loaded since or will load."""
        dataflow, live_state = self.dataflow, _state(entry)
        leaves_above = adds_above(dataflow.target, dataflow.column.columns, live_state)
        if not live_state.bounds and leaves_above:
            raise never_loaded(isolated)
        state_at_start, columns = ColumnState.of(deserialise(isolated.watermark)), dataflow.column.columns
        range_, loads = isolated.rows, [past for past in since if past.why in LOADS]
        if entry is not None and entry.number != isolated.number:
            if self.platform.log.floor(dataflow.name) > isolated.number:
                raise range_loaded_again(isolated, "an entry that is no longer in the log")
            loaded = (
                LoadedEntry(past.number, _read_state(past.lower), _read_state(past.upper)) for past in loads
            )
            for again in loaded_again(loaded, range_, columns, state_at_start):
                raise range_loaded_again(isolated, f"entry {again.number}")
        moving_entries = [past for past in since if past.why in _MOVES]
        if moving_entries and not lies_below(range_, columns, state_at_start):
            raise watermark_moved(isolated, moving_entries[0])
        if swaps_nothing(range_, columns, state_at_start, live_state, leaves_above=leaves_above):
            if not loads:
                raise never_loaded(isolated)
            raise range_loaded_again(isolated, f"entry {loads[-1].number}")
        where = promoted_rows(
            range_,
            columns,
            state_at_start,
            live_state,
            keeps_boundary=dataflow.column.boundary == "inclusive",
            leaves_above=leaves_above,
        )
        slice_ = ColumnSlice(entry.state() if entry else {}, (range_.range,))
        column = range_.column
        return Swap(
            slice_,
            {column: range_.lower},
            {column: range_.upper},
            lambda _: where,
            f"rows with {isolated.words}",
            ()
            if lies_below(range_, columns, state_at_start)
            else (_describe_staying(state_at_start, leaves_above=leaves_above),),
        )

    def _requested_chunks(self) -> tuple[Chunk, ...]:
        """Return the requested chunks, with bounds typed by their text.

        Raises:
            ConfigurationError: as :func:`partitions.replay.chunks.chunks`, or the column does not exist.
        """
        with name_dataflow_in_errors(self.dataflow):
            return chunks(self.column, self.options.start, self.options.end, self.options.interval)

    def _chunk(self, chunk: ReplayChunk) -> Chunk:
        return Chunk(self.column, *chunk.bounds)


def _describe_staying(state_at_start: ColumnState, *, leaves_above: bool) -> str:
    """Describe the rows of a range that stay because they lie above the state when the replay began."""
    values = ", ".join(f"{name} = {format_bound(mark.value)}" for name, mark in state_at_start.bounds.items())
    above = f"above {values}, the watermark when the replay began," if values else "of the range"
    or_left = ", or wait for its next run" if leaves_above else ""
    return f"rows {above} stay as they are if runs have loaded them since{or_left}"


def _state(entry: Entry | None) -> ColumnState:
    return ColumnState.of(entry.state() if entry else None)


def _read_state(text: str | None) -> ColumnState | None:
    return ColumnState.of(deserialise(text)) if text else None
