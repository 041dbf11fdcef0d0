"""The part of a kind that lists the source and plans the slices above a state."""

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
        """Whether a run plans again after its last slice, to load what arrived in the meantime."""

    @property
    @abstractmethod
    def pacing(self) -> timedelta:
        """The minimum time between the starts of two slices."""

    @abstractmethod
    def plan(self, entry: Entry | None, now: datetime, request: Request = DUE) -> Plan[SliceT]:
        """List the source, and plan the requested work above the entry."""

    @abstractmethod
    def covers(self, state: str, other: str) -> bool:
        """Return whether no value falls from ``other`` to ``state``; both are sentinel JSON texts."""

    def modified(self, slice_: SliceT, before: Watermark, now: datetime) -> int | None:
        """Return when the newest part of a slice was created, in epoch milliseconds by the source's clock.

        None if the source does not tell. ``before`` is the state that the slice is planned on.
        """


@runtime_checkable
class RunsAhead(Protocol):
    """A kind whose engine keeps a state of its own: it reads new input before a run plans commits."""

    def run_ahead(self, spark: SparkSession, entry: Entry | None) -> StrandlineError | None:
        """Have the engine read all new input above the entry, so that it can be planned.

        Returns:
            the error that the run ends with after committing that input: a part of the source that stopped
                the engine; None if it read everything.
        """
        ...


@runtime_checkable
class CountsFirstLoads(Protocol[SliceContra]):
    """A kind that knows which files of a slice were loaded before, so that totals count each file once."""

    def count_first_loads(self, entry: Entry | None, slice_: SliceContra) -> int:
        """Return how many files a slice adds to the loaded ones; below 0 if it deletes rows of more."""
        ...
