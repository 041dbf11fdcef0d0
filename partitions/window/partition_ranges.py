"""What Dagster is asked for when one run shall load several partitions."""

from __future__ import annotations

from typing import NamedTuple

START_TAG, END_TAG = "dagster/asset_partition_range_start", "dagster/asset_partition_range_end"
"""Tags that ask one run for a range of partitions, both ends inclusive; of two dimensions for the cross product of two ranges."""


class PartitionRange(NamedTuple):
    """What one run is asked for.

    Attributes:
        start: the key of its first partition; None: the asset has no partitions.
        end: the key of its last, inclusive.
    """

    start: str | None
    end: str | None

    @property
    def partition_key(self) -> str | None:
        """The key, if there is one only."""
        return self.start if self.start == self.end else None

    @property
    def tags(self) -> dict[str, str]:
        """The tags of a run of more than one."""
        if self.start is None or self.end is None or self.start == self.end:
            return {}
        return {START_TAG: self.start, END_TAG: self.end}
