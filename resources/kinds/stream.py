"""The stream kind: epochs of new input, judged by one event-time watermark for each split (docs/streams.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from partitions.dataflow import Dataflow
from partitions.errors import BadPart, ConfigurationError, NeedsDecision, StrandlineError
from partitions.load import Append, Load
from partitions.plan import Plan, counted
from partitions.predicate import Among, Between, Predicate, any_of
from partitions.request import DUE, Forced, LateOnly, Request
from partitions.sentinels import Watermark, deserialise, serialise
from partitions.stream.definition import StreamWatermark
from partitions.stream.drain import carried, drained
from partitions.stream.epoch import closed, opened
from partitions.stream.event_time import EventTime
from partitions.stream.plan import Chunk, plan
from partitions.stream.slices import EpochSlice, Input, Judgement, Tally
from partitions.stream.state import Segment, StreamState
from partitions.stream.ticks import event_time, span_ticks, ticks
from resources.kinds import stream_rows as R
from resources.kinds.kind import Aside
from resources.kinds.states import state_of
from resources.sources.schema import pinned_struct
from resources.sources.source import HasChunks, HasVersions, PinsRows
from resources.sources.table import TableRows
from resources.sql import quoted
from resources.tables.table import Appended, Table
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.lists import ListKind, StoredList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EPOCH = "_epoch"
"""The column with the number of the epoch that a row came with, or left the buffer in."""

LATE, QUARANTINE, BUFFER = "late", "quarantine", "buffer"
"""The side tables of a stream: ``<table>__late`` and so on."""

EPOCH_SPLITS = ListKind("epoch", 1, ("split", "bound"))
"""One row a split that has rows, with the watermark before the epoch as sentinel JSON; the head says what is read and what became of it."""

_SMALL = 128 * 2**20
"""Bytes that one task sorts."""
_SHOWN = 3
_LOWEST = "_strandline_lowest"


def side_tables(dataflow: Dataflow) -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Return the names of a dataflow's side tables and the columns that they are partitioned by; none if it is no stream over splits."""
    watermark = dataflow.watermark
    if not isinstance(watermark, StreamWatermark) or watermark.engine != "splits":
        return {}
    names = [LATE, QUARANTINE, BUFFER] if watermark.late == "divert" else [QUARANTINE, BUFFER]
    return {name: (f"{dataflow.table}__{name}", (EPOCH,) if name == BUFFER else ()) for name in names}


