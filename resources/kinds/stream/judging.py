"""Judge an epoch: which rows are late, leave or wait, and the new watermarks."""

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
from resources.tables.contract.commit_log import VERSION
from resources.tables.contract.commits import Version
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


_UNPACKED = 4
"""Bytes of rows as text for each byte of a version's files: a low guess, until the rows are counted."""

_SPLITS_SHOWN = 3
"""The most splits that the error for late rows names."""


def source_columns(names: Sequence[str]) -> Sequence[str]:
    """Return the source's columns without ``VERSION`` and ``_epoch``, which this stream sets itself."""
    return [name for name in names if name.lower() not in (VERSION.lower(), EPOCH)]


@dataclass(frozen=True)
class Judging:
    """Judge of the epochs of one stream.

    Attributes:
        dataflow: the definition.
        epochs: the source.
        sides: the side tables, by their short names.
        pinned: version of each side table that the present epoch is decided on.
    """

    dataflow: Dataflow
    epochs: Epochs
    sides: Mapping[str, Table]
    pinned: dict[str, Version] = field(default_factory=dict)

    @property
    def _definition(self) -> StreamWatermark:
        return self.dataflow.stream

    def decide(self, epoch: Epoch) -> Decision:
        """Return the decision about an epoch's rows, on the newest versions of the side tables.

        Raises:
            NeedsDecision: code ``buffer_lost``: the buffer does not hold the rows that the state counts.
        """
        self.pinned.clear()
        self.buffer.check_tables(epoch.before)
        return self.emission.decide(epoch)

    def judge(
        self, spark: SparkSession, entry: Entry | None, slice_: EpochSlice, pinned: str, now: datetime
    ) -> EpochSlice:
        """Read the epoch's input, and return the slice with the decisions about its rows and watermarks.

        Args:
            spark: the run's session.
            entry: the newest entry; None: the stream has no state yet.
            slice_: the planned epoch.
            pinned: text of the schema.
            now: the run's clock, aware.

        Raises:
            ConfigurationError: a column is missing, or has a type that is no event time.
            StrandlineError: code ``late_rows``: rows are late, and the definition refuses them; code
                ``buffer_full``: more rows would wait than the definition allows.
            NeedsDecision: code ``buffer_lost``: the buffer does not hold the rows that the state counts.
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
        split_rows = [] if slice_.reads_nothing else R.tops(marked, timeout, one_chunk=one_chunk).collect()
        quarantined = sum(row["rows"] for row in split_rows if row[R.SPLIT] is None)
        tops = {
            row[R.SPLIT]: event_time(row["top"], timed=timed)
            for row in split_rows
            if row[R.SPLIT] is not None
        }
        opened_state, closed_state = self._watermarks(before, tops, slice_)
        bounds = {name: opened_state.bound(name) for name in sorted(tops)}
        rows_in = sum(row["rows"] for row in split_rows)
        tune_for_rows(spark, rows_in + rows_read(before, closed_state.value))
        # Most epochs have no late row: then Spark need not compare each row with its split's watermark.
        any_late = any(_any_late(row, bounds[row[R.SPLIT]]) for row in split_rows if row[R.SPLIT] in bounds)
        judged = R.judged(marked, bounds, timeout, one_chunk=one_chunk) if any_late else R.none_late(marked)
        epoch = Epoch(
            number, judged, before, closed_state.value, type_name, source_columns(rows.columns), _ends(slice_)
        )
        decision = self.decide(epoch)
        after = _state_after(epoch, closed_state, decision, slice_, quarantined, now)
        tally = Tally(rows_in, decision.emitted, decision.late, quarantined, after.buffered)
        judged_slice = replace(
            slice_,
            number=number,
            before={"epoch": before.epoch, "global": before.value},
            judgement=EpochJudgement(before, after, bounds, timeout, latest, tally),
        )
        self._check_limits(judged_slice, epoch)
        return judged_slice

    def _watermarks(
        self, before: StreamState, tops: Mapping[str, EventTime], slice_: EpochSlice
    ) -> tuple[StreamState, StreamState]:
        """Return the states with the watermarks at an epoch's start and end; ``tops`` are by split."""
        policy = self._definition.policy
        opened_state = open_epoch(before, policy, tops)
        closed_state = close_epoch(opened_state, policy, tops, counts=slice_.counts)
        if isinstance(slice_.input, NoInput):
            value = raised_watermark(slice_.input, closed_state, self.dataflow.operators)
            closed_state = replace(closed_state, value=value)
        return opened_state, closed_state

    def _latest(self, now: datetime, *, timed: bool) -> int | None:
        """Return the latest accepted event time, in ticks; None if the definition sets no limit."""
        ahead = self._definition.max_ahead
        if ahead is None:
            return None
        if isinstance(ahead, int) or not timed:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: watermark.max_ahead: expected no such key (only "
                f"timestamps are compared with a clock), found {ahead}. Remove it"
            )
        return ticks(after(now, ahead))

    @cached_property
    def emission(self) -> SortedRows:
        """Emission for the operator of the definition."""
        return emission_of(self.dataflow, self.buffer)

    @cached_property
    def buffer(self) -> Buffer:
        """Buffer of the stream, with the pinned versions of its tables."""
        return Buffer(self.dataflow, self.sides, self.pinned)

    def _check_limits(self, slice_: EpochSlice, epoch: Epoch) -> None:
        """Raise if rows are late against the definition, or too many would wait."""
        definition, name, judgement = self._definition, self.dataflow.name, slice_.judged
        late, waiting = judgement.tally.late, judgement.tally.buffered
        if are_refused(definition.late, late):
            raise late_rows_error(name, slice_.number, late, _splits_with_late_rows(epoch))
        check_buffer(
            name,
            slice_.number,
            self.dataflow.operators,
            judgement.after,
            waiting=waiting,
            count_for_splits=lambda: self.emission.above(epoch),
            most=definition.buffer.max_rows,
        )

    def epoch(self, spark: SparkSession, slice_: EpochSlice, pinned: str) -> Epoch:
        """Return the epoch of a judged slice, with its rows."""
        judgement = slice_.judged
        rows = self._rows(spark, slice_, pinned)
        type_name = R.time_type(rows, self._definition, self.dataflow.name)
        marked = R.marked(rows, self._definition, type_name, judgement.latest)
        if judgement.tally.late:
            judged = R.judged(marked, judgement.bounds, judgement.timeout, one_chunk=slice_.input.one_chunk)
        else:
            judged = R.none_late(marked)
        names = source_columns(pinned_struct(pinned).names)
        value, ends = judgement.after.value, _ends(slice_)
        return Epoch(slice_.number, judged, judgement.before, value, type_name, names, ends)

    def _rows(self, spark: SparkSession, slice_: EpochSlice, pinned: str) -> DataFrame:
        """Return the rows of an epoch's input, with the pinned columns and ``VERSION``."""
        from pyspark.sql import functions as F

        if not slice_.reads_nothing:
            return self.epochs.rows(spark, slice_.input, pinned)
        rows = spark.createDataFrame([], pinned_struct(pinned))
        return rows.withColumn(VERSION, F.lit(0).cast("long"))

    def no_epoch(self, spark: SparkSession, pinned: str) -> Epoch:
        """Return an epoch without rows, from which a query shows its columns."""
        struct = pinned_struct(pinned)
        rows = spark.createDataFrame([], struct)
        type_name = R.time_type(rows, self._definition, self.dataflow.name)
        marked = R.marked(rows, self._definition, type_name, None)
        return Epoch(0, R.none_late(marked), StreamState(), None, type_name, source_columns(struct.names))


