"""A replay in place of rows above columns: chunks of the calendar, or of a step (docs/replay.md, In place)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from partitions.column.state import ColumnState
from partitions.dataflow import Dataflow
from partitions.plan import Plan, Skip, counted
from partitions.replay.chunks import Chunk, chunks, remaining
from partitions.replay.every import fitted_chunks
from partitions.replay.reading import chunk_slice
from partitions.request import Replay
from partitions.sentinels import deserialise, serialise
from partitions.unit_values import kind_of_value
from partitions.watermark import compare_values
from resources.kinds.column.opening import open_column
from resources.loop.loop import Loop
from resources.platform.stores import Stores
from resources.replay.asked import Asked, asked_chunks, naming
from resources.replay.reading import Piece
from resources.replay.replay import InPlaceReplay
from resources.replay.under_way import InPlace, begin, entries_of, find
from resources.watermarks.entry import Entry


def typed_range(platform: Stores, dataflow: Dataflow, asked: Asked, now: datetime) -> str:
    """Return the bounds that are asked for as values of the column, whose type the source tells; sentinel JSON text.

    Raises:
        ConfigurationError: the column holds something else.
    """
    planned, kind = asked_chunks(dataflow, asked), open_column(platform, dataflow)
    known = kind.with_kinds(kind.above.observe(dataflow.column.columns, now))
    with naming(dataflow):
        fitted = fitted_chunks(planned, known.get(planned[0].column))
    return serialise({"lower": fitted[0].lower, "upper": fitted[-1].upper})


@dataclass(frozen=True)
class ColumnReplay(InPlaceReplay):
    """Chunks of a range of a column.

    Attributes:
        asked: the range, and what becomes of table and watermark.
    """

    asked: Asked

    @classmethod
    def of(cls, platform: Stores, dataflow: Dataflow, asked: Asked, now: datetime) -> ColumnReplay:
        """Chunks that the range can be cut into."""
        asked_chunks(dataflow, asked)
        return cls(platform, dataflow, asked.words, now, asked)

    def plan(self) -> Plan[Any]:
        """Return a slice for each chunk that is still to be read. Opens no source."""
        dataflow, log = self.dataflow, self.platform.log
        known, newest = find(log, dataflow.name, self.words), log.newest(dataflow.name)
        planned, state = asked_chunks(dataflow, self.asked), _state(newest)
        stored = state.marks.get(planned[0].column)
        if known is not None:
            planned = self._chunks(known)
        elif stored is not None:
            with naming(dataflow):
                planned = fitted_chunks(planned, kind_of_value(stored.value))
        left = self._left(known, planned, newest)
        done = planned[: len(planned) - len(left)]
        slices, skips = [], [Skip(chunk.span, "done before") for chunk in done]
        for chunk in left:
            request = self._request(chunk, 0)
            slice_ = chunk_slice(dataflow.target, dataflow.column.columns, state, request, None)
            if slice_ is None:
                skips.append(Skip(chunk.span, "lies above the watermark, and is left to the next run"))
            else:
                slices.append(slice_)
        why = f"{counted(len(slices), 'chunk')} of {len(planned)} to replay into {dataflow.table}"
        number = newest.number if newest else 0
        return Plan(dataflow.name, dataflow.kind, number, self.now, why, tuple(slices), tuple(skips))

    def pieces(self, loop: Loop[Any]) -> tuple[Sequence[Piece], Sequence[str]]:
        """Begin, or go on: return all chunks, and what there is to warn of."""
        log, name = self.platform.log, self.dataflow.name
        begun = begin(
            log, name, self.words, lambda: typed_range(self.platform, self.dataflow, self.asked, self.now)
        )
        planned, newest = self._chunks(begun), log.newest(name)
        left = self._left(begun, planned, newest)
        pieces = [
            Piece(
                chunk.lower,
                chunk.upper,
                partial(self._next, loop, chunk, begun.number),
                self.words,
                done=number < len(planned) - len(left),
            )
            for number, chunk in enumerate(planned)
        ]
        return pieces, self._passed_over(newest, left) if self.asked.save_watermark else ()

    def _chunks(self, begun: InPlace) -> tuple[Chunk, ...]:
        bounds, column = deserialise(begun.range), asked_chunks(self.dataflow, self.asked)[0].column
        return chunks(column, bounds["lower"], bounds["upper"], self.asked.interval)

    def _left(
        self, known: InPlace | None, planned: Sequence[Chunk], newest: Entry | None
    ) -> tuple[Chunk, ...]:
        """The last chunks, which are still to be read: above the watermark that is saved, or above the last one with an entry."""
        if self.asked.save_watermark:
            return remaining(planned, {name: mark.value for name, mark in _state(newest).marks.items()})
        column, highest = planned[0].column, None
        for entry in entries_of(self.platform.log, known) if known else ():
            upper = deserialise(entry.upper)[column] if entry.upper else None
            if upper is not None and (highest is None or compare_values(upper, highest) > 0):
                highest = upper
        return remaining(planned, None if highest is None else {column: highest})

    def _next(self, loop: Loop[Any], chunk: Chunk, since: int) -> Replay:
        """What is asked for of a chunk now: without rows it is loaded, too, if rows of the table are to go."""
        made, table = self._request(chunk, since), loop.context.table
        if not (made.replaces or self.dataflow.target.replace_by_watermark) or not table.exists():
            return made
        return replace(made, clears=table.holds_any(table.newest_version(), chunk.range.rows))

    def _request(self, chunk: Chunk, since: int) -> Replay:
        return Replay(
            chunk,
            since,
            self.words,
            saves=self.asked.save_watermark,
            replaces=self.asked.replace,
            leaves_above=not self.asked.save_watermark,
        )

    def _passed_over(self, newest: Entry | None, left: Sequence[Chunk]) -> list[str]:
        """Say which rows a saved watermark passes over."""
        if not left:
            return []
        column, said = left[0].column, []
        mark, last = _state(newest).marks.get(column), left[-1].upper
        if mark is not None and compare_values(mark.value, left[0].lower) < 0:
            said.append(
                f"rows between the watermark before and the start of chunk {left[0].span} are passed over: no run reads them"
            )
        if isinstance(last, datetime) and last.tzinfo is not None and last > self.now:
            said.append(
                f"chunk {left[-1].span} ends after now: rows of {column} that come later below its end are read by no run, if it is saved"
            )
        return said


def _state(entry: Entry | None) -> ColumnState:
    return ColumnState.of(entry.state() if entry else None)
