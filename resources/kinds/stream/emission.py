"""What leaves a stream's buffer as the global watermark rises, and in which form: rows, windows, sessions, over-windows (docs/streams.md).

Rows wait until no open window needs them, so what a window is made of is always its rows, and any aggregate of Spark's will do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from partitions.stream.drain import carried, drained, leaves
from partitions.stream.event_time import EventTime, Span
from partitions.stream.operators import EPOCH, Aggregate, OverWindow, SessionWindows, one_of_splits
from partitions.stream.over import NUMBERING, Call, Reach
from partitions.stream.side_tables import CARRY
from partitions.stream.state import Carry, Segment, StreamState
from partitions.stream.ticks import LOWEST, event_time, span_ticks, ticks
from partitions.stream.windows import Hop
from resources.kinds.stream import rows as R
from resources.kinds.stream.buffer import Buffer
from resources.spark.failures import cause
from resources.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession, WindowSpec

_START, _END, _FIRST, _LAST, _NEW = (
    "_strandline_start",
    "_strandline_end",
    "_strandline_first",
    "_strandline_last",
    "_strandline_new",
)
_LATE, _KEPT, _CLOSES = "_strandline_late", "_strandline_kept", "_strandline_closes"
_HAS_LEFT, _PLACE, _ALL, _LEFT = (
    "_strandline_has_left",
    "_strandline_place",
    "_strandline_all",
    "_strandline_left",
)
_NUMBERS = {name: f"_strandline_{name}" for name in NUMBERING}
"""Columns of carried rows: whether the row has left, and its numbers if it has."""


@dataclass(frozen=True)
class Epoch:
    """An epoch whose rows are judged.

    Attributes:
        number: of it.
        judged: its rows, with the watermark that judges each.
        before: the state that it builds on.
        value: the global watermark after it.
        type_name: of the event time.
        columns: of the source, in their order, without ``_epoch``.
        ends: whether no row comes after it, as far as values look ahead.
    """

    number: int
    judged: DataFrame
    before: StreamState
    value: EventTime | None
    type_name: str
    columns: Sequence[str]
    ends: bool = False

    @property
    def spark(self) -> SparkSession:
        """The session that it is read with."""
        return self.judged.sparkSession

    @property
    def timed(self) -> bool:
        """Whether event times are timestamps."""
        return R.is_timed(self.type_name)

    @property
    def kept(self) -> DataFrame:
        """Its rows that are neither late nor quarantined: the source's columns, and event time in ticks."""
        return self.judged.where(R.is_kept()).select(*self.own, R.TIME)

    @property
    def own(self) -> list[Column]:
        """The source's columns."""
        from pyspark.sql import functions as F

        return [F.col(quoted(name)) for name in self.columns]

    def own_beside(self, *names: str) -> list[Column]:
        """The source's columns but those of these names, which a side table has itself."""
        return [
            column for name, column in zip(self.columns, self.own, strict=True) if name.lower() not in names
        ]


class Decision(NamedTuple):
    """What becomes of an epoch's rows.

    Attributes:
        late: how many are below their split's watermark.
        emitted: how many leave, also those that have waited.
        segments: of the buffer after it.
        carry: after it.
    """

    late: int
    emitted: int
    segments: tuple[Segment, ...]
    carry: Carry | None = None


class Emission(Protocol):
    """What leaves, and in which form."""

    def decide(self, epoch: Epoch) -> Decision:
        """Return what becomes of the rows."""
        ...

    def waiting(self, epoch: Epoch) -> DataFrame:
        """Return the epoch's own rows that wait, with the source's columns."""
        ...

    def rows(self, epoch: Epoch, *, small: bool) -> DataFrame:
        """Return the rows for the table, without ``_epoch``, in order and in parts that do not overlap.

        Args:
            epoch: with a value of None: no rows.
            small: whether one task sorts them.
        """
        ...

    def carry(self, epoch: Epoch) -> DataFrame | None:
        """Return the rows to carry, without ``_epoch``; None if the operator carries none."""
        ...

    def above(self, epoch: Epoch) -> int:
        """Return how many rows lie at or above the global watermark after an epoch: they wait for splits, all others for the operator."""
        ...