@dataclass(frozen=True)
class StreamKind:
    """Epochs of a table's versions.

    Attributes:
        dataflow: what the user declared.
        rows: its source.
        chunks: the same source, as its chunks are read.
        sides: the side tables, by their short names.
    """

    dataflow: Dataflow
    rows: PinsRows
    chunks: HasChunks
    sides: Mapping[str, Table]

    @property
    def _definition(self) -> StreamWatermark:
        return self.dataflow.stream

    @property
    def remarks(self) -> Sequence[str]:
        """None: the plan says it all."""
        return ()

    @property
    def replans_after_load(self) -> bool:
        """A run reads what was there when it began."""
        return False

    @property
    def one_query(self) -> bool:
        """Watermarks stand in the query."""
        return False

    @property
    def pacing(self) -> timedelta:
        """None."""
        return timedelta(0)

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[EpochSlice]:
        """Look at the source's log, and cut epochs.

        Raises:
            ConfigurationError: something else than what is due is asked for.
            NeedsDecision: the source is another table now, or does not tell what was not read yet.
            SourceError: the source is not there, or has changed rows.
        """
        number, name = entry.number if entry else 0, self.dataflow.name
        if isinstance(request, LateOnly):
            return Plan(name, "stream", number, now, "a stream has late rows, and no late files")
        if isinstance(request, Forced):
            raise ConfigurationError(
                f"dataflow {name}: expected a run of what is due, found a forced one; a stream watermark has no windows"
            )
        state = state_of(StreamState, self.dataflow, entry)
        since = state.position.get("version")
        try:
            found = self.chunks.chunks(since)
        except NeedsDecision as gone:
            raise self._other_source(gone.message, gone.code) from gone
        known = state.position.get("table", found.table)
        if found.table != known or (since is not None and found.newest < since):
            raise self._other_source(
                f"expected table {self.dataflow.source.shown} of which versions up to {since} were read, found another table of that name, or an"
                " older version of it",
                "source_replaced",
            )
        chunks = [
            Chunk(each.version, len(each.files), sum(file.bytes for file in each.files), each.whole)
            for each in found.versions
        ]
        return plan(self._definition, state, found.table, chunks, now, dataflow=name, number=number)

    def _other_source(self, message: str, code: str) -> NeedsDecision:
        name = self.dataflow.name
        return NeedsDecision(
            f"dataflow {name}: {message}. Reset the state with --replace to sort what the table holds now",
            code=code,
            choices=(f"strandline state reset {name} --replace --reason TEXT",),
        )

    def covers(self, state: str, other: str) -> bool:
        """Compare the global watermark, the splits that both have, and the source's position."""
        after, before = StreamState.of(deserialise(state)), StreamState.of(deserialise(other))
        both = [name for name in before.splits if name in after.splits]
        pairs = [(after.splits[name].watermark, before.splits[name].watermark) for name in both]
        pairs.append((after.value, before.value))
        same = after.position.get("table") == before.position.get("table")
        read = after.position.get("version", -1), before.position.get("version", -1)
        return all(old is None or (new is not None and new >= old) for new, old in pairs) and (
            not before.position or not same or read[0] >= read[1]
        )

    def modified(self, slice_: EpochSlice, before: Watermark, now: datetime) -> int | None:
        """None: a table's log tells no clock that is the source's."""
        return None

    @property
    def list_kind(self) -> ListKind:
        """Splits, and what is read."""
        return EPOCH_SPLITS

    def slice_to_rows(self, slice_: EpochSlice) -> StoredList:
        """The splits with the watermarks that judge them, and the head."""
        found = slice_.judged
        head = {
            "number": slice_.number,
            "input": list(slice_.input),
            "counts": slice_.counts,
            "timeout": found.timeout,
            "latest": found.latest,
            "tally": list(found.tally),
        }
        rows = [[name, serialise({"at": at})] for name, at in found.bounds.items()]
        return StoredList(EPOCH_SPLITS, rows, head)

    def slice_from_rows(self, intent: Intent, stored: StoredList) -> EpochSlice:
        """The same epoch, judged by the same watermarks."""
        head = stored.head
        before, after = (StreamState.of(deserialise(text)) for text in (intent.before, intent.watermark))
        bounds = {name: deserialise(text)["at"] for name, text in stored.rows}
        judgement = Judgement(before, after, bounds, head["timeout"], head["latest"], Tally(*head["tally"]))
        return EpochSlice(
            head["number"],
            {"epoch": before.epoch, "global": before.value},
            Input(*head["input"]),
            head["counts"],
            judgement,
        )

    def pin(self, spark: SparkSession, pending: Sequence[EpochSlice]) -> str | None:
        """What the source says of its columns."""
        return self.rows.pin(spark)

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare the source's columns with what was pinned."""
        self.rows.check_schema(spark, pinned, self.dataflow.name)

    def fix(self, slice_: EpochSlice) -> EpochSlice:
        """As it is: :meth:`fix_on` does it."""
        return slice_

    def check_unchanged(self, slice_: EpochSlice) -> None:
        """Versions do not change."""

    # -- one epoch ------------------------------------------------------------------------------------------------

    def fix_on(
        self, spark: SparkSession, entry: Entry | None, slice_: EpochSlice, now: datetime
    ) -> EpochSlice:
        """Look at the epoch's input, and decide what becomes of each row and of each watermark.

        Raises:
            ConfigurationError: a column is not there, or of a type that is no event time.
            StrandlineError: code ``late_rows``: there are late rows, and must not be; code ``buffer_full``: more rows would wait than may.
            NeedsDecision: code ``buffer_lost``: the buffer does not hold the rows that the state says.
        """
        definition, before = self._definition, state_of(StreamState, self.dataflow, entry)
        number = entry.number + 1 if entry else 1
        rows = self.chunks.read_chunks(spark, self._chunks_of(slice_), None)
        type_name = R.time_type(rows, definition, self.dataflow.name)
        timed = R.is_timed(type_name)
        latest = self._latest(now, timed=timed)
        marked = R.marked(rows, definition, type_name, latest)
        found = R.tops(marked).collect()
        quarantined = sum(row["rows"] for row in found if row[R.SPLIT] is None)
        tops = {
            row[R.SPLIT]: event_time(row["top"], timed=timed) for row in found if row[R.SPLIT] is not None
        }
        begun = opened(before, definition.policy, tops)
        ended = closed(begun, definition.policy, tops, counts=slice_.counts)
        bounds = {name: begun.bound(name) for name in sorted(tops)}
        timeout = span_ticks(definition.timeout)
        rows_in = sum(row["rows"] for row in found)
        judged = R.judged(marked, bounds, timeout, one_chunk=slice_.input.first == slice_.input.last)
        late, straight, fresh = self._counts(judged, str(number), ended.value, timed=timed)
        live, left = self._buffered(spark, before, ended.value, timed=timed)
        segments = carried(before.segments, ended.value, live, fresh)
        kept = tuple(segment for segment in segments if segment.rows)
        gone = {segment.name for segment in before.segments} - {segment.name for segment in kept}
        after = replace(
            ended,
            segments=kept,
            epoch=number,
            position=slice_.position,
            emptied=tuple(sorted(gone)),
            late=before.late + late,
            quarantined=before.quarantined + quarantined,
        )
        tally = Tally(rows_in, straight + left, late, quarantined, sum(segment.rows for segment in kept))
        fixed = replace(
            slice_,
            number=number,
            before={"epoch": before.epoch, "global": before.value},
            judgement=Judgement(before, after, bounds, timeout, latest, tally),
        )
        self._check_limits(fixed, judged if late else None)
        return fixed

    def _latest(self, now: datetime, *, timed: bool) -> int | None:
        ahead = self._definition.max_ahead
        if ahead is None:
            return None
        if isinstance(ahead, int) or not timed:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: watermark.max_ahead: expected no such key (only timestamps are compared with a clock), found {ahead}"
            )
        return ticks(now + ahead)

    def _counts(
        self, judged: DataFrame, name: str, value: EventTime | None, *, timed: bool
    ) -> tuple[int, int, tuple[Segment, ...]]:
        """How many rows are late, how many leave at once, and the segment of those that wait."""
        from pyspark.sql import functions as F

        kept, out = R.is_kept(), R.leaves(value)
        waits = F.when(kept & ~out, F.col(R.TIME))
        row = judged.agg(
            F.count(F.when(R.is_late(), 1)).alias("late"),
            F.count(F.when(kept & out, 1)).alias("out"),
            F.count(waits).alias("waits"),
            F.min(waits).alias("lowest"),
            F.max(waits).alias("highest"),
        ).first()
        assert row is not None
        if not row["waits"]:
            return row["late"], row["out"], ()
        span = (event_time(row[which], timed=timed) for which in ("lowest", "highest"))
        return row["late"], row["out"], (Segment(name, row["waits"], 0, *span),)

    def _buffered(
        self, spark: SparkSession, before: StreamState, value: EventTime | None, *, timed: bool
    ) -> tuple[Mapping[str, tuple[int, EventTime]], int]:
        """Of segments that are read: rows that stay and their lowest event time; and how many rows leave."""
        from pyspark.sql import functions as F

        read = drained(before.segments, value).read
        if not read:
            return {}, 0
        rows = self._rows_of(spark, read)
        out, stays = R.leaves(value), F.when(~R.leaves(value), F.col(R.TIME))
        found = {
            str(row[EPOCH]): row
            for row in rows.groupBy(EPOCH)
            .agg(
                F.count(F.when(out, 1)).alias("out"),
                F.count(stays).alias("stays"),
                F.min(stays).alias("lowest"),
            )
            .collect()
        }
        for segment in read:
            row = found.get(segment.name)
            held = row["out"] + row["stays"] if row else 0
            if held != segment.rows:
                name = self.dataflow.name
                raise NeedsDecision(
                    f"dataflow {name}: expected {counted(segment.rows, 'row')} of epoch {segment.name} in table {self.dataflow.table}__{BUFFER}, found"
                    f" {held:,}: rows that were read wait there, and nothing else has them. Restore the table; or reset the state with --replace to read"
                    " the source again",
                    code="buffer_lost",
                    choices=(f"strandline state reset {name} --replace --reason TEXT",),
                )
        live = {
            name: (row["stays"], event_time(row["lowest"], timed=timed))
            for name, row in found.items()
            if row["stays"]
        }
        return live, sum(row["out"] for row in found.values())

    def _rows_of(self, spark: SparkSession, segments: Sequence[Segment]) -> DataFrame:
        """The live rows of segments of the buffer, with their event time in ticks: those at or above the segment's lowest."""
        from pyspark.sql import functions as F

        table = self.sides[BUFFER]
        asked = Among(EPOCH, tuple(int(segment.name) for segment in segments))
        rows = table.read(spark, table.newest_version(), asked).where(F.col(EPOCH).isin(list(asked.values)))
        type_name = R.time_type(rows, self._definition, self.dataflow.name)
        timed = rows.withColumn(R.TIME, R.ticks_of(self._definition.event_time, type_name))
        lowest = [(int(segment.name), ticks(segment.lowest)) for segment in segments]
        live = F.broadcast(spark.createDataFrame(lowest, f"{EPOCH} long, {_LOWEST} long"))
        return timed.join(live, EPOCH).where(F.col(R.TIME) >= F.col(_LOWEST)).drop(_LOWEST)

    def _check_limits(self, slice_: EpochSlice, judged: DataFrame | None) -> None:
        definition, name, found = self._definition, self.dataflow.name, slice_.judged
        if judged is not None and definition.late == "fail":
            from pyspark.sql import functions as F

            by_split = judged.where(R.is_late()).groupBy(R.SPLIT).agg(F.count("*").alias("rows"))
            worst = by_split.orderBy(F.desc("rows"), R.SPLIT).limit(_SHOWN).collect()
            splits = ", ".join(
                f"{counted(row['rows'], 'row')} of {_split_in_words(row[R.SPLIT])}" for row in worst
            )
            raise StrandlineError(
                f"dataflow {name}: {counted(found.tally.late, 'row')} of epoch {slice_.number} came late, and late is fail: {splits}. Nothing of this"
                " epoch was committed. Raise watermark.timeout, or set watermark.late to divert or drop",
                code="late_rows",
            )
        most = definition.buffer.max_rows
        if found.tally.buffered > most:
            marks = [
                (split.watermark, split_name)
                for split_name, split in found.after.splits.items()
                if split.watermark is not None
            ]
            awaited = sorted(
                split_name for split_name, split in found.after.splits.items() if split.watermark is None
            )
            slowest = (
                awaited[0] if awaited and found.after.value is None else min(marks, default=(None, ""))[1]
            )
            raise StrandlineError(
                f"dataflow {name}: {counted(found.tally.buffered, 'row')} would wait for {_split_in_words(slowest)}, the slowest, after epoch"
                f" {slice_.number}: more than watermark.buffer.max_rows, {most:,}. Nothing of this epoch was committed. Mend the split, remove it, or"
                " raise the limit",
                code="buffer_full",
            )

    def _chunks_of(self, slice_: EpochSlice) -> Sequence[Appended]:
        given = slice_.input
        since = None if given.whole else given.first - 1 if given.first else None
        found = [
            each for each in self.chunks.chunks(since, given.last).versions if each.version >= given.first
        ]
        if not found or found[0].whole != given.whole or len(found) != given.last - given.first + 1:
            raise self._other_source(
                f"expected versions {given.first} to {given.last} of table {self.dataflow.source.shown}, found others in its log",
                "versions_gone",
            )
        return found

    # -- its rows -------------------------------------------------------------------------------------------------

    def _judged_rows(self, spark: SparkSession, slice_: EpochSlice, pinned: str) -> tuple[DataFrame, str]:
        found = slice_.judged
        rows = self.chunks.read_chunks(spark, self._chunks_of(slice_), pinned)
        type_name = R.time_type(rows, self._definition, self.dataflow.name)
        marked = R.marked(rows, self._definition, type_name, found.latest)
        one_chunk = slice_.input.first == slice_.input.last
        return R.judged(marked, found.bounds, found.timeout, one_chunk=one_chunk), type_name

    def read(self, spark: SparkSession, slice_: EpochSlice | None, pinned: str) -> DataFrame:
        """The rows that leave in an epoch: in the order of event time and ``order_by``, in parts that do not overlap."""
        from pyspark.sql import functions as F

        struct = pinned_struct(pinned)
        number = slice_.number if slice_ is not None else 0
        epoch = F.lit(number).cast("long").alias(EPOCH)
        columns = [F.col(quoted(name)) for name in struct.names]
        if slice_ is None:
            return spark.createDataFrame([], struct).select(*columns, epoch)
        found = slice_.judged
        judged, _ = self._judged_rows(spark, slice_, pinned)
        value = found.after.value
        out = judged.where(R.is_kept() & R.leaves(value)).select(*columns, epoch)
        read = drained(found.before.segments, value).read
        if read:
            waited = self._rows_of(spark, read)
            out = out.unionByName(waited.where(R.leaves(value)).select(*columns, epoch))
        small = slice_.input.bytes + sum(segment.bytes for segment in read) < _SMALL
        return R.in_order(out, (self._definition.event_time, *self._definition.order_by), small=small)

    def load(self, slice_: EpochSlice, rows: DataFrame) -> Load:
        """Rows are only added."""
        return Append()

    def aside(self, spark: SparkSession, slice_: EpochSlice, pinned: str) -> Sequence[Aside]:
        """The rows that wait, those that are late, and those that are quarantined; what an abandoned number wrote makes room."""
        from pyspark.sql import functions as F

        found, number = slice_.judged, slice_.number
        columns = [F.col(quoted(name)) for name in pinned_struct(pinned).names]
        epoch = F.lit(number).cast("long").alias(EPOCH)
        judged, type_name = self._judged_rows(spark, slice_, pinned)
        waits = any(segment.name == str(number) for segment in found.after.segments)
        waiting = judged.where(R.is_kept() & ~R.leaves(found.after.value)).select(*columns, epoch)
        above: Predicate = Between(EPOCH, found.before.epoch, None, lower_inclusive=False)
        emptied = tuple(int(name) for name in found.before.emptied)
        nothing_else = number == found.before.epoch + 1
        asides = [
            Aside(
                BUFFER,
                waiting if waits else None,
                any_of((above, Among(EPOCH, emptied))) if emptied else above,
                none_there=nothing_else and not emptied,
            )
        ]
        if LATE in self.sides:
            split = F.col(R.SPLIT).alias("_split")
            mark = R.from_ticks(R.JUDGED_BY, type_name).alias("_watermark")
            late = judged.where(R.is_late()).select(*columns, split, mark, epoch)
            asides.append(Aside(LATE, late if found.tally.late else None, above, nothing_else))
        bad = judged.where(F.col(R.REASON).isNotNull())
        quarantined = bad.select(*columns, F.col(R.REASON).alias("_reason"), epoch)
        asides.append(
            Aside(QUARANTINE, quarantined if found.tally.quarantined else None, above, nothing_else)
        )
        return asides

    def find_bad_part(
        self, spark: SparkSession, slice_: EpochSlice, pinned: str, error: Exception
    ) -> BadPart | None:
        """Return the version that cannot be read; an epoch has no other parts."""
        if isinstance(self.rows, HasVersions):
            return self.rows.find_unreadable(spark, slice_.input.last, error)
        return None

    def slice_without(self, slice_: EpochSlice, bad: BadPart) -> None:
        """None: a run stops."""
        return


def open_stream(dataflow: Dataflow, source: TableRows, sides: Mapping[str, Table]) -> StreamKind:
    """Return the kind of a stream over a table's versions."""
    return StreamKind(dataflow, source, source, sides)


def _split_in_words(name: str) -> str:
    return f"split {name}" if name != R.ONLY_SPLIT else "the stream's only split"
