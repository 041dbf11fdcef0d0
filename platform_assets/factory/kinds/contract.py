"""The definitions that a kind of watermark adds in Dagster, beside the two assets and their job."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Protocol, runtime_checkable

from dagster import JobDefinition, ScheduleDefinition

from partitions.dataflow import Dataflow
from platform_assets.dagster_jobs import LocationJob
from platform_assets.factory.check_results import RunCheck, TableCheck
from platform_assets.factory.sensors import DataflowSensor
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.run_options import RunOptions
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.outcome import Outcome
from resources.platform.platform import Platform


@dataclass(frozen=True)
class Triggers:
    """The sensors and schedules that start runs of a dataflow, and the jobs that only these sensors run."""

    sensors: Sequence[DataflowSensor] = ()
    schedules: Sequence[ScheduleDefinition] = ()
    jobs: Sequence[JobDefinition | LocationJob] = ()


@dataclass(frozen=True)
class SideTable:
    """A second table that a dataflow's runs write, shown as an asset.

    Attributes:
        output: the name of the step's output.
        asset: ``<layer>/<name>``.
        table: its path in the lake, ``<layer>/<name>``.
        description: for people.
        metadata_of: returns the table's metadata for a run; empty if the run did not change the table.
    """

    output: str
    asset: str
    table: str
    description: str
    metadata_of: Callable[[Outcome], Mapping[str, Any]]


class KindDefinitions(ABC):
    """The Dagster definitions of one kind.

    Attributes:
        materialised_together: whether its assets can only be materialised together.
    """

    materialised_together: ClassVar[bool] = False

    def run_checks(self, dataflow: Dataflow) -> Sequence[RunCheck]:  # noqa: ARG002 - kinds with checks use it
        """Return the checks that only this kind's runs evaluate; by default those of every run are enough."""
        return ()

    def table_checks(self, dataflow: Dataflow) -> Sequence[TableCheck]:  # noqa: ARG002 - as above
        """Return the checks of the whole table that only this kind has; by default none."""
        return ()

    @abstractmethod
    def triggers(
        self,
        dataflow: Dataflow,
        platform: Platform,
        names: DagsterDataflowNames,
        options: RunOptions,
        job: Any,
    ) -> Triggers:
        """Return the sensors and schedules that start runs of ``job``, which loads the dataflow."""


@runtime_checkable
class HasPartitions(Protocol):
    """A kind that shows its work as partitions."""

    def partitions(self, dataflow: Dataflow, names: DagsterDataflowNames) -> WindowAssetPartitions:
        """Return the partitions of the table's and the watermark's assets."""
        ...


@runtime_checkable
class HasSideTable(Protocol):
    """A kind whose dataflows may have a side table."""

    def side_table(self, dataflow: Dataflow) -> SideTable | None:
        """Return the side table; None if the dataflow has none."""
        ...


def side_table_of(kind: KindDefinitions, dataflow: Dataflow) -> SideTable | None:
    """Return a dataflow's side table; None if it has none."""
    return kind.side_table(dataflow) if isinstance(kind, HasSideTable) else None


@runtime_checkable
class HasPicture(Protocol):
    """A kind whose watermark shows a picture, such as of the loaded and the missing windows."""

    def picture_metadata(self, platform: Platform, dataflow: Dataflow, now: datetime) -> Mapping[str, Any]:
        """Return the picture and its related values as metadata of the watermark.

        Raises:
            StrandlineError: if they cannot be read now.
        """
        ...
