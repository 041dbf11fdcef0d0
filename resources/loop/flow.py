"""What differs between kinds of watermark, as the loop and decisions see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from partitions.errors import BadPart
from partitions.load import Load
from partitions.path.source import SourceFile
from partitions.plan import Plan, Slice, counted
from partitions.request import DUE, Request
from partitions.sentinels import Watermark
from resources.tables.table import Table
from resources.watermarks.entry import Entry, Intent, Replaces
from resources.watermarks.lists import ListKind, StoredList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Seen = Mapping[Any, Sequence[Any]]
"""What a write saw of the parts of a slice."""

Observed = Callable[[], Seen]
"""Tells it, after the write; nothing where the write was skipped, or nobody looked."""

SliceT = TypeVar("SliceT", bound=Slice)


class Size(NamedTuple):
    """How much a slice is.

    Attributes:
        files: that are loaded.
        bytes: of these files; None where nobody knows before they are read.
        work_units: that are loaded.
        failed_units: that the slice passes over and records as failed.
    """

    files: int = 0
    bytes: int | None = None
    work_units: int = 0
    failed_units: int = 0

    @property
    def amount(self) -> str:
        """In words: ``3 files``, ``1 work unit``."""
        if self.work_units or self.failed_units:
            return counted(self.work_units, "work unit")
        return counted(self.files, "file")


@runtime_checkable
class CanLeaveOut(Protocol[SliceT]):
    """A kind with work beside its watermark: what of it is bad can wait there, and nothing passes it."""

    def leave_out(self, piece: SliceT, parts: Collection[str]) -> SliceT | None:
        """The slice without parts that wait for a later run; None where nothing is left of it."""
        ...


class Flow(Protocol[SliceT]):
    """A kind of watermark bound to its source."""

    @property
    def calls(self) -> int:
        """LIST calls, or folders opened, so far."""
        ...

    @property
    def remarks(self) -> Sequence[str]:
        """What a user should hear of what was read so far, each once."""
        ...

    @property
    def repeats(self) -> bool:
        """Whether a run plans again when its slices are loaded, for what came in the meantime."""
        ...

    @property
    def one_query(self) -> bool:
        """Whether the queries of two slices differ in nothing but their files."""
        ...

    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[SliceT]:
        """Observe the source and plan what is asked for on top of the entry."""
        ...

    def check(self, piece: SliceT) -> None:
        """Raise BadPart where what the slice was planned from has changed."""
        ...

    @property
    def list_kind(self) -> ListKind:
        """Of the lists that slices are kept as."""
        ...

    def record(self, piece: SliceT) -> StoredList:
        """What must be kept so that exactly this slice can be read again."""
        ...

    def restore(self, intent: Intent, stored: StoredList) -> SliceT:
        """The slice of an intent."""
        ...

    def pin(self, spark: SparkSession, pending: Sequence[SliceT]) -> str | None:
        """The schema that all slices are read with, as text; None while nothing tells it."""
        ...

    def agree(self, spark: SparkSession, pinned: str) -> None:
        """Raise SchemaError where the definition asks for another schema than the pinned one."""
        ...

    def read(self, spark: SparkSession, piece: SliceT | None, pinned: str) -> DataFrame:
        """The slice's rows; without a slice no rows, of the same schema."""
        ...

    def blame(self, spark: SparkSession, piece: SliceT, pinned: str, error: Exception) -> BadPart | None:
        """The part of the source that made a write fail; None where it is not the source's fault."""
        ...

    def holds(self, piece: SliceT, bad: BadPart) -> bool:
        """Whether a bad part is of this slice."""
        ...

    def before(self, piece: SliceT, bad: BadPart) -> SliceT | None:
        """The part of a slice before a bad one, in order; None where there is none."""
        ...

    def without(self, piece: SliceT, bad: BadPart) -> SliceT | None:
        """The slice without a bad part, which is passed over; None where a run shall stop at it."""
        ...

    def also_bad(self, spark: SparkSession, piece: SliceT, pinned: str, bad: BadPart) -> Sequence[BadPart]:
        """What else of a slice is bad in the way that something of it was, as far as one look tells."""
        ...

    def quarantine(self, entry: Entry | None, piece: SliceT) -> tuple[StoredList | None, int]:
        """What is in quarantine after a slice (None: what was there before), and how many files the slice adds."""
        ...

    def prepared(self, df: DataFrame, piece: SliceT | None) -> DataFrame:
        """The rows after the user's step, with what the kind adds to them.

        Raises:
            ConfigurationError: where they lack what the kind needs to find them again.
        """
        ...

    def observe(self, df: DataFrame, piece: SliceT) -> tuple[DataFrame, Observed]:
        """Have the write of a slice count what it sees; what it saw is there when it is over."""
        ...

    def load(self, piece: SliceT, replaces: Replaces | None, df: DataFrame) -> Load:
        """Return what becomes of the rows of the table in the slice's commit; ``df`` are those that it writes."""
        ...

    def covers(self, state: str, other: str) -> bool:
        """Whether no value falls from ``other`` to ``state``; both are sentinel JSON texts."""
        ...

    def size(self, piece: SliceT) -> Size:
        """How much a slice is, as far as it is known before it is read."""
        ...

    @property
    def pacing(self) -> timedelta:
        """Time between the starts of two slices, at least."""
        ...

    def modified(self, piece: SliceT) -> int | None:
        """When the newest thing of the slice came to be, epoch milliseconds by the source's clock."""
        ...

    def parsed(self, text: str) -> str:
        """A watermark as an operator writes it, in the form that the definition has.

        Raises:
            ConfigurationError: for any other text.
        """
        ...

    def carried(self, text: str, now: datetime, last: Entry | None) -> str:
        """What of a watermark holds under the definition as it is now; both are sentinel JSON texts.

        Args:
            text: the watermark.
            now: the clock, aware.
            last: the newest entry, which says what is in the table; None where it does not count.
        """
        ...

    def up_to(self, watermark: Watermark, above: Entry | None) -> Sequence[SourceFile]:
        """The files that the source holds at or below a watermark, and above an entry's: what a decision passes over."""
        ...

    def told_by_rows(self, table: Table) -> str | None:
        """The watermark that the table's rows tell, sentinel JSON text; None where they tell none."""
        ...

    def makes_room(self, table: Table) -> bool:
        """Whether rows of the table that are loaded again can make room for themselves, so that it does no harm."""
        ...

    def reached(self, entry: Entry, table: Table) -> str:
        """The watermark that covers all rows that may be in the table, for a rewind that makes room for what is read again.

        Raises:
            ConfigurationError: where rows do not tell what they were read from.
        """
        ...

    def check_rewind(self) -> None:
        """Raise ConfigurationError where there is no order to go back in."""
        ...

    def loaded_before(self, pieces: Sequence[SliceT], last: Entry | None) -> tuple[int, str]:
        """How many parts of these slices were loaded before, as far as an entry knows, and what a part is called."""
        ...

    def unread(self, pieces: Sequence[SliceT]) -> int:
        """How many work units these slices, in the order of their commits, have passed over and no later one has loaded."""
        ...

    def passed_over(self, piece: SliceT) -> Sequence[str]:
        """What a slice records as failed, each in a line for people."""
        ...
