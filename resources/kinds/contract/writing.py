"""The part of a kind that says what the commit of a slice does: which rows of the table go, what is counted, and what goes into side tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, runtime_checkable

from partitions.loads import Load
from partitions.predicate import Predicate
from resources.kinds.contract.slices import SliceContra, SliceT
from resources.watermarks.entry import Intent
from resources.watermarks.lists import StoredList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from resources.tables.contract.table import Table

WriteStats = Mapping[Any, Sequence[Any]]
"""What a write counted of the parts of a slice, by the part's key."""

ROWS = ("rows",)
"""Among the statistics of a write: how many rows it was that they were counted of."""

StatsReader = Callable[[], WriteStats]
"""Returns write statistics after the write; empty if it was skipped, or not observed."""


class Writing(ABC, Generic[SliceT]):
    """What commits of one dataflow do."""

    @abstractmethod
    def load(self, slice_: SliceT, rows: DataFrame) -> Load:
        """Return what becomes of the rows of the table in the slice's commit; ``rows`` are those that it writes."""


@runtime_checkable
class WatchesRows(Protocol[SliceContra]):
    """A kind that finds its rows again by columns, and counts them as they are written."""

    def check_rows(self, rows: DataFrame) -> None:
        """Raise ConfigurationError if the rows after the user's step lack what the kind needs to find them again."""
        ...

    def observe(self, rows: DataFrame, slice_: SliceContra) -> tuple[DataFrame, StatsReader]:
        """Have the write of a slice count what it writes."""
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
class KeepsStats(Protocol):
    """A kind whose write statistics are kept beside the log, for later questions."""

    def stats_to_rows(self, stats: WriteStats) -> StoredList:
        """Return write statistics as they are stored."""
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
class WritesAside(Protocol[SliceContra]):
    """A kind whose slices have rows for side tables, which are written before the slice's own."""

    def aside(self, spark: SparkSession, slice_: SliceContra, pinned: str) -> Sequence[Aside]:
        """Return what goes into side tables, in the order in which it is written."""
        ...