def emission_of(dataflow: Dataflow, buffer: Buffer) -> Emission:
    """Return what the definition says of the sorted rows."""
    match one_of_splits(dataflow.operators):
        case None:
            return SortedRows(dataflow, buffer)
        case OverWindow() as over:
            return OverRows(dataflow, buffer, over)
        case Aggregate(window=SessionWindows(gap=gap)) as aggregate:
            return SessionRows(dataflow, buffer, aggregate, gap)
        case Aggregate(window=window) as aggregate:
            assert not isinstance(window, SessionWindows)
            return WindowRows(dataflow, buffer, aggregate, Hop.of(window))


@dataclass(frozen=True)
class SortedRows:
    """The rows themselves, as they are below the global watermark.

    Attributes:
        dataflow: what the user declared.
        buffer: rows that wait.
    """

    dataflow: Dataflow
    buffer: Buffer

    def floor(self, value: EventTime | None) -> EventTime | None:
        """Return what rows must lie below to leave at a global watermark."""
        return value

    def decide(self, epoch: Epoch) -> Decision:
        """Return what becomes of the rows."""
        from pyspark.sql import functions as F

        floor = self.floor(epoch.value)
        judged = epoch.judged.select(
            F.lit(epoch.number).cast("long").alias(EPOCH),
            R.TIME,
            R.is_late().alias(_LATE),
            R.is_kept().alias(_KEPT),
        )
        read = drained(epoch.before.segments, floor).read
        whole = bool(read) and self.buffer.are_whole(read)
        if read:
            # What is not below the global watermark waits on: if no row is gone it need not be read to be counted.
            waited = self.buffer.rows(
                epoch.spark, epoch.type_name, read, below=epoch.value if whole else None
            )
            no, yes = F.lit(False).alias(_LATE), F.lit(True).alias(_KEPT)
            judged = judged.unionAll(waited.select(EPOCH, R.TIME, no, yes))
        kept, out = F.col(_KEPT), R.leaves(floor)
        return _decided(self.buffer, epoch, floor, judged, kept & out, kept & ~out, whole=whole)

    def waiting(self, epoch: Epoch) -> DataFrame:
        """Return the epoch's own rows at or above the floor."""
        return epoch.kept.where(~R.leaves(self.floor(epoch.value))).select(*epoch.own)

    def rows(self, epoch: Epoch, *, small: bool) -> DataFrame:
        """Return the rows below the global watermark, in the order of event time and ``order_by``."""
        definition = self.dataflow.stream
        out = self.below(epoch, epoch.value).select(*epoch.own)
        return R.in_order(out, (definition.event_time, *definition.order_by), small=small)

    def carry(self, epoch: Epoch) -> DataFrame | None:
        """Return None: the buffer has all that waits."""
        return None

    def above(self, epoch: Epoch) -> int:
        """Count them, in the epoch's own rows and in the buffer."""
        waits = ~R.leaves(epoch.value)
        held = [each for each in epoch.before.segments if not leaves(each.highest, epoch.value)]
        buffered = self.buffer.rows(epoch.spark, epoch.type_name, held).where(waits).count() if held else 0
        return epoch.kept.where(waits).count() + buffered

    def below(self, epoch: Epoch, bound: EventTime | None) -> DataFrame:
        """Return the rows of epoch and buffer below a bound, with event time in ticks."""
        rows = epoch.kept.where(R.leaves(bound))
        read = drained(epoch.before.segments, bound).read
        if not read:
            return rows
        waited = self.buffer.rows(epoch.spark, epoch.type_name, read, below=bound)
        return rows.unionByName(waited.select(*epoch.own, R.TIME))


