"""The part of a kind that deals with what cannot be read: it finds the bad part of a source, and says what becomes of the rest of the slice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, runtime_checkable

from partitions.errors import BadPart
from resources.kinds.contract.slices import SliceContra, SliceT
from resources.watermarks.entry import Entry
from resources.watermarks.lists import StoredList

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from resources.sources.files.checked import BadRecord


class BadParts(ABC, Generic[SliceT]):
    """Bad parts of one dataflow's source."""

    @abstractmethod
    def find(self, spark: SparkSession, slice_: SliceT, pinned: str, error: Exception) -> BadPart | None:
        """Find the part of the source that made a write fail; None if it is not the source's fault."""

    def slice_without(self, slice_: SliceT, bad: BadPart) -> SliceT | None:
        """Return the slice without a bad part, which is passed over; None if a run must stop at it."""


@runtime_checkable
class SetsAside(Protocol[SliceT]):
    """A kind with parts that can wait beside its watermark: in quarantine, or for a later run."""

    def defer(self, slice_: SliceT, parts: Collection[str]) -> SliceT | None:
        """Return the slice without parts that wait for a later run; None if nothing is left of it."""
        ...

    def find_others(
        self, spark: SparkSession, slice_: SliceT, pinned: str, bad: BadPart
    ) -> Sequence[BadPart]:
        """Find what else of a slice is bad in the way that something of it was, as far as one look tells."""
        ...

    def quarantine(self, entry: Entry | None, slice_: SliceT) -> tuple[StoredList | None, int]:
        """Return what is in quarantine after a slice (None: what was there before), and how many files the slice adds."""
        ...


@runtime_checkable
class SetsRecordsAside(Protocol[SliceContra]):
    """A kind whose source has records that do not parse, and may be set aside one by one."""

    def bad_records(
        self, spark: SparkSession, slice_: SliceContra, pinned: str
    ) -> Sequence[tuple[str, BadRecord]]:
        """Return the records of a slice that its read leaves out, each with its part of the source.

        Raises:
            BadPart: there are more than ``max_bad_records``.
        """
        ...

    def parts(self, slice_: SliceContra) -> Sequence[str]:
        """Return the parts of the source that a slice reads."""
        ...
