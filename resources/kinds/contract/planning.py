"""The part of a kind that decides what is due: it looks at the source, and plans slices on top of a state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Generic, Protocol, runtime_checkable

from partitions.errors import StrandlineError
from partitions.plan import Plan
from partitions.request import DUE, Request
from partitions.sentinels import Watermark
from resources.kinds.contract.slices import SliceContra, SliceT
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Planning(ABC, Generic[SliceT]):
    """Plans of one dataflow."""

    @property
    @abstractmethod
    def replans_after_load(self) -> bool:
        """Whether a run plans again when its slices are loaded, for what came in the meantime."""

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
class CountsFirstLoads(Protocol[SliceContra]):
    """A kind that knows which files of a slice were loaded before, so that each counts once in the totals."""

    def count_first_loads(self, entry: Entry | None, slice_: SliceContra) -> int:
        """Return how many files of a slice were not loaded before."""
        ...
