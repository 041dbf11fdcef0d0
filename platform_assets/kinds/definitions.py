"""What a kind of watermark adds to its dataflows in Dagster, beside the two assets and the job that all of them have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

from dagster import JobDefinition, ScheduleDefinition, SensorDefinition

from partitions.dataflow import Dataflow
from platform_assets.factory.checks import RunCheck, TableCheck
from resources.asset_partitions import AssetPartitions
from resources.platform import Platform
from resources.run_options import RunOptions


@dataclass(frozen=True)
class Triggers:
    """The sensors and schedules that start runs of a dataflow, and the jobs that only such a sensor runs."""

    sensors: Sequence[SensorDefinition] = ()
    schedules: Sequence[ScheduleDefinition] = ()
    jobs: Sequence[JobDefinition] = ()


class KindDefinitions(ABC):
    """The Dagster definitions of one kind."""

    @abstractmethod
    def run_checks(self, dataflow: Dataflow) -> Sequence[RunCheck]:
        """Return the checks that only this kind's runs evaluate."""

    @abstractmethod
    def table_checks(self, dataflow: Dataflow) -> Sequence[TableCheck]:
        """Return the checks of the whole table that only this kind has."""

    @abstractmethod
    def triggers(self, dataflow: Dataflow, platform: Platform, options: RunOptions, job: Any) -> Triggers:
        """Return what starts runs of ``job``, the one that loads the dataflow."""


@runtime_checkable
class HasPartitions(Protocol):
    """A kind that shows its work as partitions."""

    def partitions(self, dataflow: Dataflow) -> AssetPartitions:
        """Return the partitions of both assets."""
        ...


@runtime_checkable
class HasPicture(Protocol):
    """A kind whose watermark shows a picture: of what is loaded and missing, or of what came when."""

    def picture_metadata(self, platform: Platform, dataflow: Dataflow, now: datetime) -> Mapping[str, Any]:
        """Return the picture, and what belongs to it, as metadata of the watermark.

        Raises:
            StrandlineError: if it cannot be read now.
        """
        ...
