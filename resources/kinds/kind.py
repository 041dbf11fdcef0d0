"""The contract of a kind of watermark, bound to its source: what the loop and its protocol ask of it. One module a kind.

What only some kinds have is a contract of its own, asked for by type. What operators' decisions need is in
:mod:`resources.kinds.state_rules`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from partitions.errors import BadPart, StrandlineError
from partitions.loads import Lacking, Load
from partitions.plan import Plan, Slice
from partitions.predicate import Predicate
from partitions.request import DUE, Request
from partitions.sentinels import Watermark
from resources.watermarks.entry import Entry, Intent
from resources.watermarks.lists import ListKind, StoredList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from partitions.spark_stream.batch_progress import BatchProgress
    from resources.sources.files.checked import BadRecord
    from resources.tables.contract.table import Table

WriteStats = Mapping[Any, Sequence[Any]]
"""What a write counted of the parts of a slice, by the part's key."""

ROWS = ("rows",)
"""Among the statistics of a write: how many rows it was that they were counted of."""

StatsReader = Callable[[], WriteStats]
"""Returns write statistics after the write; empty if it was skipped, or not observed."""

SliceT = TypeVar("SliceT", bound=Slice)
_SliceContra = TypeVar("_SliceContra", bound=Slice, contravariant=True)


class SliceBase(NamedTuple):
    """What a slice is fixed on: of some kinds what its rows become depends on the rows before.

    Attributes:
        spark: the run's session.
        entry: the newest, which the slice was planned on.
        pinned: text of the schema that it is read with.
        now: the run's clock, aware.
    """

    spark: SparkSession
    entry: Entry | None
    pinned: str
    now: datetime


class Kind(ABC, Generic[SliceT]):
    """A kind of watermark bound to its source. Where a method may have nothing to tell, that is what it does unless a kind says otherwise."""

    @property
    @abstractmethod
    def remarks(self) -> Sequence[str]:
        """What a user should hear of what was read so far, each once."""

    @property
    @abstractmethod
    def replans_after_load(self) -> bool:
        """Whether a run plans again when its slices are loaded, for what came in the meantime."""

    @property
    @abstractmethod
    def one_query(self) -> bool:
        """Whether the queries of two slices differ in nothing but their files."""

    @property
    @abstractmethod
    def pacing(self) -> timedelta:
        """Time between the starts of two slices, at least."""

    @abstractmethod
    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[SliceT]:
        """Observe the source and plan what is asked for on top of the entry."""

    @abstractmethod
    def covers(self, state: str, other: str) -> bool:
        """Return whether no value falls from ``other`` to ``state``; both are sentinel JSON texts."""

    def modified(self, slice_: SliceT, before: Watermark, now: datetime) -> int | None:
        """Return when the newest thing of a slice on top of a state came to be, epoch milliseconds by the source's clock; None: nothing tells."""

    @property
    @abstractmethod
    def list_kind(self) -> ListKind:
        """Of the lists that slices are kept as."""

    @abstractmethod
    def slice_to_rows(self, slice_: SliceT) -> StoredList:
        """Return what must be kept so that exactly this slice can be read again."""

    @abstractmethod
    def slice_from_rows(self, intent: Intent, stored: StoredList) -> SliceT:
        """Return the slice of an intent."""

    @abstractmethod
    def pin(self, spark: SparkSession, pending: Sequence[SliceT]) -> str | None:
        """Return the schema that all slices are read with, as text; None while nothing tells it."""

    def check_schema(self, spark: SparkSession, pinned: str) -> None:
        """Raise SchemaError if the source or definition does not match the pinned schema."""

    @abstractmethod
    def fix(self, slice_: SliceT, base: SliceBase) -> SliceT:
        """Return the slice with what exactly it is read from; raise BadPart if some of it is not there, or has changed since it was planned."""

    def check_unchanged(self, slice_: SliceT) -> None:
        """Raise BadPart if what a slice is read from has changed since it was fixed; versions, and what has no parts, do not."""

    @abstractmethod
    def read(self, spark: SparkSession, slice_: SliceT | None, pinned: str) -> DataFrame:
        """Return the slice's rows; without a slice no rows, of the same schema."""

    @abstractmethod
    def load(self, slice_: SliceT, rows: DataFrame) -> Load:
        """Return what becomes of the rows of the table in the slice's commit; ``rows`` are those that it writes."""

    def find_bad_part(
        self, spark: SparkSession, slice_: SliceT, pinned: str, error: Exception
    ) -> BadPart | None:
        """Find the part of the source that made a write fail; None if it is not the source's fault."""

    def slice_without(self, slice_: SliceT, bad: BadPart) -> SliceT | None:
        """Return the slice without a bad part, which is passed over; None if a run must stop at it."""


@runtime_checkable
class MayReadNothing(Protocol):
    """A slice of a kind whose slices need not read the source: it need not be there then."""

    @property
    def reads_nothing(self) -> bool:
        """Whether this one does not."""
        ...


def reads_source(slice_: Slice) -> bool:
    """Return whether a slice reads its source."""
    return not (isinstance(slice_, MayReadNothing) and slice_.reads_nothing)


@runtime_checkable
class ReadsVersions(Protocol[SliceT]):
    """A kind whose source may have versions: the slices of a plan read the same one."""

    def at_one_version(self, slices: Sequence[SliceT]) -> list[SliceT]:
        """Return the slices, which read the newest version of the source."""
        ...