def _state_after(
    epoch: Epoch,
    closed_state: StreamState,
    decision: Decision,
    slice_: EpochSlice,
    quarantined: int,
    now: datetime,
) -> StreamState:
    """Return the state at an epoch's end: the new watermarks, and the effect of its rows."""
    before = epoch.before
    emptied = {segment.name for segment in before.segments} - {segment.name for segment in decision.segments}
    return replace(
        closed_state,
        segments=decision.segments,
        epoch=epoch.number,
        position=before.position if isinstance(slice_.input, NoInput) else slice_.input.position,
        emptied=tuple(sorted(emptied)),
        late=before.late + decision.late,
        quarantined=before.quarantined + quarantined,
        drained=closed_state.value,
        carry=decision.carry,
        flush=None if slice_.reads_nothing else before.flush,
        heard_at=now if slice_.input.files else before.heard_at,
    )


def _ends(slice_: EpochSlice) -> bool:
    """Return whether rows leave as if no row came after the epoch."""
    return isinstance(slice_.input, NoInput) and slice_.input.ends


def rows_read(before: StreamState, value: EventTime | None) -> int:
    """Return the number of rows in the segments that an epoch reads, by its global watermark."""
    return sum(segment.rows for segment in drain_segments(before.segments, value).read)


def _splits_with_late_rows(epoch: Epoch) -> Sequence[tuple[str, int]]:
    """Return the splits with the most late rows, most first, and the number of each."""
    from pyspark.sql import functions as F

    by_split = epoch.judged.where(R.is_late()).groupBy(R.SPLIT).agg(F.count("*").alias("rows"))
    most_late = by_split.orderBy(F.desc("rows"), R.SPLIT).limit(_SPLITS_SHOWN).collect()
    return [(row[R.SPLIT], row["rows"]) for row in most_late]


def _any_late(row: Any, bound: EventTime | None) -> bool:
    """Return whether a split has rows below its bound, or below the watermark after earlier chunks.

    ``row`` is one of :func:`resources.kinds.stream.judged_rows.tops`.
    """
    return bool(row["behind"]) or (bound is not None and row["lowest"] < ticks(bound))
