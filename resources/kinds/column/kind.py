"""The column kind: rows above the highest value that was read of one or several columns (docs/guide-columns.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from typing_extensions import override

from partitions.column.definition import ColumnWatermark
from partitions.column.predicates import Range, cut
from partitions.column.slices import ColumnSlice
from partitions.column.source import Observed
from partitions.column.state import ColumnState, Mark
from partitions.column.writers import (
    Awaited,
)
from partitions.dataflow import Dataflow
from partitions.errors import BadPart, ConfigurationError, SourceError
from partitions.instants import milliseconds
from partitions.loads import ByValue, Lacking, Load, ReplaceKeys, load_into
from partitions.plan import Plan
from partitions.predicate import NOTHING, Predicate
from partitions.replay.chunk_slice import later_rows
from partitions.request import DUE, Forced, LateOnly, Replay, Request
from partitions.sentinels import Watermark, deserialise, serialise
from partitions.unit_values import Kind
from resources.kinds.column.look import ColumnLook, deletes
from resources.kinds.column.written import observe_highest, state_written
from resources.kinds.contract import reading as contract
from resources.kinds.contract.bad_parts import BadParts
from resources.kinds.contract.planning import Planning
from resources.kinds.contract.reading import Reading, SliceBase
from resources.kinds.contract.stored_slices import StoredSlices
from resources.kinds.contract.writing import StatsReader, WatchesRows, WriteStats, Writing
from resources.sources.source import (
    FetchesRows,
    HasRemarks,
    HasVersions,
    PinsRows,
    ReadsAbove,
    TellsChanges,
    TellsFailures,
    TellsLacking,
    at_version,
)
from resources.watermarks.column_ranges import COLUMN_RANGES
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.lists import ListKind, StoredList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from resources.tables.contract.table import Table


@dataclass(frozen=True)
class ColumnKind(
    Planning[ColumnSlice],
    StoredSlices[ColumnSlice],
    Reading[ColumnSlice],
    Writing[ColumnSlice],
    BadParts[ColumnSlice],
    contract.TellsLacking[ColumnSlice],
    WatchesRows[ColumnSlice],
):
    """Rows above the values that were read.

    Attributes:
        dataflow: what the user declared.
        rows: its source.
        above: the same source, as rows above a watermark are read from it.
        awaited: looks up what the last run has left to open transactions.
    """

    replans_after_load: ClassVar[bool] = False
    """A run reads up to bounds that are fixed once; what comes later is the next run's."""
    one_query: ClassVar[bool] = False
    """Bounds stand in the query."""
    pacing: ClassVar[timedelta] = timedelta(0)

    dataflow: Dataflow
    rows: PinsRows
    above: ReadsAbove
    awaited: Callable[[], Awaited | None] = lambda: None

    @property
    def _definition(self) -> ColumnWatermark:
        return self.dataflow.column

    @property
    def remarks(self) -> Sequence[str]:
        """What the source has to say; the plan says the rest."""
        return self.rows.remarks if isinstance(self.rows, HasRemarks) else ()

    @cached_property
    def _look(self) -> ColumnLook:
        return ColumnLook(self.dataflow, self.above, self.awaited)

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[ColumnSlice]:
        """Look at the source, fix the bounds, and cut slices.

        Raises:
            ConfigurationError: something else than what is due is asked for.
            PlanError: a column cannot have a watermark, or has NULLs and must not.
            NeedsDecision: code ``source_replaced`` or ``source_behind``: the source was set back.
            SourceError: the source refuses, or does not answer.
        """
        number, look = entry.number if entry else 0, self._look
        if isinstance(request, LateOnly):
            return Plan(self.dataflow.name, "column", number, now, "no row of a column watermark is late")
        if isinstance(request, Forced):
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: expected a run of what is due, found a forced one; a column watermark has no windows"
            )
        if isinstance(request, Replay):
            return look.in_one_look(lambda once: once.plan_replay(entry, now, request))
        return look.in_one_look(lambda once: once.plan_due(entry, now))

    def has_new_rows(self, entry: Entry | None, now: datetime) -> bool:
        """Return whether rows lie above the stored values, as :meth:`ColumnLook.has_new_rows`."""
        return self._look.has_new_rows(entry, now)

    def with_kinds(self, seen: Observed) -> Mapping[str, Kind]:
        """Return what each column holds, as :meth:`ColumnLook.with_kinds`."""
        return self._look.with_kinds(seen)

    def contents(self) -> str:
        """Return what tells the source as it is from what it was, if it says so without being read; else nothing."""
        return self.above.contents() if isinstance(self.above, TellsChanges) else ""

    def covers(self, state: str, other: str) -> bool:
        """Compare each column."""
        return ColumnState.of(deserialise(state)).covers(ColumnState.of(deserialise(other)))

    @override
    def modified(self, slice_: ColumnSlice, before: Watermark, now: datetime) -> int | None:
        """The upper bound, of columns that hold a time; what is read again tells nothing of how far the source is loaded."""
        if not slice_.saves:
            return None
        times = [_milliseconds(range_.upper, self.dataflow) for range_ in slice_.ranges]
        return max((time for time in times if time is not None), default=None)

    @override
    def lacking(self, spark: SparkSession, slice_: ColumnSlice, pinned: str) -> Sequence[Lacking]:
        """Return what the source tells of the rows that were read last."""
        return self.rows.lacking(spark, pinned) if isinstance(self.rows, TellsLacking) else ()

    @property
    def list_kind(self) -> ListKind:
        """Ranges of columns."""
        return COLUMN_RANGES

    def to_rows(self, slice_: ColumnSlice) -> StoredList:
        """Bounds, and where the read is cut."""
        rows = [
            [
                range_.column,
                serialise({"lower": range_.lower, "upper": range_.upper}),
                range_.lower_inclusive,
                range_.upper_inclusive,
            ]
            for range_ in slice_.ranges
        ]
        head = {
            "version": slice_.version,
            "reads_nulls": slice_.reads_nulls,
            "cuts": serialise({"cuts": list(slice_.cuts)}),
        }
        return StoredList(COLUMN_RANGES, rows, head)

    def from_rows(self, intent: Intent, stored: StoredList) -> ColumnSlice:
        """The same bounds, read from the same version."""
        ranges = []
        for column, text, lower_inclusive, upper_inclusive in stored.rows:
            values = deserialise(text)
            ranges.append(Range(column, values["lower"], values["upper"], lower_inclusive, upper_inclusive))
        return ColumnSlice(
            deserialise(intent.before),
            tuple(ranges),
            stored.head["reads_nulls"],
            replaces=intent.replaces == "own",
            why="replay" if intent.why == "replay" else "run",
            version=stored.head["version"],
            cuts=tuple(deserialise(stored.head["cuts"])["cuts"]),
        )

    @override
    def pin(self, spark: SparkSession, pending: Sequence[ColumnSlice]) -> str | None:
        """What the source says of its columns."""
        return self.rows.pin(spark)

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Compare the source's columns with what was pinned."""
        self.rows.check_schema(spark, pinned, self.dataflow.name)

    @override
    def fix(self, slice_: ColumnSlice, base: SliceBase) -> ColumnSlice:
        """The bounds are fixed with the plan, and so is the version; but for columns of which only the fetched rows tell how far they go.

        Raises:
            SourceError: the source refuses, or does not answer; or no row has a value any more, so that no state would tell that those
                without one were read.
        """
        open_ = [
            range_.column for range_ in slice_.ranges if range_.upper is None or self._saves_bound_of(slice_)
        ]
        if not open_ or not isinstance(self.above, FetchesRows):
            return slice_
        highest = self.above.fetched_up_to(slice_.rows_to_fetch, open_)
        before = ColumnState.of(slice_.before)
        fixed = tuple(
            _up_to(range_, highest[range_.column], before.marks.get(range_.column))
            if range_.column in highest
            else range_
            for range_ in slice_.ranges
        )
        if not any(range_.is_bounded for range_ in fixed):
            raise SourceError(
                f"dataflow {self.dataflow.name}: expected a row with a value in {', '.join(self._definition.columns)}, as a look has found just"
                " before, found none any more. Nothing was begun; the next run looks again"
            )
        return replace(slice_, ranges=fixed)

    def _saves_bound_of(self, slice_: ColumnSlice) -> bool:
        """Whether the bounds of a slice become the watermark only because a step of the user follows: not those that the source was told."""
        is_due = slice_.why == "run" and not slice_.replaces
        return is_due and self.dataflow.has_step and not self.dataflow.source.asked_above.saves_bound

    def read(self, spark: SparkSession, slice_: ColumnSlice | None, pinned: str) -> DataFrame:
        """The rows between the bounds, in parts of about the same size; of those that replace others, with all that are deleted."""
        parts = _parts(slice_) if slice_ is not None else ()
        return at_version(self.above, slice_.version if slice_ else None).read_rows(spark, parts, pinned)

    @override
    def load(self, slice_: ColumnSlice, rows: DataFrame) -> Load:
        """As the target says; exactly what was read goes after a rewind that replaces, or if the target replaces by watermark."""
        order = tuple(ByValue(name) for name in self._definition.columns)
        again = slice_.why == "replay"  # what runs have loaded since is later
        load = load_into(self.dataflow.target, self._replaced(slice_), order, guard=order if again else ())
        return replace(load, later=later_rows(slice_)) if again and isinstance(load, ReplaceKeys) else load

    def _replaced(self, slice_: ColumnSlice) -> Predicate:
        """The rows that the slice deletes, whatever their keys."""
        if not deletes(slice_, self.dataflow.target):
            return NOTHING
        return slice_.rows if slice_.replaces else slice_.rows_with_value

    def check_rows(self, rows: DataFrame) -> None:
        """Rows must still have the watermark's columns after the user's step.

        Raises:
            ConfigurationError: code ``query``.
        """
        missing = [name for name in self._definition.columns if name not in rows.columns]
        if missing:
            step = "transform" if self.dataflow.transform else "sql" if self.dataflow.sql else None
            after = f"; after `{step}` there" if step else "; there"
            remedy = "Keep" if step else "Correct watermark.columns:"
            raise ConfigurationError(
                f"dataflow {self.dataflow.name}: expected rows with the watermark's columns {', '.join(self._definition.columns)}{after}"
                f" are {', '.join(rows.columns)}. {remedy} {', '.join(missing)}",
                code="query",
            )

    @override
    def observe(self, rows: DataFrame, slice_: ColumnSlice) -> tuple[DataFrame, StatsReader]:
        """The highest value of each column, and how many rows have none."""
        return observe_highest(rows, self._definition.columns)

    def state_after(self, intent: Intent, stats: WriteStats, table: Table) -> str:
        """The highest value that was written, and never more than the bound; behind a step of the user's, the bound. So of a chunk.

        Of a write that nobody saw the table tells it.
        """
        if self.dataflow.source.asked_above.saves_bound or self.dataflow.has_step or intent.why == "replay":
            return intent.watermark
        return state_written(intent, stats, table, reads_nulls=self._definition.nulls == "read")

    @override
    def find(self, spark: SparkSession, slice_: ColumnSlice, pinned: str, error: Exception) -> BadPart | None:
        """Return the file that Spark names, or the version that is gone; a range has no other parts. What else the source says is raised.

        Raises:
            SourceError: the source refused, or did not answer.
        """
        of_source = self.rows.failure(error) if isinstance(self.rows, TellsFailures) else None
        if isinstance(of_source, BadPart):
            return of_source
        if isinstance(of_source, SourceError) and not of_source.transient:
            # No run can read the slice before somebody corrects source or definition: its number must not hold that up.
            return BadPart(of_source.message, part=self.dataflow.source.shown, code=of_source.code)
        if of_source is not None:
            raise of_source from None  # Spark's own text may quote the options of a connection
        if slice_.version is not None and isinstance(self.above, HasVersions):
            return self.above.at(slice_.version).find_unreadable(spark, error)
        return None


def _parts(slice_: ColumnSlice) -> Sequence[Predicate]:
    """The rows of a slice, cut where the plan says; those without a value go with the first part."""
    if not slice_.cuts:
        return (slice_.rows,)
    (range_,) = slice_.ranges
    first, *others = cut(range_, slice_.cuts)
    return (replace(slice_, ranges=(first,)).rows, *(part.rows for part in others))


def _up_to(range_: Range, highest: Any, stored: Mark | None) -> Range:
    """The range up to the highest value that was fetched; of one that has a bound the lower of both, and never below what is stored."""
    if range_.upper is None:
        return range_.up_to(highest)
    found = Mark(highest) if highest is not None else stored
    if stored is not None and found is not None and stored.covers(found):
        found = stored
    if found is None or found.covers(Mark(range_.upper, range_.upper_inclusive)):
        return range_
    return replace(range_, upper=found.value, upper_inclusive=found.inclusive)


def _milliseconds(value: Any, dataflow: Dataflow) -> int | None:
    if isinstance(value, datetime):
        return milliseconds(value if value.tzinfo else value.replace(tzinfo=dataflow.zone))
    if isinstance(value, date):
        return milliseconds(datetime(value.year, value.month, value.day, tzinfo=dataflow.zone))
    return None
