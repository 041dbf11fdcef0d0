"""What the partitions of a dataflow are called, and which of them one run takes (docs/reference/dagster.md). Dagster itself is not needed for that.

What the keys of a run ask for is :mod:`partitions.window.partition_request`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import cached_property
from typing import Literal, Self

from partitions.errors import ConfigurationError
from partitions.window.cron import Cron
from partitions.window.dagster_units import Buckets
from partitions.window.definition import WindowWatermark
from partitions.window.partition_keys import (
    bucket_key,
    bucket_keys,
    instant_key,
    instant_of_key,
    key_of_both,
    parts_of_key,
    unit_key,
)
from partitions.window.partition_ranges import PartitionRange
from partitions.window.rectangles import ONE, Axis, rectangle_cover
from partitions.window.spelling import Listed
from partitions.window.units import distinct
from partitions.window.windows import Windows
from partitions.window.work_outcomes import TimeBound
from partitions.window.work_unit import WorkUnit

_FEW = 100
"""Listed units that are partitions without being asked for."""

MOST_PARTITIONS = 500
"""Partitions of one run, at most: Dagster stores four events for each of them, two of these before the run starts."""

UnitDimension = Literal["static", "dynamic", "buckets"]


@dataclass(frozen=True)
class Partitioning:
    """The keys of one dataflow.

    Attributes:
        name: of the dataflow.
        watermark: its definition.
        cron: its windows, if Dagster can compute them.
        timed: whether windows are a dimension.
        units: whether units are one: of fixed keys, of keys that Dagster is told, or in buckets; None: the ledger alone sees them.
    """

    name: str
    watermark: WindowWatermark
    cron: Cron | None
    timed: bool
    units: UnitDimension | None

    @classmethod
    def of(cls, name: str, watermark: WindowWatermark) -> Self:
        """Find what is exact and what Dagster bears. The clock is not looked at."""
        timed = watermark.time_entry is not None and watermark.window != "none"
        return cls(name, watermark, Cron.of(watermark), timed, _unit_dimension(watermark))

    def window_key(self, start: int) -> str:
        """The key of the window that starts at an instant, epoch milliseconds."""
        return self.cron.key(start) if self.cron else instant_key(start, self._zone)

    def window_of(self, key: str) -> int:
        """The start of a window, epoch milliseconds.

        Raises:
            ConfigurationError: for a text that is no such key.
        """
        return self.cron.instant(key) if self.cron else instant_of_key(key, self._zone)

    def unit_key(self, identity: str) -> str:
        """The key of a unit, or of the bucket that it is in. A unit that the state knows by another spelling has the key of the one that is listed."""
        if self.bucket_count:
            return bucket_key(identity, self.bucket_count)
        return unit_key(self._as_listed(identity), self.unit_fields)

    def _as_listed(self, identity: str) -> str:
        return (self.units == "static" and self.listed_units.spelling_of(identity)) or identity

    def key(self, start: TimeBound, unit: str) -> str | None:
        """The partition that holds a work unit; None if the asset has no partitions."""
        window = self.window_key(start) if self.timed and start is not None else None
        return key_of_both(self.unit_key(unit) if self.units else None, window)

    def ranges(
        self,
        works: Iterable[WorkUnit],
        windows: Windows | None,
        *,
        known_windows: Sequence[str] = (),
        known_units: Sequence[str] = (),
        most: int = MOST_PARTITIONS,
    ) -> list[PartitionRange]:
        """Due work units as few runs, oldest first: neighbouring windows x neighbouring units, each of which is due.

        A range over dynamic keys follows the order in which they were added, whatever they say: so neighbours are those in that
        order, and a work unit whose key Dagster does not know yet is in no range.

        Args:
            works: what is due.
            windows: all; None if there is no time dimension.
            known_windows: dynamic keys of windows, in Dagster's order.
            known_units: dynamic keys of units, in Dagster's order.
            most: partitions of one range.
        """
        if not self.timed and self.units is None:
            return [PartitionRange(None, None)] * any(True for _ in works)
        rows, columns = self._rows(windows, known_windows), self._columns(known_units)
        corners = rectangle_cover(((work.start, work.unit) for work in works), rows, columns, most)
        return [
            PartitionRange(key_of_both(unit, window), key_of_both(last_unit, last_window))
            for (window, unit), (last_window, last_unit) in corners
        ]

    def _rows(self, windows: Windows | None, known: Sequence[str]) -> Axis:
        if not self.timed:
            return ONE
        if self.cron is None or windows is None:
            return Axis.of(known, self.window_key)
        return Axis(windows.index.get, lambda place: self.window_key(windows.starts[place]))

    def _columns(self, known: Sequence[str]) -> Axis:
        if self.units is None:
            return ONE
        return Axis.of(known if self.units == "dynamic" else self.unit_keys, self.unit_key)

    @cached_property
    def unit_keys(self) -> tuple[str, ...]:
        """The keys that Dagster need not be told: of the units that the user has listed, in that order, or of all buckets."""
        if self.bucket_count:
            return bucket_keys(self.bucket_count)
        return tuple(map(self.unit_key, self.listed_units.units))

    @cached_property
    def listed_units(self) -> Listed:
        """The units that the user has listed, as they are spelt there."""
        return Listed(distinct(self.watermark.units or ()), self.watermark.zone)

    @cached_property
    def unit_fields(self) -> tuple[str, ...]:
        """The names that all units have values of."""
        return self.watermark.unit_fields

    @property
    def bucket_count(self) -> int:
        """The number of buckets that units are in; 0: they are in none."""
        shown = self.watermark.dagster_units
        return shown.buckets if isinstance(shown, Buckets) else 0

    @cached_property
    def _zone(self) -> tzinfo:
        """Of keys that are ISO texts: hours have no zone, and in UTC they sort by time."""
        grains = [self.watermark.window] if isinstance(self.watermark.window, str) else self.watermark.window
        return UTC if "hourly" in grains else self.watermark.zone

    def parts(self, key: str) -> tuple[str, str]:
        """The key of the unit and that of the window in a partition's key; "" for a dimension that is not there.

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