@runtime_checkable
class BuildsOnState(Protocol[_SliceContra]):
    """A kind whose slices are fixed on rows that wait beside the source."""

    def check_fixed(self, slice_: _SliceContra, base: SliceBase) -> None:
        """Raise unless what a slice was fixed on by a run that died is still there.

        Raises:
            BadPart: some of its input cannot be read.
            NeedsDecision: rows that it needs are gone.
        """
        ...

    def rows_of(self, slice_: _SliceContra) -> int:
        """Return how many rows the queries of a fixed slice go over."""
        ...


class Aside(NamedTuple):
    """Rows of a slice that go into a side table.

    Attributes:
        table: its short name.
        rows: of its columns.
        has_rows: whether the slice has any for it.
        replaced: over the side table's columns: what makes room in the same commit. All of ``rows`` fit it.
        none_there: whether it is known without a look that no row of the table fits.
    """

    table: str
    rows: DataFrame
    has_rows: bool
    replaced: Predicate
    none_there: bool


@runtime_checkable
class WritesAside(Protocol[_SliceContra]):
    """A kind whose slices have rows for side tables, which are written before the slice's own."""

    def aside(self, spark: SparkSession, slice_: _SliceContra, pinned: str) -> Sequence[Aside]:
        """Return what goes into side tables, in the order in which it is written."""
        ...


@runtime_checkable
class SetsAside(Protocol[SliceT]):
    """A kind with parts that can wait beside its watermark: in quarantine, or for a later run."""

    def defer(self, slice_: SliceT, parts: Collection[str]) -> SliceT | None:
        """Return the slice without parts that wait for a later run; None if nothing is left of it."""
        ...

    def find_other_bad_parts(
        self, spark: SparkSession, slice_: SliceT, pinned: str, bad: BadPart
    ) -> Sequence[BadPart]:
        """Find what else of a slice is bad in the way that something of it was, as far as one look tells."""
        ...

    def quarantine(self, entry: Entry | None, slice_: SliceT) -> tuple[StoredList | None, int]:
        """Return what is in quarantine after a slice (None: what was there before), and how many files the slice adds."""
        ...


@runtime_checkable
class CountsFirstLoads(Protocol[_SliceContra]):
    """A kind that knows which files of a slice were loaded before, so that each counts once in the totals."""

    def count_first_loads(self, entry: Entry | None, slice_: _SliceContra) -> int:
        """Return how many files of a slice were not loaded before."""
        ...


@runtime_checkable
class SetsRecordsAside(Protocol[_SliceContra]):
    """A kind whose source has records that do not parse, and may be set aside one by one."""

    def bad_records(
        self, spark: SparkSession, slice_: _SliceContra, pinned: str
    ) -> Sequence[tuple[str, BadRecord]]:
        """Return the records of a slice that its read leaves out, each with its part of the source.

        Raises:
            BadPart: there are more than ``max_bad_records``.
        """
        ...

    def parts(self, slice_: _SliceContra) -> Sequence[str]:
        """Return the parts of the source that a slice reads."""
        ...


@runtime_checkable
class SavesHighest(Protocol):
    """A kind whose state after a slice is the highest value of the rows that the slice wrote."""

    def state_after(self, intent: Intent, stats: WriteStats, table: Table) -> str:
        """Return the state after a slice that is in the table, sentinel JSON text.

        Args:
            intent: of the slice.
            stats: what the write counted; nothing if another process wrote the slice, or the write was skipped.
            table: with the slice.
        """
        ...


@runtime_checkable
class KnowsColumns(Protocol):
    """A kind that can tell which columns it reads of slices that one query is good for."""

    def columns(self, pinned: str) -> StructType | None:
        """Return the columns of the rows that are read with a schema, given as text; None if only Spark can tell."""
        ...


@runtime_checkable
class TellsLacking(Protocol[_SliceContra]):
    """A kind whose source may lose columns, whose rows have NULL in them then."""

    def lacking(self, spark: SparkSession, slice_: _SliceContra, pinned: str) -> Sequence[Lacking]:
        """Return the pinned columns that the source of some rows of a slice does not have, once its rows were read."""
        ...


@runtime_checkable
class KeepsStats(Protocol):
    """A kind whose write statistics are kept beside the log, for later questions."""

    def stats_to_rows(self, stats: WriteStats) -> StoredList:
        """Return write statistics as they are stored."""
        ...


@runtime_checkable
class WatchesRows(Protocol[_SliceContra]):
    """A kind that finds its rows again by columns, and counts them as they are written."""

    def check_rows(self, rows: DataFrame) -> None:
        """Raise ConfigurationError if the rows after the user's step lack what the kind needs to find them again."""
        ...

    def observe(self, rows: DataFrame, slice_: _SliceContra) -> tuple[DataFrame, StatsReader]:
        """Have the write of a slice count what it writes."""
        ...


@runtime_checkable
class RunsAhead(Protocol):
    """A kind whose source is read by an engine with a state of its own, which a run asks for what is new before it plans what to commit."""

    def run_ahead(self, spark: SparkSession, entry: Entry | None) -> StrandlineError | None:
        """Have the engine read all that is new, on top of the entry; what it has read can be planned then.

        Returns:
            what the run fails with once that is committed: a part of the source behind which nothing was read.
        """
        ...


@runtime_checkable
class ReportsBatches(Protocol[_SliceContra]):
    """A kind whose engine says of each of its batches what it did."""

    def reports(self, slice_: _SliceContra) -> Sequence[BatchProgress]:
        """Return what the engine has said of the batches of a slice."""
        ...
