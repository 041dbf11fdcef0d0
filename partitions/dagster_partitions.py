"""Show windows and units as Dagster's partitions (docs/reference/dagster.md).

The only module of this layer that imports Dagster. ``partitions.window`` decides which windows cron can
express, how keys are spelt and how rectangles of work units form. This module never calls Dagster's
instance: callers pass in the keys that exist there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dagster import (
    AddDynamicPartitionsRequest,
    AssetKey,
    AssetMaterialization,
    DynamicPartitionsDefinition,
    MultiPartitionKey,
    MultiPartitionsDefinition,
    PartitionsDefinition,
    StaticPartitionsDefinition,
    TimeWindowPartitionsDefinition,
)

from partitions.errors import ConfigurationError
from partitions.window.cron import CronWindows
from partitions.window.dagster_units import MANY, MAX_KEYS
from partitions.window.partition_ranges import END_TAG, START_TAG, PartitionRange
from partitions.window.partitioning import MAX_PARTITIONS, Partitioning
from partitions.window.windows import Windows

__all__ = [
    "END_TAG",
    "MAX_PARTITIONS",
    "NEW_KEYS",
    "START_TAG",
    "UNIT",
    "WINDOW",
    "PartitionRange",
    "WindowPartitions",
]

WINDOW, UNIT = "window", "unit"
"""The names of the dimensions."""

NEW_KEYS = 500
"""The most keys that one tick of a sensor adds."""


@dataclass(frozen=True)
class WindowPartitions(Partitioning):
    """The partitions of one dataflow as a Dagster definition."""

    @cached_property
    def definition(self) -> PartitionsDefinition[str] | None:
        """The definition of both assets; None for a single window without units."""
        windows, units = self._window_dimension(), self._unit_dimension()
        if windows is not None and units is not None:
            return MultiPartitionsDefinition({WINDOW: windows, UNIT: units})
        return units if windows is None else windows

    def materialisation(
        self, asset: AssetKey, key: str | None, metadata: Mapping[str, Any] | None = None
    ) -> AssetMaterialization:
        """Return the event that marks a partition as loaded.

        Keys of two dimensions also become tags, by which Dagster finds the partition.
        """
        if key is None or not isinstance(self.definition, MultiPartitionsDefinition):
            return AssetMaterialization(asset, partition=key, metadata=metadata)
        dimensions = dict(zip((UNIT, WINDOW), self.parts(key), strict=True))
        tags = {f"dagster/partition/{name}": part for name, part in dimensions.items()}
        return AssetMaterialization(
            asset, partition=MultiPartitionKey(dimensions), metadata=metadata, tags=tags
        )

    @property
    def windows_name(self) -> str | None:
        """The name of the dynamic partitions for windows; None if windows are not dynamic."""
        return f"{self.identifier}_windows" if self.timed and self.cron is None else None

    @property
    def units_name(self) -> str | None:
        """The name of the dynamic partitions for units; None if units are not dynamic."""
        return f"{self.identifier}_units" if self.units == "dynamic" else None

    def missing_keys(
        self,
        existing_windows: Collection[str],
        existing_units: Collection[str],
        windows: Windows | None,
        units: Sequence[str],
    ) -> list[AddDynamicPartitionsRequest]:
        """Return requests for the keys that Dagster needs before a run can ask for them.

        The oldest windows and the first units come first; one call adds at most ``NEW_KEYS``.

        Args:
            existing_windows: dynamic keys of windows that Dagster has.
            existing_units: dynamic keys of units that Dagster has.
            windows: all windows; None without a time dimension.
            units: identities, in their order.

        Raises:
            ConfigurationError: there are more units than Dagster supports.
        """
        requests: list[AddDynamicPartitionsRequest] = []
        if self.units_name:
            self._check_bearable(units)
            max_new = NEW_KEYS // 2 if self.windows_name else NEW_KEYS
            _add(requests, self.units_name, map(self.unit_key, units), existing_units, max_new)
        if self.windows_name and windows is not None:
            max_new = NEW_KEYS - sum(len(request.partition_keys) for request in requests)
            _add(requests, self.windows_name, map(self.window_key, windows.starts), existing_windows, max_new)
        return requests

    def _check_bearable(self, units: Sequence[str]) -> None:
        if len(units) > MAX_KEYS:
            raise ConfigurationError(
                f"dataflow {self.name}: expected at most {MAX_KEYS:,} units to be partitions, found {len(units):,}."
                f" {MANY}"
            )

    def _window_dimension(self) -> PartitionsDefinition[str] | None:
        if self.cron is not None:
            return _time_windows(self.cron)
        return DynamicPartitionsDefinition(name=self.windows_name) if self.windows_name else None

    def _unit_dimension(self) -> PartitionsDefinition[str] | None:
        if self.units_name:
            return DynamicPartitionsDefinition(name=self.units_name)
        # A list: Dagster compares the keys themselves, and a user's own definition has a list of them.
        return StaticPartitionsDefinition([*self.unit_keys]) if self.units else None


def _time_windows(cron: CronWindows) -> TimeWindowPartitionsDefinition:
    # Wall times: the zone of an aware one would be replaced, not converted.
    return TimeWindowPartitionsDefinition(
        start=cron.start,
        end=cron.end,
        timezone=cron.zone,
        cron_schedule=cron.schedule,
        fmt=cron.key_format,
        end_offset=cron.end_offset,
    )


def _add(
    requests: list[AddDynamicPartitionsRequest],
    name: str,
    keys: Iterable[str],
    existing: Collection[str],
    max_new: int,
) -> None:
    existing_keys = frozenset(existing)
    lacking = [key for key in keys if key not in existing_keys][:max_new]
    if lacking:
        requests.append(AddDynamicPartitionsRequest(name, lacking))