def _decided(
    buffer: Buffer,
    epoch: Epoch,
    floor: EventTime | None,
    rows: DataFrame,
    leave: Column,
    wait: Column,
    *,
    whole: bool = False,
) -> Decision:
    """Count what becomes of rows in one job.

    Args:
        buffer: whose segments that have rows below the floor were read.
        epoch: of the rows.
        floor: what rows must lie below to leave.
        rows: the epoch's own and those that were read, each with its segment's number, its event time in ticks, and whether it is late.
        leave: whether a row leaves.
        wait: whether a row stays in the buffer, or comes into it.
        whole: whether of segments only rows below the global watermark were read, and the others are known to be there.
    """
    from pyspark.sql import functions as F

    stays = F.when(wait, F.col(R.TIME))
    counts = (
        rows.groupBy(EPOCH)
        .agg(
            F.count(F.when(F.col(_LATE), 1)).alias("late"),
            F.count(F.when(leave, 1)).alias("out"),
            F.count(stays).alias("stays"),
            F.min(stays).alias("lowest"),
            F.max(stays).alias("highest"),
        )
        .collect()
    )
    own = next((row for row in counts if row[EPOCH] == epoch.number), None)
    read = drained(epoch.before.segments, floor).read
    live, left = _live(buffer, epoch, read, counts, whole=whole)
    segments = carried(epoch.before.segments, floor, live, _written(epoch, own))
    return Decision(own["late"] if own else 0, left + (own["out"] if own else 0), segments)


def _written(epoch: Epoch, row: Any) -> tuple[Segment, ...]:
    """The segment of an epoch's own rows that wait."""
    if row is None or not row["stays"]:
        return ()
    lowest, highest = (event_time(row[which], timed=epoch.timed) for which in ("lowest", "highest"))
    return (Segment(str(epoch.number), row["stays"], lowest, highest, row["stays"]),)


def _live(
    buffer: Buffer, epoch: Epoch, read: Sequence[Segment], counts: Sequence[Any], *, whole: bool
) -> tuple[Mapping[str, tuple[int, EventTime]], int]:
    """Of segments that were read: rows that stay, and a time that none of them is below; and how many rows leave."""
    found = {str(row[EPOCH]): row for row in counts}
    live: dict[str, tuple[int, EventTime]] = {}
    left = 0
    for segment in read:
        row = found.get(segment.name)
        out, stays = (row["out"], row["stays"]) if row else (0, 0)
        above = 0
        if whole and not leaves(segment.highest, epoch.value):
            above = max(0, segment.rows - out - stays)
        buffer.check_held("buffer", segment.name, segment.rows, out + stays + above)
        left += out
        if row and stays:
            live[segment.name] = (stays + above, event_time(row["lowest"], timed=epoch.timed))
        elif above:
            assert epoch.value is not None
            live[segment.name] = (above, epoch.value)
    return live, left


@dataclass(frozen=True)
class WindowRows(SortedRows):
    """Tumbling and hopping windows: each once, when the global watermark reaches its end.

    Attributes:
        aggregate: what becomes of a window's rows.
        hop: the windows.
    """

    aggregate: Aggregate
    hop: Hop

    def floor(self, value: EventTime | None) -> EventTime | None:
        """Return from where windows are open: only rows below it are needed no more."""
        return None if value is None else self.hop.live_from(value)

    def rows(self, epoch: Epoch, *, small: bool) -> DataFrame:
        """Return the windows that close, by their end."""
        from pyspark.sql import functions as F

        value, before = epoch.value, epoch.before.drained
        until = None if value is None else self.hop.closed_until(value)
        if until is not None and before is not None and until <= before:
            until = None
        size, slide = span_ticks(self.hop.size), span_ticks(self.hop.slide)
        last = F.expr(f"{R.TIME} - pmod({R.TIME}, {slide}L)")
        first = F.expr(f"{R.TIME} - {size - slide}L - pmod({R.TIME} - {size}L, {slide}L)")
        starts = last if size == slide else F.explode(F.sequence(first, last, F.lit(slide).cast("long")))
        found = self.below(epoch, until).withColumn(_START, starts)
        found = found.withColumn(_END, F.col(_START) + size)
        if until is not None:
            found = found.where(F.col(_END) <= F.lit(ticks(until)).cast("long"))
        if before is not None:
            found = found.where(F.col(_END) > F.lit(ticks(before)).cast("long"))
        return _aggregated(self.aggregate, found, epoch.type_name, small=small)


