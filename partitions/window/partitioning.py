"""What the partitions of a dataflow are called, and which of them one run takes (docs/dagster.md). Dagster itself is not needed for that."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import cached_property
from typing import Literal, Self

from partitions.errors import ConfigurationError
from partitions.plan import counted
from partitions.request import Due, Forced, Part
from partitions.window.cron import Cron
from partitions.window.dagster_units import Buckets
from partitions.window.definition import WindowWatermark
from partitions.window.partition_keys import (
    UnitBuckets,
    bucket_key,
    bucket_keys,
    instant_key,
    instant_of_key,
    unit_key,
    unit_of_key,
)
from partitions.window.partition_ranges import PartitionRange
from partitions.window.rectangles import ONE, Axis, rectangle_cover
from partitions.window.spelling import Listed, SomeListed
from partitions.window.units import distinct
from partitions.window.windows import Windows
from partitions.window.work_outcomes import TimeBound
from partitions.window.work_unit import WorkUnit

_FEW = 100
"""Listed units that are partitions without being asked for."""

MOST_PARTITIONS = 500
"""Partitions of one run, at most: Dagster stores four events for each of them, two of these before the run starts."""

UnitDimension = Literal["static", "dynamic", "buckets"]

_BETWEEN = "|"
"""Between the unit and the window in a key: Dagster orders the dimensions by name."""


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
        if self._buckets:
            return bucket_key(identity, self._buckets)
        return unit_key(self._as_listed(identity), self._fields)

    def _as_listed(self, identity: str) -> str:
        return (self.units == "static" and self._listed.spelling_of(identity)) or identity

    def key(self, start: TimeBound, unit: str) -> str | None:
        """The partition that holds a work unit; None if the asset has no partitions."""
        window = self.window_key(start) if self.timed and start is not None else None
        return _together(self.unit_key(unit) if self.units else None, window)

    def request(self, keys: Sequence[str], windows: Windows | None, *, forced: bool) -> Due | Forced:
        """Return what a run's partition keys ask for.

        Args:
            keys: in any order, as a run has them.
            windows: all at the instant of the run; None if there is no time dimension.
            forced: whether it is read whatever the cutoffs say.

        Raises:
            ConfigurationError: for no key (a range that is reversed has none), a key that is no window or unit that can be
                loaded now, and keys of two dimensions that are no cross product.
        """
        asked = Forced if forced else Due
        if not self.timed and self.units is None:
            return asked(Part())
        if not keys:
            raise self._refused(
                "at least one partition (a range whose end comes before its start has none)", "none"
            )
        pairs = {self.parts(key) for key in keys}
        of_window, of_unit = {window for _, window in pairs}, {unit for unit, _ in pairs}
        if len(pairs) != len(of_window) * len(of_unit):
            raise self._refused(
                "all pairs of some windows and some units", f"{len(pairs)} partitions that are not"
            )
        ranges = self._stretches(of_window, windows) if self.timed else None
        return asked(Part(ranges, self._identities(of_unit) if self.units else None))

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
            PartitionRange(_together(unit, window), _together(last_unit, last_window))
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
        if self._buckets:
            return bucket_keys(self._buckets)
        return tuple(map(self.unit_key, self._listed.units))

    @cached_property
    def _listed(self) -> Listed:
        """The units that the user has listed, as they are spelt there."""
        return Listed(distinct(self.watermark.units or ()), self.watermark.zone)

    @cached_property
    def _fields(self) -> tuple[str, ...]:
        return self.watermark.unit_fields

    @property
    def _buckets(self) -> int:
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
        unit, between, window = key.partition(_BETWEEN)
        if not between or _BETWEEN in window:
            raise self._refused("a partition such as unit|window", repr(key))
        return unit, window

    def _stretches(self, keys: Iterable[str], windows: Windows | None) -> tuple[tuple[int, int], ...]:
        """Windows as stretches of time; those that follow each other are one."""
        if windows is None:
            raise self._refused("the windows at the instant of the run, since keys name some of them", "none")
        made: list[tuple[int, int]] = []
        for index in sorted(self._planned(key, windows) for key in keys):
            start, end = windows[index]
            joins = made and made[-1][1] == start
            made[-1:] = [(made[-1][0], end)] if joins else [*made[-1:], (start, end)]
        return tuple(made)

    def _planned(self, key: str, windows: Windows) -> int:
        index = windows.index.get(self.window_of(key))
        if index is None:
            raise self._refused(
                f"{self._existing(windows)} (a window is there once it has begun; with partial: false once it is whole)",
                f"the partition {key}, which is none of them now",
            )
        return index

    def _existing(self, windows: Windows) -> str:
        if not len(windows):
            return "a window, and there is none yet"
        first, last = self.window_key(windows.starts[0]), self.window_key(windows.starts[-1])
        return f"one of {counted(len(windows), 'window')} from {first} to {last}"

    def _identities(self, keys: set[str]) -> Container[str]:
        odd = [] if self.units == "dynamic" else sorted(keys.difference(self.unit_keys))
        if odd:
            few, what = ", ".join(self.unit_keys[:5]), "bucket" if self._buckets else "unit"
            raise self._refused(
                f"one of {counted(len(self.unit_keys), what)} ({few}, …)", f"the {what} {odd[0]!r}"
            )
        if self._buckets:
            return UnitBuckets(self._buckets, frozenset(keys))
        asked = frozenset(unit_of_key(key, self._fields) for key in keys)
        return SomeListed(asked, self._listed) if self.units == "static" else asked

    def _refused(self, expected: str, found: str) -> ConfigurationError:
        return ConfigurationError(f"dataflow {self.name}: expected {expected}, found {found}")


def _unit_dimension(watermark: WindowWatermark) -> UnitDimension | None:
    if isinstance(watermark.dagster_units, Buckets):
        return "buckets"
    listed = len(watermark.unit_entry.units) if watermark.unit_entry else None
    if watermark.dagster_units == "partitions":
        return "dynamic" if listed is None else "static"
    few = listed is not None and listed <= _FEW
    return "static" if few and watermark.dagster_units == "auto" else None


def _together(unit: str | None, window: str | None) -> str | None:
    return _BETWEEN.join(part for part in (unit, window) if part is not None) or None
