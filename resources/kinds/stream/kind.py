"""The stream kind: epochs of new input, judged by one event-time watermark for each split (docs/streams.md)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from typing_extensions import override

from partitions.dataflow import Dataflow
from partitions.errors import BadPart, ConfigurationError, NeedsDecision, SourceError, StrandlineError
from partitions.loads import Append, Load
from partitions.plan import Plan
from partitions.predicate import Among, Between, Predicate, any_of
from partitions.request import DUE, Forced, LateOnly, Request
from partitions.sentinels import deserialise, serialise
from partitions.stream.definition import StreamWatermark
from partitions.stream.ending import pending
from partitions.stream.inputs import input_of
from partitions.stream.late_rows import are_diverted
from partitions.stream.operators import EPOCH
from partitions.stream.plan import plan
from partitions.stream.side_table_names import BUFFER, CARRY, LATE, QUARANTINE
from partitions.stream.slices import EpochSlice, Judgement, Tally
from partitions.stream.state import StreamState
from partitions.target import HELPER_PREFIX
from resources.kinds.contract.bad_parts import BadParts
from resources.kinds.contract.planning import Planning
from resources.kinds.contract.reading import Reading, SliceBase
from resources.kinds.contract.stored_slices import StoredSlices
from resources.kinds.contract.writing import Aside, Writing
from resources.kinds.state_of_entry import state_of
from resources.kinds.stream import judged_rows as R
from resources.kinds.stream.emission import refusals_of_spark
from resources.kinds.stream.epoch import Epoch
from resources.kinds.stream.epochs import Epochs, Waiting
from resources.kinds.stream.judging import Judging, rows_read
from resources.sources.schema import pinned_struct
from resources.sql import quoted
from resources.tables.contract.table import Table
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.lists import ListKind, StoredList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EPOCH_SPLITS = ListKind("epoch", 2, ("split", "bound"))
"""One row a split that has rows, with the watermark before the epoch as sentinel JSON; the head says what is read and what became of it."""

_SMALL, _FEW = 128 * 2**20, 1_000_000
"""Bytes of input, and rows that leave, which one task sorts."""
_SPLIT, _WATERMARK, _REASON = "_split", "_watermark", "_reason"
"""Columns of side tables."""


@dataclass(frozen=True)
class StreamKind(
    Planning[EpochSlice],
    StoredSlices[EpochSlice],
    Reading[EpochSlice],
    Writing[EpochSlice],
    BadParts[EpochSlice],
):
    """Epochs of what a source adds.

    Attributes:
        dataflow: what the user declared.
        epochs: its source.
        sides: the side tables, by their short names.
    """

    replans_after_load: ClassVar[bool] = False
    """A run reads what was there when it began."""
    one_query: ClassVar[bool] = False
    """Watermarks stand in the query."""
    pacing: ClassVar[timedelta] = timedelta(0)

    dataflow: Dataflow
    epochs: Epochs
    sides: Mapping[str, Table]

    @cached_property
    def _judging(self) -> Judging:
        return Judging(self.dataflow, self.epochs, self.sides)

    @property
    def _definition(self) -> StreamWatermark:
        return self.dataflow.stream

    @property
    def remarks(self) -> Sequence[str]:
        """What the source has to say of what was read."""
        return self.epochs.remarks

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[EpochSlice]:
        """Look at the source, and cut epochs.

        Raises:
            ConfigurationError: something else than what is due is asked for.
            NeedsDecision: the source is another one now, or does not tell what was not read yet.
            SourceError: the source is not there, or has changed rows.
        """
        number, name = entry.number if entry else 0, self.dataflow.name
        if isinstance(request, LateOnly):
            return Plan(name, "stream", number, now, "a stream has late rows, and no late files")
        if isinstance(request, Forced):
            raise ConfigurationError(
                f"dataflow {name}: expected a run of what is due, found a forced one; a stream watermark has no windows"
            )
        state = known_state(self.dataflow, entry)
        found = self._waiting(entry, state, now)
        made = plan(
            self._definition,
            state,
            found.inputs,
            now,
            dataflow=name,
            number=number,
            held_back=found.held_back,
            operators=self.dataflow.operators,
        )
        slices = tuple(replace(slice_, since=found.since) for slice_ in made.slices)
        return replace(made, slices=slices, warnings=(*made.warnings, *found.warnings), calls=found.calls)

    def _waiting(self, entry: Entry | None, state: StreamState, now: datetime) -> Waiting:
        """What the source has; if it does not answer, rows that a decision lets out leave all the same."""
        try:
            return self.epochs.waiting(entry, state, now)
        except (SourceError, NeedsDecision) as error:
            if state.flush is None and pending(state) is None:
                raise
            return Waiting((), warnings=[f"new input is not looked for: {error.message}"])

    def covers(self, state: str, other: str) -> bool:
        """Compare the global watermark, the splits that both have, and the source's position."""
        after, before = StreamState.of(deserialise(state)), StreamState.of(deserialise(other))
        both = [name for name in before.splits if name in after.splits]
        pairs = [(after.splits[name].watermark, before.splits[name].watermark) for name in both]
        pairs.append((after.value, before.value))
        risen = all(old is None or (new is not None and new >= old) for new, old in pairs)
        return risen and self.epochs.covers(after, before)

    @property
    def list_kind(self) -> ListKind:
        """Splits, and what is read."""
        return EPOCH_SPLITS

    def to_rows(self, slice_: EpochSlice) -> StoredList:
        """The splits with the watermarks that judge them, and the head."""
        found = slice_.judged
        head = {
            "number": slice_.number,
            "input": slice_.input.to_plain(),
            "counts": slice_.counts,
            "timeout": found.timeout,
            "latest": found.latest,
            "tally": list(found.tally),
        }
        rows = [[name, serialise({"at": at})] for name, at in found.bounds.items()]
        return StoredList(EPOCH_SPLITS, rows, head)

    def from_rows(self, intent: Intent, stored: StoredList) -> EpochSlice:
        """The same epoch, judged by the same watermarks."""
        head = stored.head
        before, after = (StreamState.of(deserialise(text)) for text in (intent.before, intent.watermark))
        bounds = {name: deserialise(text)["at"] for name, text in stored.rows}
        judgement = Judgement(before, after, bounds, head["timeout"], head["latest"], Tally(*head["tally"]))
        return EpochSlice(
            head["number"],
            {"epoch": before.epoch, "global": before.value},
            input_of(head["input"]),
            head["counts"],
            judgement,
            deserialise(intent.since) if intent.since else None,
        )

    def pin(self, spark: SparkSession, pending: Sequence[EpochSlice]) -> str | None:
        """What the source says of its columns, if the operator can be applied to them."""
        pinned = self.epochs.pin(spark, pending)
        if pinned is not None:
            self._check_columns(spark, pinned)
        return pinned

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare the source's columns with what was pinned."""
        self.epochs.check_schema(spark, pinned)
        self._check_columns(spark, pinned)

    def _check_columns(self, spark: SparkSession, pinned: str) -> None:
        """Raise unless names of columns are told apart from each other, and from those of the queries."""
        taken = [name for name in pinned_struct(pinned).names if name.casefold().startswith(HELPER_PREFIX)]
        if taken:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: source: expected no column whose name begins with {HELPER_PREFIX}, found {', '.join(taken)}. Rename it where the"
                " source is made"
            )
        if not self.dataflow.operators:
            return
        with refusals_of_spark(self.dataflow):
            columns = self.read(spark, None, pinned).schema.names
        twice = sorted(
            {name for name in columns if [each.lower() for each in columns].count(name.lower()) > 1}
        )
        if twice:
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: operators: expected names that no column of the source has, found {', '.join(twice)}"
            )

    def check_unchanged(self, slice_: EpochSlice) -> None:
        """Compare files with what was listed; versions do not change."""
        if not slice_.reads_nothing:
            self.epochs.check_unchanged(slice_.input)

    # -- one epoch ------------------------------------------------------------------------------------------------

    def rows_of(self, slice_: EpochSlice) -> int:
        """The epoch's own, and those of segments that it reads."""
        found = slice_.judged
        return found.tally.rows_in + rows_read(found.before, found.after.value)

    def fix(self, slice_: EpochSlice, base: SliceBase) -> EpochSlice:
        """Look at the epoch's input, and decide what becomes of each row and of each watermark.

        Raises:
            BadPart: some of the input cannot be read.
            ConfigurationError: a column is not there, or of a type that is no event time.
            StrandlineError: code ``late_rows``: there are late rows, and must not be; code ``buffer_full``: more rows would wait than may.
            NeedsDecision: code ``buffer_lost``: the buffer does not hold the rows that the state says.
        """
        self.check_unchanged(slice_)
        with self._blaming(base.spark, slice_, base.pinned):
            return self._judging.judge(base.spark, base.entry, slice_, base.pinned, base.now)

    def check_fixed(self, slice_: EpochSlice, base: SliceBase) -> None:
        """Raise unless the buffer still holds the rows that an epoch was fixed on: they are counted once more.

        Raises:
            BadPart: some of the input cannot be read.
            NeedsDecision: code ``buffer_lost``.
        """
        with self._blaming(base.spark, slice_, base.pinned):
            self._judging.decide(self._judging.epoch(base.spark, slice_, base.pinned))

    @contextmanager
    def _blaming(self, spark: SparkSession, slice_: EpochSlice, pinned: str) -> Iterator[None]:
        """Have an error of Spark's told as that of the part of the input that cannot be read."""
        try:
            yield
        except StrandlineError:
            raise
        except Exception as error:
            if (bad := self.find(spark, slice_, pinned, error)) is None:
                raise
            raise bad from error

    def read(self, spark: SparkSession, slice_: EpochSlice | None, pinned: str) -> DataFrame:
        """The rows that leave in an epoch, or the windows that close: in order, in parts that do not overlap."""
        from pyspark.sql import functions as F

        if slice_ is None:
            epoch, small = self._judging.no_epoch(spark, pinned), True
        else:
            epoch = self._judging.epoch(spark, slice_, pinned)
            small = slice_.input.bytes < _SMALL and slice_.judged.tally.emitted < _FEW
        rows = self._judging.emission.rows(epoch, small=small)
        return rows.withColumn(EPOCH, F.lit(epoch.number).cast("long"))

    @override
    def load(self, slice_: EpochSlice, rows: DataFrame) -> Load:
        """Rows are only added."""
        return Append()

    def aside(self, spark: SparkSession, slice_: EpochSlice, pinned: str) -> Sequence[Aside]:
        """The rows that wait, those that are late, and those that are quarantined; what an abandoned number wrote makes room."""
        from pyspark.sql import functions as F

        found, number = slice_.judged, slice_.number
        read = self._judging.epoch(spark, slice_, pinned)
        judged = read.judged
        epoch = F.lit(number).cast("long").alias(EPOCH)
        definition = self._definition
        waits = any(segment.name == str(number) for segment in found.after.segments)
        # In the order of event time, so that later epochs read of a file only what lies below their global watermark; the columns that tell
        # which files these are come first, since statistics are kept of so many.
        at = F.col(quoted(definition.event_time))
        rest = [F.col(quoted(name)) for name in read.columns if name != definition.event_time]
        waiting = self._judging.emission.waiting(read).select(epoch, at, *rest).sortWithinPartitions(at)
        above: Predicate = Between(EPOCH, found.before.epoch, None, lower_inclusive=False)
        emptied = tuple(int(name) for name in found.before.emptied)
        # side tables that stand before a first epoch are of a table that somebody has removed
        nothing_else = 0 < found.before.epoch == number - 1
        asides = [
            Aside(
                BUFFER,
                waiting,
                waits,
                any_of((above, Among(EPOCH, emptied))) if emptied else above,
                none_there=nothing_else and not emptied,
            )
        ]
        if CARRY in self.sides:
            asides.append(self._carry(read, slice_, above, none_there=nothing_else))
        split = F.col(R.SPLIT).alias(_SPLIT)
        mark = R.from_ticks(R.JUDGED_BY, read.type_name).alias(_WATERMARK)
        late = judged.where(R.is_late()).select(*read.own_beside(_SPLIT, _WATERMARK), split, mark, epoch)
        diverts = are_diverted(self._definition.late, found.tally.late)
        asides.append(Aside(LATE, late, diverts, above, nothing_else))
        bad = judged.where(F.col(R.REASON).isNotNull())
        reason = F.col(R.REASON).alias(_REASON)
        quarantined = bad.select(*read.own_beside(_REASON), reason, epoch)
        asides.append(Aside(QUARANTINE, quarantined, found.tally.quarantined > 0, above, nothing_else))
        return asides

    def _carry(self, read: Epoch, slice_: EpochSlice, above: Predicate, *, none_there: bool) -> Aside:
        """What an over-window carries on; what the epoch before last has carried makes room."""
        from pyspark.sql import functions as F

        before, after = slice_.judged.before.carry, slice_.judged.after.carry
        carried = self._judging.emission.carry(read)
        assert carried is not None
        rows = carried.withColumn(EPOCH, F.lit(slice_.number).cast("long"))
        if after is None or after == before:
            return Aside(CARRY, rows, False, above, none_there)
        older = [Between(EPOCH, None, before.epoch)] if before is not None else []
        return Aside(CARRY, rows, True, any_of((above, *older)), none_there and not older)

    def find(self, spark: SparkSession, slice_: EpochSlice, pinned: str, error: Exception) -> BadPart | None:
        """Return the file, or the version, that cannot be read."""
        if slice_.reads_nothing:
            return None
        return self.epochs.find_bad_part(spark, slice_.input, pinned, error)


def known_state(dataflow: Dataflow, entry: Entry | None) -> StreamState:
    """Return the state of a stream over splits; of one that an older version wrote its newest entry tells when input came last."""
    state = state_of(StreamState, dataflow, entry)
    if state.heard_at is not None or entry is None or not state.epoch:
        return state
    return replace(state, heard_at=datetime.fromisoformat(entry.time))
