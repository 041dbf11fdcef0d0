"""Judging of an epoch: which rows are late, leave or wait, and the new watermarks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.stream.buffer_limit import check_buffer
from partitions.stream.definition import StreamWatermark
from partitions.stream.drain import drain_segments
from partitions.stream.ending import raised_watermark
from partitions.stream.epoch import close_epoch, open_epoch
from partitions.stream.event_time import EventTime, after
from partitions.stream.inputs import NoInput, Versions
from partitions.stream.late_rows import are_refused, late_rows_error
from partitions.stream.operators import EPOCH
from partitions.stream.slices import EpochJudgement, EpochSlice, Tally
from partitions.stream.state import StreamState
from partitions.stream.ticks import event_time, span_ticks, ticks
from resources.kinds.state_of_entry import state_of
from resources.kinds.stream import judged_rows as R
from resources.kinds.stream.buffer import Buffer
from resources.kinds.stream.emission import emission_of
from resources.kinds.stream.epoch import Decision, Epoch
from resources.kinds.stream.epochs import Epochs
from resources.kinds.stream.sorted_rows import SortedRows
from resources.sources.schema import pinned_struct
from resources.spark.settings import tune, tune_for_rows
from resources.tables.contract.appends import VERSION
from resources.tables.contract.commits import Version
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_UNPACKED = 4
"""So many times the bytes of a version's files their rows have as text, at least: a guess, until the rows are counted."""
_SHOWN = 3


def source_columns(names: Sequence[str]) -> Sequence[str]:
    """Return the source's columns without an epoch number, which is this stream's own."""
    return [name for name in names if name.lower() not in (VERSION.lower(), EPOCH)]


@dataclass(frozen=True)
class Judging:
    """Judges the epochs of one stream.

    Attributes:
        dataflow: what the user declared.
        epochs: its source.
        sides: the side tables, by their short names.
        pinned: the version of each side table that an epoch is decided on.
    """

    dataflow: Dataflow
    epochs: Epochs
    sides: Mapping[str, Table]
    pinned: dict[str, Version] = field(default_factory=dict)

    @property
    def _definition(self) -> StreamWatermark:
        return self.dataflow.stream

    def decide(self, epoch: Epoch) -> Decision:
        """Decide what becomes of an epoch's rows; raise if tables with waiting rows are missing."""
        self.pinned.clear()
        self.buffer.check_tables(epoch.before)
        return self.emission.decide(epoch)

    def judge(
        self, spark: SparkSession, entry: Entry | None, slice_: EpochSlice, pinned: str, now: datetime
    ) -> EpochSlice:
        """Look at the epoch's input, and decide what becomes of each row and of each watermark.

        Raises:
            ConfigurationError: a column is not there, or of a type that is no event time.
            StrandlineError: code ``late_rows``: there are late rows, and must not be; code ``buffer_full``: more rows would wait than may.
            NeedsDecision: code ``buffer_lost``: the buffer does not hold the rows that the state says.
        """
        definition, before = self._definition, state_of(StreamState, self.dataflow, entry)
        number = entry.number + 1 if entry else 1
        tune(spark, slice_.input.bytes * (_UNPACKED if isinstance(slice_.input, Versions) else 1))
        rows = self._rows(spark, slice_, pinned)
        type_name = R.time_type(rows, definition, self.dataflow.name)
        timed = R.is_timed(type_name)
        latest = self._latest(now, timed=timed)
        marked = R.marked(rows, definition, type_name, latest)
        timeout, one_chunk = span_ticks(definition.timeout), slice_.input.one_chunk
        asks = not slice_.reads_nothing
        split_rows = R.tops(marked, timeout, one_chunk=one_chunk).collect() if asks else []
        quarantined = sum(row["rows"] for row in split_rows if row[R.SPLIT] is None)
        tops = {
            row[R.SPLIT]: event_time(row["top"], timed=timed)
            for row in split_rows
            if row[R.SPLIT] is not None
        }
        opened_state = open_epoch(before, definition.policy, tops)
        closed_state = close_epoch(opened_state, definition.policy, tops, counts=slice_.counts)
        if isinstance(slice_.input, NoInput):
            closed_state = replace(
                closed_state, value=raised_watermark(slice_.input, closed_state, self.dataflow.operators)
            )
        bounds = {name: opened_state.bound(name) for name in sorted(tops)}
        rows_in = sum(row["rows"] for row in split_rows)
        tune_for_rows(spark, rows_in + rows_read(before, closed_state.value))
        # most epochs have no late row: then no row need be compared with the watermark of its split
        any_late = any(
            _any_late(row, bounds.get(row[R.SPLIT])) for row in split_rows if row[R.SPLIT] is not None
        )
        judged = R.judged(marked, bounds, timeout, one_chunk=one_chunk) if any_late else R.none_late(marked)
        epoch = Epoch(
            number, judged, before, closed_state.value, type_name, source_columns(rows.columns), _ends(slice_)
        )
        decided = self.decide(epoch)
        after = _state_after(epoch, closed_state, decided, slice_, quarantined, now)
        tally = Tally(rows_in, decided.emitted, decided.late, quarantined, after.buffered)
        fixed = replace(
            slice_,
            number=number,
            before={"epoch": before.epoch, "global": before.value},
            judgement=EpochJudgement(before, after, bounds, timeout, latest, tally),
        )
        self._check_limits(fixed, epoch)
        return fixed

    def _latest(self, now: datetime, *, timed: bool) -> int | None:
        ahead = self._definition.max_ahead
        if ahead is None:
            return None
        if isinstance(ahead, int) or not timed:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: watermark.max_ahead: expected no such key (only timestamps are compared with a clock), found {ahead}"
            )
        return ticks(after(now, ahead))

    @cached_property
    def emission(self) -> SortedRows:
        """Return the rows that leave the buffer, in the form of the operator."""
        return emission_of(self.dataflow, self.buffer)

    @cached_property
    def buffer(self) -> Buffer:
        """Return the rows that wait."""
        return Buffer(self.dataflow, self.sides, self.pinned)

    def _check_limits(self, slice_: EpochSlice, epoch: Epoch) -> None:
        definition, name, judged = self._definition, self.dataflow.name, slice_.judged
        late, waiting = judged.tally.late, judged.tally.buffered
        if are_refused(definition.late, late):
            raise late_rows_error(name, slice_.number, late, _latest_splits(epoch))
        check_buffer(
            name,
            slice_.number,
            self.dataflow.operators,
            judged.after,
            waiting=waiting,
            count_for_splits=lambda: self.emission.above(epoch),
            most=definition.buffer.max_rows,
        )

    def epoch(self, spark: SparkSession, slice_: EpochSlice, pinned: str) -> Epoch:
        """Return an epoch that was judged before, with its rows."""
        judgement = slice_.judged
        rows = self._rows(spark, slice_, pinned)
        type_name = R.time_type(rows, self._definition, self.dataflow.name)
        marked = R.marked(rows, self._definition, type_name, judgement.latest)
        if judgement.tally.late:
            judged = R.judged(marked, judgement.bounds, judgement.timeout, one_chunk=slice_.input.one_chunk)
        else:
            judged = R.none_late(marked)
        names = source_columns(pinned_struct(pinned).names)
        after_, ends = judgement.after.value, _ends(slice_)
        return Epoch(slice_.number, judged, judgement.before, after_, type_name, names, ends)

    def _rows(self, spark: SparkSession, slice_: EpochSlice, pinned: str) -> DataFrame:
        """Return the rows of an epoch's input, with the pinned columns and ``VERSION``."""
        from pyspark.sql import functions as F

        if not slice_.reads_nothing:
            return self.epochs.rows(spark, slice_.input, pinned)
        rows = spark.createDataFrame([], pinned_struct(pinned))
        return rows.withColumn(VERSION, F.lit(0).cast("long"))

    def no_epoch(self, spark: SparkSession, pinned: str) -> Epoch:
        """Return an epoch without rows."""
        struct = pinned_struct(pinned)
        rows = spark.createDataFrame([], struct)
        type_name = R.time_type(rows, self._definition, self.dataflow.name)
        marked = R.marked(rows, self._definition, type_name, None)
        return Epoch(0, R.none_late(marked), StreamState(), None, type_name, source_columns(struct.names))


