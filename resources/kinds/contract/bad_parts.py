"""The part of a kind that finds unreadable parts of a source, and cuts them out of a slice."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Generic, Protocol, runtime_checkable

from partitions.errors import BadPart, TooManyBadParts
from resources.kinds.contract.slices import SliceContra, SliceT
from resources.watermarks.entry import Entry
from resources.watermarks.lists import StoredList

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from resources.sources.files.checked import BadRecord


class BadParts(ABC, Generic[SliceT]):
    """Finds the bad parts of one dataflow's source."""

    @abstractmethod
    def find(self, spark: SparkSession, slice_: SliceT, pinned: str, error: Exception) -> BadPart | None:
        """Find the part of the source that made a write fail; None if it is not the source's fault."""

    def slice_without(self, slice_: SliceT, bad: BadPart) -> SliceT | None:
        """Return the slice without a bad part, which the run skips; None if the run must stop at it."""


@runtime_checkable
class SetsAside(Protocol[SliceT]):
    """A kind whose parts can wait in quarantine or for a later run, whatever the watermark."""

    def defer(self, slice_: SliceT, parts: Collection[str]) -> SliceT | None:
        """Return the slice without the parts that wait for a later run; None if nothing remains."""
        ...

    def find_others(
        self, spark: SparkSession, slice_: SliceT, pinned: str, bad: BadPart | None
    ) -> Sequence[BadPart]:
        """Return the other parts of a slice that are bad, as far as one check shows.

        With ``bad``, only those that are bad in the same way.
        """
        ...

    def too_many(
        self, slice_: SliceT, entry: Entry | None, others: Callable[[], Sequence[BadPart]]
    ) -> TooManyBadParts | None:
        """Return the error if the parts that a slice passes over are too many; else None.

        Args:
            slice_: the slice without its bad parts.
            entry: the newest entry.
            others: finds the parts of the slice that are bad in any other way.
        """
        ...

    def quarantine(self, entry: Entry | None, slice_: SliceT) -> tuple[StoredList | None, int]:
        """Return the quarantine after a slice, and how many files the slice adds to it.

        The list is None if the quarantine stays as it was.
        """
        ...


@runtime_checkable
class SetsRecordsAside(Protocol[SliceContra]):
    """A kind whose source may hold records that do not parse, which can be set aside one by one."""

    def bad_records(
        self, spark: SparkSession, slice_: SliceContra, pinned: str
    ) -> Sequence[tuple[str, BadRecord]]:
        """Return the records that reading a slice leaves out, each with its part of the source.

        Raises:
            BadPart: there are more than ``max_bad_records``.
        """
        ...

    def parts(self, slice_: SliceContra) -> Sequence[str]:
        """Return the parts of the source that a slice reads."""
        ...