def _aggregated(aggregate: Aggregate, rows: DataFrame, type_name: str, *, small: bool) -> DataFrame:
    """One row of each window and group, by the window's end."""
    from pyspark.sql import functions as F

    groups = [F.col(quoted(name)) for name in aggregate.group_by]
    values = [F.expr(text).alias(name) for name, text in aggregate.aggregates.items()]
    found = rows.groupBy(_START, _END, *groups).agg(*values)
    ends = [
        R.from_ticks(tick, type_name).alias(name)
        for tick, name in ((_START, "window_start"), (_END, "window_end"))
    ]
    named = [F.col(quoted(name)) for name in aggregate.aggregates]
    return R.in_order(found.select(*ends, *groups, *named), ("window_end", *aggregate.group_by), small=small)


@dataclass(frozen=True)
class SessionRows(SortedRows):
    """Sessions: each once, when the global watermark is above its last row and the gap.

    A row of the buffer belongs to a session that is closed already if that session's last row and the gap lie below the global watermark of
    the epoch before. Its other rows may be gone by then: what is left of a closed session never ends later than it did, and lies further
    than the gap from every other session of its group.

    Attributes:
        aggregate: what becomes of a session's rows.
        gap: between two sessions.
    """

    aggregate: Aggregate
    gap: Span

    def decide(self, epoch: Epoch) -> Decision:
        """Return what becomes of the rows."""
        from pyspark.sql import functions as F

        no, closes = F.lit(False), self._closes(epoch)
        kept = self._in_sessions(epoch).select(
            EPOCH, R.TIME, no.alias(_LATE), closes.alias(_CLOSES), (~closes).alias(_KEPT)
        )
        late = epoch.judged.where(R.is_late()).select(
            F.lit(epoch.number).cast("long"), R.TIME, F.lit(True), no, no
        )
        return _decided(self.buffer, epoch, epoch.value, kept.unionAll(late), F.col(_CLOSES), F.col(_KEPT))

    def waiting(self, epoch: Epoch) -> DataFrame:
        """Return the epoch's own rows of sessions that are open."""
        from pyspark.sql import functions as F

        found = self._in_sessions(epoch)
        return found.where((F.col(EPOCH) == epoch.number) & ~self._closes(epoch)).select(*epoch.own)

    def rows(self, epoch: Epoch, *, small: bool) -> DataFrame:
        """Return the sessions that close, by their last row and the gap."""
        from pyspark.sql import functions as F

        found = self._in_sessions(epoch).where(self._closes(epoch))
        found = found.withColumn(_START, F.col(_FIRST)).withColumn(_END, F.col(_LAST) + span_ticks(self.gap))
        return _aggregated(self.aggregate, found, epoch.type_name, small=small)

    def _closes(self, epoch: Epoch) -> Column:
        """Whether a row's session closes."""
        return self._ends_before(epoch.value)

    def _ends_before(self, value: EventTime | None) -> Column:
        from pyspark.sql import functions as F

        if value is None:
            return F.lit(False)
        return F.col(_LAST) < F.lit(max(ticks(value) - span_ticks(self.gap), LOWEST)).cast("long")

    def _in_sessions(self, epoch: Epoch) -> DataFrame:
        """Rows of epoch and buffer with the first and last event time of their session, but those of sessions that were closed before."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        rows = epoch.kept.withColumn(EPOCH, F.lit(epoch.number).cast("long"))
        read = drained(epoch.before.segments, epoch.value).read
        if read:
            waited = self.buffer.rows(epoch.spark, epoch.type_name, read)
            rows = rows.unionByName(waited.select(*epoch.own, R.TIME, EPOCH))
        groups = [F.col(quoted(name)) for name in self.aggregate.group_by]
        # Rows of one event time may come in any order, so a session's beginning is looked up over all of them.
        by_time = Window.partitionBy(*groups).orderBy(R.TIME)
        step = F.expr(f"coalesce(try_subtract({R.TIME}, {_NEW}) > {span_ticks(self.gap)}L, true)")
        found = rows.withColumn(_NEW, F.lag(R.TIME).over(by_time)).withColumn(
            _NEW, F.when(step, F.col(R.TIME))
        )
        found = found.withColumn(_FIRST, F.max(_NEW).over(by_time)).drop(_NEW)
        found = found.withColumn(_LAST, F.max(R.TIME).over(Window.partitionBy(*groups, _FIRST)))
        before = epoch.before.drained
        return found if before is None else found.where(~self._ends_before(before))


@dataclass(frozen=True)
class OverRows(SortedRows):
    """Over-windows: each row once, with its values, when the farthest row that these look ahead to is below the global watermark.

    What later rows need of those below the global watermark is carried: the last rows of each partition, and their numbers.

    Attributes:
        over: the values.
    """

    over: OverWindow

    @property
    def _calls(self) -> Mapping[str, Call]:
        return {name: column.call for name, column in self.over.columns.items()}

    @property
    def _reach(self) -> Reach:
        found = Reach.of(self._calls.values())
        numbers = any(call.fn in NUMBERING for call in self._calls.values())
        return Reach(found.ahead, max(found.behind, int(numbers)))

    def _ahead(self, epoch: Epoch) -> int:
        """How many rows a row waits for: none if none comes."""
        return 0 if epoch.ends else self._reach.ahead

    def decide(self, epoch: Epoch) -> Decision:
        """Return what becomes of the rows."""
        from pyspark.sql import functions as F

        found, reach, before = super().decide(epoch), self._reach, epoch.before.carry
        leave_now = epoch.ends and before is not None and before.waiting
        if not (found.emitted or leave_now) or not (reach.ahead or reach.behind):
            return found._replace(carry=before)
        groups = [F.col(quoted(name)) for name in self.over.partition_by]
        counts = self._available(epoch).groupBy(*groups)
        each = counts.agg(
            F.count("*").alias("all"),
            F.count(F.when(F.col(_HAS_LEFT).isNotNull(), 1)).alias("old"),
            F.count(F.when(~F.coalesce(_HAS_LEFT, F.lit(False)), 1)).alias("new"),
        )
        waits = F.least("new", F.lit(self._ahead(epoch)))
        context = F.least(F.col("all") - waits, F.lit(reach.behind))
        row = each.agg(
            F.sum("old").alias("old"), F.sum(waits).alias("waits"), F.sum(waits + context).alias("rows")
        ).first()
        assert row is not None
        if before is not None:
            self.buffer.check_held(CARRY, before.epoch, before.rows, row["old"])
        waited = before.waiting if before else 0
        emitted = found.emitted + waited - row["waits"]
        return found._replace(emitted=emitted, carry=Carry(epoch.number, row["rows"], row["waits"]))

    def rows(self, epoch: Epoch, *, small: bool) -> DataFrame:
        """Return the rows that leave, with their values."""
        from pyspark.sql import functions as F

        placed, definition = self._placed(epoch), self.dataflow.stream
        within = self._within(epoch)
        for number, call in enumerate(self._calls.values()):
            placed = placed.withColumn(f"_strandline_value_{number}", _value(call, within))
        leaving = placed.where(~F.col(_HAS_LEFT) & (F.col(_PLACE) <= F.col(_ALL) - self._ahead(epoch)))
        values = [F.col(f"_strandline_value_{number}").alias(name) for number, name in enumerate(self._calls)]
        out = leaving.select(*epoch.own, *values)
        return R.in_order(out, (definition.event_time, *definition.order_by), small=small)

    def carry(self, epoch: Epoch) -> DataFrame | None:
        """Return the last rows of each partition, with the numbers of those that have left."""
        from pyspark.sql import functions as F

        reach, placed = self._reach, self._placed(epoch)
        out = F.greatest(F.col(_LEFT), F.col(_ALL) - self._ahead(epoch))
        has_left = F.col(_PLACE) <= out
        numbers = [F.when(has_left, F.col(name)).alias(name) for name in _NUMBERS.values()]
        kept = placed.where(F.col(_PLACE) > out - reach.behind)
        return kept.select(*epoch.own, has_left.alias(_HAS_LEFT), *numbers)

    def _available(self, epoch: Epoch) -> DataFrame:
        """Carried rows, and those that came below the global watermark: their ``_HAS_LEFT`` is NULL."""
        from pyspark.sql import functions as F

        nulls = [F.lit(None).cast("long").alias(name) for name in _NUMBERS.values()]
        rows = self.below(epoch, epoch.value)
        rows = rows.select(*epoch.own, R.TIME, F.lit(None).cast("boolean").alias(_HAS_LEFT), *nulls)
        if epoch.before.carry is None:
            return rows
        held = self.buffer.carried(epoch.spark, epoch.type_name, epoch.before.carry)
        return rows.unionByName(held.select(*epoch.own, R.TIME, _HAS_LEFT, *_NUMBERS.values()))

    def _within(self, epoch: Epoch) -> WindowSpec:
        """Rows of a partition in order. Rows that ``order_by`` does not tell apart are ordered by all their columns, the same way each time."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        schema, ties = epoch.judged.schema, list[Any]()
        order_by = self.dataflow.stream.order_by
        ties += [F.col(quoted(name)).asc_nulls_first() for name in order_by]
        for name in epoch.columns:
            kind = schema[name].dataType.typeName()
            column = F.col(quoted(name))
            ties.append(
                F.to_json(F.struct(column)) if kind in ("array", "map", "struct", "variant") else column
            )
        groups = [F.col(quoted(name)) for name in self.over.partition_by]
        return Window.partitionBy(*groups).orderBy(R.TIME, *ties)

    def _placed(self, epoch: Epoch) -> DataFrame:
        """Available rows with their place in the partition, how many it has and how many of them have left, and their numbers."""
        from pyspark.sql import Window
        from pyspark.sql import functions as F

        groups = [F.col(quoted(name)) for name in self.over.partition_by]
        whole, within = Window.partitionBy(*groups), self._within(epoch)
        tied = Window.partitionBy(*groups, R.TIME)
        number, rank, dense = (F.col(_NUMBERS[name]) for name in NUMBERING)
        left = F.coalesce(F.col(_HAS_LEFT), F.lit(False))
        rows = self._available(epoch).withColumn(_HAS_LEFT, left)
        rows = rows.withColumn(_PLACE, F.row_number().over(within).cast("long"))
        rows = rows.withColumn(_ALL, F.count("*").over(whole))
        rows = rows.withColumn(_LEFT, F.count(F.when(F.col(_HAS_LEFT), 1)).over(whole))
        base = F.coalesce(F.max(number).over(whole), F.lit(0))
        rows = rows.withColumn(_NUMBERS["row_number"], base + F.col(_PLACE) - F.col(_LEFT))
        first = F.coalesce(F.max(rank).over(tied), F.min(number).over(tied))
        rows = rows.withColumn(_NUMBERS["rank"], first)
        times = F.dense_rank().over(Window.partitionBy(*groups).orderBy(R.TIME)).cast("long")
        rows = rows.withColumn(_START, times)
        known = F.coalesce(F.max(dense).over(whole), F.lit(0))
        passed = F.coalesce(F.max(F.when(F.col(_HAS_LEFT), F.col(_START))).over(whole), F.lit(0))
        return rows.withColumn(_NUMBERS["dense_rank"], known + F.col(_START) - passed)


def _value(call: Call, within: WindowSpec) -> Column:
    from pyspark.sql import functions as F

    if call.fn in NUMBERING:
        return F.col(_NUMBERS[call.fn])
    column = F.col(quoted(call.column))
    match call.fn:
        case "lag":
            return F.lag(column, call.offset).over(within)
        case "lead":
            return F.lead(column, call.offset).over(within)
        case "max":
            return F.max(column).over(within.rowsBetween(*call.frame))
    return F.sum(column).over(within.rowsBetween(*call.frame))


@contextmanager
def refusals_of_spark(dataflow: Dataflow) -> Iterator[None]:
    """Have what Spark refuses of an operator told as the definition's fault.

    Raises:
        ConfigurationError: in Spark's words.
    """
    from pyspark.errors import AnalysisException, ParseException

    try:
        yield
    except (AnalysisException, ParseException) as error:
        told = cause(error).rstrip(" .;")
        raise ConfigurationError(
            f"dataflow {dataflow.name}: operators: Spark refuses {dataflow.operators[0].type}: {told}. Expected columns of the source and"
            " Spark SQL over them"
        ) from error