def _state_after(
    epoch: Epoch,
    closed_state: StreamState,
    decided: Decision,
    slice_: EpochSlice,
    quarantined: int,
    now: datetime,
) -> StreamState:
    """Return the state at an epoch's end: the watermarks as it was closed, and what became of its rows."""
    before = epoch.before
    emptied = {segment.name for segment in before.segments} - {segment.name for segment in decided.segments}
    return replace(
        closed_state,
        segments=decided.segments,
        epoch=epoch.number,
        position=before.position if isinstance(slice_.input, NoInput) else slice_.input.position,
        emptied=tuple(sorted(emptied)),
        late=before.late + decided.late,
        quarantined=before.quarantined + quarantined,
        drained=closed_state.value,
        carry=decided.carry,
        flush=None if slice_.reads_nothing else before.flush,
        heard_at=now if slice_.input.files else before.heard_at,
    )


def _ends(slice_: EpochSlice) -> bool:
    """Return whether no row follows those of an epoch, as far as values look ahead."""
    return isinstance(slice_.input, NoInput) and slice_.input.ends


def rows_read(before: StreamState, value: EventTime | None) -> int:
    """Return how many rows wait in the segments that are read once the global watermark has a value."""
    return sum(segment.rows for segment in drain_segments(before.segments, value).read)


def _latest_splits(epoch: Epoch) -> Sequence[tuple[str, int]]:
    """Return the splits with the most late rows, with the number of each."""
    from pyspark.sql import functions as F

    by_split = epoch.judged.where(R.is_late()).groupBy(R.SPLIT).agg(F.count("*").alias("rows"))
    worst = by_split.orderBy(F.desc("rows"), R.SPLIT).limit(_SHOWN).collect()
    return [(row[R.SPLIT], row["rows"]) for row in worst]


def _any_late(row: Any, bound: EventTime | None) -> bool:
    """Return whether a split has rows below its watermark, or below that of earlier chunks."""
    return bool(row["behind"]) or (bound is not None and row["lowest"] < ticks(bound))
