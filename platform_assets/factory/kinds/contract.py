"""What a kind of watermark adds to its dataflows in Dagster, beside the two assets and the job that all of them have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Protocol, runtime_checkable

from dagster import JobDefinition, ScheduleDefinition, SensorDefinition

from partitions.dataflow import Dataflow
from platform_assets.factory.asset_checks import RunCheck, TableCheck
from resources.dagster.run_options import RunOptions
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.outcome import Outcome
from resources.platform.platform import Platform


@dataclass(frozen=True)
class Triggers:
    """The sensors and schedules that start runs of a dataflow, and the jobs that only such a sensor runs."""

    sensors: Sequence[SensorDefinition] = ()
    schedules: Sequence[ScheduleDefinition] = ()
    jobs: Sequence[JobDefinition] = ()


@dataclass(frozen=True)
class SideTable:
    """A table that a dataflow's runs write beside its own, and that is an asset.

    Attributes:
        output: its name among the outputs of the step.
        asset: ``<layer>/<name>``.
        table: in the lake, ``<layer>/<name>``.
        description: for people.
        shown: returns the metadata of a run that has changed it; nothing of one that has not.
    """

    output: str
    asset: str
    table: str
    description: str
    shown: Callable[[Outcome], Mapping[str, Any]]


class KindDefinitions(ABC):
    """The Dagster definitions of one kind.

    Attributes:
        one_step: whether its assets are materialised together only.
    """

    one_step: ClassVar[bool] = False

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

    def partitions(self, dataflow: Dataflow) -> WindowAssetPartitions:
        """Return the partitions of both assets."""
        ...


@runtime_checkable
class HasSideTable(Protocol):
    """A kind whose dataflows may have another table beside their own."""

    def side_table(self, dataflow: Dataflow) -> SideTable | None:
        """Return it; None if the dataflow has none."""
        ...


def side_table_of(kind: KindDefinitions, dataflow: Dataflow) -> SideTable | None:
    """Return a dataflow's other table; None if it has none."""
    return kind.side_table(dataflow) if isinstance(kind, HasSideTable) else None


@runtime_checkable
class HasPicture(Protocol):
    """A kind whose watermark shows a picture: of what is loaded and missing, or of what came when."""

    def picture_metadata(self, platform: Platform, dataflow: Dataflow, now: datetime) -> Mapping[str, Any]:
        """Return the picture, and what belongs to it, as metadata of the watermark.

        Raises:
            StrandlineError: if it cannot be read now.
        """
        ...
