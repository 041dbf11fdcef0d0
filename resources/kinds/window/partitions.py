"""Windows and units as partitions of a Dagster asset: requests, and loaded partitions.

See docs/reference/dagster.md, Runs and partitions. This module converts slices to partition keys and
metadata; the IO manager decides what Dagster is told, and when.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from partitions.dagster_partitions import WindowPartitions
from partitions.request import Request
from partitions.window.partition_request import request_of_keys
from partitions.window.slices import WindowSlice
from partitions.window.units import NO_UNIT
from partitions.window.work_unit import WorkUnit
from resources.outcome import Committed

_ROW_COUNT, _IN_PART = "dagster/partition_row_count", "in_part"
"""Metadata of a partition: the row count that Dagster's pages show, and whether the run read the partition only in part.
The count is left out then, and for a partition of several units, since a run may read some of them."""


class WindowAssetPartitions(WindowPartitions):
    """The partitions of a dataflow over windows x units."""

    def requested(self, keys: Sequence[str], now: datetime, *, forced: bool) -> Request:
        """Return the request for a run's partitions, as the windows are at ``now``."""
        windows = self.watermark.windows(now) if self.watermark.time_entry else None
        return request_of_keys(self, keys, windows, forced=forced)

    def loaded(self, committed: Sequence[Committed]) -> dict[str, dict[str, Any]]:
        """Return the partitions that these slices loaded, with their metadata.

        A partition of several units counts unless one of its units failed.
        """
        loaded: dict[str, dict[str, Any]] = {}
        for number in committed:
            if not isinstance(number.slice, WindowSlice):
                continue
            for work in number.slice.works:
                key = self.key(work.start, work.unit) if work.reason != "rest" else None
                if key is not None:
                    metadata = loaded.setdefault(
                        key, {"work_units": 0, "state_number": number.entry.number, _IN_PART: False}
                    )
                    _add(metadata, work, number.stats.get(work.key), number.slice)
                    metadata[_IN_PART] |= self.units in (None, "buckets") and work.unit != NO_UNIT
        failed = self.failed(committed)
        for metadata in loaded.values():
            if metadata.pop(_IN_PART):
                metadata.pop(_ROW_COUNT, None)
        return {key: metadata for key, metadata in loaded.items() if key not in failed}

    def dynamic_keys(self, keys: Iterable[str]) -> Mapping[str, list[str]]:
        """Return the keys of dynamic windows and units in partitions, by the name of the dynamic partitions."""
        dynamic: dict[str, dict[str, None]] = {}
        for key in keys:
            for name, part in zip((self.units_name, self.windows_name), self.parts(key), strict=True):
                if name is not None:
                    dynamic.setdefault(name, {})[part] = None
        return {name: [*parts] for name, parts in dynamic.items()}

    def failed(self, committed: Sequence[Committed]) -> set[str | None]:
        """Return the partitions in which a work unit could not be read."""
        slices = [number.slice for number in committed if isinstance(number.slice, WindowSlice)]
        return {self.key(unit.work.start, unit.work.unit) for slice_ in slices for unit in slice_.failed}


def _add(metadata: dict[str, Any], work: WorkUnit, counts: Sequence[Any] | None, slice_: WindowSlice) -> None:
    described = work.describe(slice_.zone)
    metadata["work_units"] += 1
    if counts is None or work.lower != work.start:  # the rows below were read by another run
        metadata[_IN_PART] = True
    metadata["window"] = f"[{described['window']['start']}, {described['window']['end']})"
    metadata["reason"] = work.reason if metadata.get("reason", work.reason) == work.reason else "several"
    if counts is not None:
        metadata["rows"] = metadata[_ROW_COUNT] = metadata.get("rows", 0) + counts[0]
