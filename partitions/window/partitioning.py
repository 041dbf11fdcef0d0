"""The partition keys of a dataflow, and the ranges of them that one run takes.

Works without Dagster. :mod:`partitions.window.partition_request` converts keys back to a request.

See docs/reference/dagster.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import cached_property
from typing import Literal, Self
from urllib.parse import unquote

from partitions.errors import ConfigurationError
from partitions.window.cron import CronWindows
from partitions.window.dagster_units import Buckets
from partitions.window.definition import WindowWatermark
from partitions.window.listed_units import ListedUnits
from partitions.window.partition_keys import (
    bucket_key,
    bucket_keys,
    instant_key,
    instant_of_key,
    key_of_both,
    parts_of_key,
    unit_key,
)
from partitions.window.partition_ranges import PartitionRange, RequestedRange
from partitions.window.rectangles import NO_DIMENSION, Axis, rectangle_cover
from partitions.window.units import distinct_identities
from partitions.window.windows import Windows
from partitions.window.work_outcomes import TimeBound
from partitions.window.work_unit import WorkUnit

_FEW = 100
"""The most listed units that are partitions by default."""

MAX_PARTITIONS = 500
"""The most partitions of one run: Dagster stores four events for each of them, two of these before the run starts."""

UnitDimension = Literal["static", "dynamic", "buckets"]


@dataclass(frozen=True)
class Partitioning:
    """The partition keys of one dataflow.

    Attributes:
        name: the dataflow's name.
        watermark: the watermark's definition.
        cron: the windows, if Dagster can compute them; else None.
        timed: whether windows are a dimension.
        units: how units are a dimension: static keys, dynamic keys or buckets; None: only the ledger shows
        them.
        identifier: the dataflow's name among all that share a Dagster instance.
    """

    name: str
    watermark: WindowWatermark
    cron: CronWindows | None
    timed: bool
    units: UnitDimension | None
    identifier: str

    @classmethod
    def of(cls, name: str, watermark: WindowWatermark, identifier: str | None = None) -> Self:
        """Choose the dimensions that are exact and that Dagster can handle. The clock does not matter."""
        timed = watermark.time_entry is not None and watermark.window != "none"
        return cls(
            name,
            watermark,
            CronWindows.of(watermark),
            timed,
            _unit_dimension(watermark),
            identifier or name,
        )

    def window_key(self, start: int) -> str:
        """Return the key of the window with this start, epoch milliseconds."""
        return self.cron.key(start) if self.cron else instant_key(start, self._zone)

    def window_of(self, key: str) -> int:
        """Return the start of the window with a key, epoch milliseconds.

        Raises:
            ConfigurationError: for a text that is no such key.
        """
        return self.cron.start_of(key) if self.cron else instant_of_key(key, self._zone)

    def unit_key(self, identity: str) -> str:
        """Return the key of a unit, or of its bucket.

        If the state spells a listed unit differently, the key follows the listed spelling.
        """
        if self.bucket_count:
            return bucket_key(identity, self.bucket_count)
        return unit_key(self._as_listed(identity), self.unit_fields)

    def _as_listed(self, identity: str) -> str:
        return (self.units == "static" and self.listed_units.spelling_of(identity)) or identity

    def key(self, start: TimeBound, unit: str) -> str | None:
        """Return the partition of a work unit; None if the asset has no partitions."""
        window = self.window_key(start) if self.timed and start is not None else None
        return key_of_both(self.unit_key(unit) if self.units else None, window)

    def ranges(
        self,
        works: Iterable[WorkUnit],
        windows: Windows | None,
        *,
        known_windows: Sequence[str] = (),
        known_units: Sequence[str] = (),
        max_partitions: int = MAX_PARTITIONS,
    ) -> list[RequestedRange]:
        """Return due work units as few ranges, oldest first: adjacent windows x adjacent units, all due.

        Dagster orders dynamic keys by when they were added. So units are adjacent in that order, and a
        work unit whose key Dagster does not know yet is in no range.

        Args:
            works: the work units that are due.
            windows: all windows; None if there is no time dimension.
            known_windows: dynamic keys of windows, in Dagster's order.
            known_units: dynamic keys of units, in Dagster's order.
            max_partitions: the most partitions of one range.
        """
        if not self.timed and self.units is None:
            count = sum(1 for _ in works)
            return [RequestedRange(PartitionRange(None, None), count)] if count else []
        rows, columns = self._rows(windows, known_windows), self._columns(known_units)
        corners = rectangle_cover(((work.start, work.unit) for work in works), rows, columns, max_partitions)
        return [
            RequestedRange(
                PartitionRange(key_of_both(unit, window), key_of_both(last_unit, last_window)),
                count,
                unquote(unit or "" if unit == last_unit else f"{unit} to {last_unit}"),
            )
            for (window, unit), (last_window, last_unit), count in corners
        ]

    def _rows(self, windows: Windows | None, known_keys: Sequence[str]) -> Axis:
        if not self.timed:
            return NO_DIMENSION
        if self.cron is None or windows is None:
            return Axis.of(known_keys, self.window_key)
        return Axis(windows.index.get, lambda index: self.window_key(windows.starts[index]))

    def _columns(self, known_keys: Sequence[str]) -> Axis:
        if self.units is None:
            return NO_DIMENSION
        return Axis.of(known_keys if self.units == "dynamic" else self.unit_keys, self.unit_key)

    @cached_property
    def unit_keys(self) -> tuple[str, ...]:
        """Return the keys that need no dynamic partitions: of the listed units, or of all buckets."""
        if self.bucket_count:
            return bucket_keys(self.bucket_count)
        return tuple(unit_key(unit, self.unit_fields) for unit in self.listed_units.units)

    @cached_property
    def listed_units(self) -> ListedUnits:
        """Return the listed units in their listed spelling."""
        return ListedUnits(distinct_identities(self.watermark.units or ()), self.watermark.zone)

    @cached_property
    def unit_fields(self) -> tuple[str, ...]:
        """Return the names that all units have values of."""
        return self.watermark.unit_fields

    @property
    def bucket_count(self) -> int:
        """Return the number of buckets; 0 if units are not in buckets."""
        declared_units = self.watermark.dagster_units
        return declared_units.buckets if isinstance(declared_units, Buckets) else 0

    @cached_property
    def _zone(self) -> tzinfo:
        """Return the zone of keys that are ISO texts: UTC for hours, where they sort by time."""
        grains = [self.watermark.window] if isinstance(self.watermark.window, str) else self.watermark.window
        return UTC if "hourly" in grains else self.watermark.zone

    def parts(self, key: str) -> tuple[str, str]:
        """Return the unit's key and the window's in a partition's key; "" if there is no such dimension.

        Raises:
            ConfigurationError: for a text that does not have as many parts as there are dimensions.
        """
        if not self.units:
            return "", key
        if not self.timed:
            return key, ""
        both = parts_of_key(key)
        if both is None:
            raise ConfigurationError(
                f"dataflow {self.name}: expected a partition such as unit|window, found {key!r}"
            )
        return both


def _unit_dimension(watermark: WindowWatermark) -> UnitDimension | None:
    if isinstance(watermark.dagster_units, Buckets):
        return "buckets"
    listed = len(watermark.unit_entry.units) if watermark.unit_entry else None
    if watermark.dagster_units == "partitions":
        return "dynamic" if listed is None else "static"
    few = listed is not None and listed <= _FEW
    return "static" if few and watermark.dagster_units == "auto" else None
