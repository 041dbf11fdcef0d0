"""The part of a kind that decides what a commit does: deleted rows, statistics, side tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, runtime_checkable

from partitions.loads import Append, Load
from partitions.predicate import NOTHING, Predicate
from partitions.sentinels import Watermark
from resources.kinds.contract.slices import SliceContra, SliceT
from resources.watermarks.entry import Intent
from resources.watermarks.lists import StoredList

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from resources.tables.contract.table import Table

WriteStats = Mapping[Any, Sequence[Any]]
"""The counts of a write, by the keys of the slice's parts."""

ROWS = ("rows",)
"""The key of the number of all rows that a write observed."""

StatsReader = Callable[[], WriteStats]
"""Returns write statistics after the write; empty if it was skipped, or not observed."""


class Writing(ABC, Generic[SliceT]):
    """Decides what the commits of one dataflow do."""

    @abstractmethod
    def load(self, slice_: SliceT, rows: DataFrame) -> Load:
        """Return how the slice's commit changes the table; ``rows`` are the rows that it writes."""

    def load_of_rejected(self) -> Load | None:
        """Return how released rows go into the table, beside what later slices have loaded; None: they cannot."""
        return Append()

    def own_rows(self, slice_: SliceT, rows: DataFrame) -> Predicate:  # noqa: ARG002 - kinds that read again use it
        """Return the rows that an earlier load of the same parts of the source has left in a table beside.

        ``rows`` have the columns. NOTHING if each part is read once.
        """
        return NOTHING


@runtime_checkable
class WatchesRows(Protocol[SliceContra]):
    """A kind that identifies its rows by columns, and counts them while they are written."""

    def check_rows(self, rows: DataFrame) -> None:
        """Raise ConfigurationError if the rows after the user's step lack the columns that identify them."""
        ...

    def observe(self, rows: DataFrame, slice_: SliceContra) -> tuple[DataFrame, StatsReader]:
        """Return the rows, observed, and a function that returns their counts after the write."""
        ...


@runtime_checkable
class ReadsWhole(Protocol[SliceContra]):
    """A kind whose slices may be the whole source, one after the other."""

    def is_superseded(self, slice_: SliceContra, watermark: Watermark) -> bool:
        """Return whether a later state of the source than the slice's is loaded.

        Args:
            slice_: the slice.
            watermark: the watermark before it.
        """
        ...

    def start_of(self, slice_: SliceContra) -> datetime | None:
        """Return the time of the slice's state, aware; None if it is the time of the read."""
        ...


@runtime_checkable
class SteersRows(Protocol[SliceContra]):
    """A kind whose source says of each row how it is loaded, in columns that the user's step passes on."""

    def steered(self, rows: DataFrame, slice_: SliceContra | None) -> DataFrame:
        """Return the rows after the user's step with the columns that the load needs.

        Args:
            rows: the rows of a slice.
            slice_: the slice; None: there are no rows.

        Raises:
            ConfigurationError: the step left out columns of the source that say it.
        """
        ...


@runtime_checkable
class RepairsKeys(Protocol[SliceContra]):
    """A kind that repairs rows of keys which a comparison of source and table has found."""

    def repaired_rows(self, rows: DataFrame, slice_: SliceContra, intent: Intent, table: Table) -> DataFrame:
        """Return the rows that a repair's load takes, with marks on those that delete their key.

        Args:
            rows: rows of the source that the repair has read, perhaps of other keys, too.
            slice_: the slice of the repair.
            intent: its intent.
            table: the table, whose newest version the repair builds on.
        """
        ...


@runtime_checkable
class SavesHighest(Protocol):
    """A kind whose state after a slice is the highest value of the rows that the slice wrote."""

    def state_after(self, intent: Intent, stats: WriteStats, table: Table) -> str:
        """Return the state after a slice that is in the table, as sentinel JSON text.

        Args:
            intent: the slice's intent.
            stats: the statistics of the write; empty if another process wrote the slice, or the write was
                skipped.
            table: the table, which holds the slice.
        """
        ...


@runtime_checkable
class KeepsStats(Protocol):
    """A kind whose write statistics are stored beside the log."""

    def stats_to_rows(self, stats: WriteStats) -> StoredList:
        """Return write statistics as the log stores them."""
        ...


class SideRows(NamedTuple):
    """The rows of a slice for one side table.

    Attributes:
        table: the side table's short name.
        rows: rows with the side table's columns.
        has_rows: whether the slice has any rows for the table.
        replaced: a predicate over the side table's columns: the commit deletes the matching rows. All of
            ``rows`` match it.
        replaces_none: whether no row of the table can match, so that no lookup is needed.
    """

    table: str
    rows: DataFrame
    has_rows: bool
    replaced: Predicate
    replaces_none: bool


@runtime_checkable
class WritesSideTables(Protocol[SliceContra]):
    """A kind whose slices have rows for side tables, which are written before the slice's own."""

    def side_rows(self, spark: SparkSession, slice_: SliceContra, pinned: str) -> Sequence[SideRows]:
        """Return the rows for the side tables, in the order in which they are written."""
        ...


@runtime_checkable
class KeepsWaitingRows(Protocol):
    """A kind whose side tables hold rows that later slices read."""

    def waiting_rows(self, side: str, state: Watermark, types: Mapping[str, str]) -> Predicate:
        """Return which rows of a side table later slices read, as far as the state tells; maybe some more.

        Args:
            side: short name of the side table.
            state: the newest state.
            types: types of the side table's columns by name, in Spark's words.
        """
        ...
