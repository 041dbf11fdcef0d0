"""Ranges of partitions, as Dagster asks one run for them."""

from __future__ import annotations

from typing import NamedTuple

START_TAG, END_TAG = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
"""Tags that request a range of partitions, both ends inclusive; with two dimensions the cross product of two ranges."""


class PartitionRange(NamedTuple):
    """The partitions of one run.

    Attributes:
        start: the key of its first partition; None: the asset has no partitions.
        end: the key of its last, inclusive.
    """

    start: str | None
    end: str | None

    @property
    def partition_key(self) -> str | None:
        """Return the key if there is only one; else None."""
        return self.start if self.start == self.end else None

    @property
    def tags(self) -> dict[str, str]:
        """Return the tags of a run of several partitions; {} for a single one."""
        if self.start is None or self.end is None or self.start == self.end:
            return {}
        return {START_TAG: self.start, END_TAG: self.end}


class RequestedRange(NamedTuple):
    """The partitions of one run, and what it loads of them.

    Attributes:
        partitions: the partitions.
        works: the number of due work units among them.
        units: the key of its unit, or of the first and the last; "" if units are no partitions.
    """

    partitions: PartitionRange
    works: int
    units: str = ""

    def in_words(self, all_works: int) -> str:
        """Return what the run does, such as ``EWR, 356 of 1,068 work units``.

        Args:
            all_works: the number of work units of all runs that are requested with it.
        """
        of_all = "" if self.works == all_works else f" of {all_works:,}"
        noun = "work unit" if all_works == 1 else "work units"
        return ", ".join(filter(None, [self.units, f"{self.works:,}{of_all} {noun}"]))
