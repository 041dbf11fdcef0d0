"""Resources of Dagster for a user's own assets: a project's Spark sessions and watermarks.

A location of the project has both (docs/reference/dagster.md, Your own assets). Elsewhere a user makes them for
a project's folder.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dagster import ConfigurableResource, InitResourceContext
from pydantic import Field, PrivateAttr
from typing_extensions import override

from partitions.errors import ConfigurationError
from partitions.instants import as_datetime
from partitions.window.partition_keys import unit_key
from partitions.window.units import NO_UNIT, unit_of
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.platform.platform import Platform
from resources.watermarks.manager import WatermarkManager

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class ProjectResource(ConfigurableResource):  # type: ignore[type-arg]  # Dagster's own examples leave the type of the value out
    """The base of resources of a project; its files are read on first use."""

    project: str | None = Field(
        default=None,
        description="The project's folder; relative paths count from the working folder. Without it, the folder that"
        " STRANDLINE_PROJECT names, else the working folder.",
    )
    env: str | None = Field(
        default=None, description="The project's environment. Without it, the one that STRANDLINE_ENV names."
    )
    _platform: Platform | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, platform: Platform) -> Self:
        """Return the resource of a project whose resources exist already."""
        resource = cls(project=str(platform.folder), env=platform.env)
        resource._platform = platform
        return resource

    def _opened(self) -> Platform:
        """Return the project's resources.

        Raises:
            ConfigurationError: there is no such project or environment.
            InvalidProject: platform.yaml has errors.
        """
        if self._platform is None:
            project = load_project(Path(self.project) if self.project else None, env=self.env)
            self._platform = build_platform(project).loading(project.dataflows.values())
        return self._platform


class SparkResource(ProjectResource):
    """Spark sessions as loads of a project have them.

    They have the jars, the extensions, the catalog, and the credentials of its lake. A location of the project provides it as ``strandline_spark``. Elsewhere make one for a folder::

        SparkResource(project="loads")
    """

    def session(self) -> SparkSession:
        """Return a new Spark session of the run's own; the first one starts Spark.

        Its zone is UTC. It reads and writes the lake and local files.

        Raises:
            ConfigurationError: there is no such project, or the Spark that runs already lacks a jar or a setting.
            SparkUnavailable: Spark does not start.
        """
        return self._opened().engines.of(()).session()


class WatermarkResource(ProjectResource):
    """Watermarks of a project's dataflows, and of loads of your own, as dicts of values.

    A watermark that you save is not one commit with any rows; ``@incremental_asset`` commits both together.

    A location of the project provides it as ``strandline_watermarks``. Elsewhere make one for a folder::

        WatermarkResource(project="loads")
    """

    _manager: WatermarkManager | None = PrivateAttr(default=None)
    _warn: Callable[[str], None] | None = PrivateAttr(default=None)

    @override
    def setup_for_execution(self, context: InitResourceContext) -> None:
        """Have warnings stand in the log of the run."""
        self.in_run(context)

    def in_run(self, context: InitResourceContext) -> Self:
        """Return the resource, whose warnings stand in the log of a run."""
        self._warn = context.log.warning if context.log is not None else None
        return self

    def get_watermark(self, dataflow_id: str) -> dict[str, Any] | None:
        """Return the newest watermark as values by column; None if there is none, or an empty one.

        It is the stored form. That of windows has epoch milliseconds: :meth:`get_loaded_windows` has times.

        Args:
            dataflow_id: the name of a dataflow, or an id of your own.

        Raises:
            CorruptWatermark: the stored text does not read.
            ProviderError: the store of the log failed.
        """
        watermark = self._opened_manager().get_watermark(dataflow_id)
        return None if watermark is None else dict(watermark)

    def get_loaded_windows(self, dataflow_id: str) -> dict[str, list[tuple[datetime, datetime]]]:
        """Return which stretches of time a dataflow of windows has loaded, by unit.

        Complete neighbours are one stretch: its start, inclusive, and its end, exclusive, in UTC. A unit is its
        part of a partition key, such as ``EWR``; ``""`` if the dataflow has no units. Empty before the first load.

        Args:
            dataflow_id: the name of a dataflow with ``watermark: {type: window}``.

        Raises:
            ConfigurationError: the watermark is of another kind.
            CorruptWatermark: the stored text does not read.
            ProviderError: the store of the log failed.
        """
        entry = self._opened().log.newest(dataflow_id)
        if entry is None:
            return {}
        windows_by_unit = entry.state().get("units")
        if windows_by_unit is None:
            raise ConfigurationError(
                f"watermark {dataflow_id}: expected windows, found a watermark of kind {entry.kind}. Read it by"
                " get_watermark"
            )
        return {
            "" if unit == NO_UNIT else unit_key(unit, sorted(unit_of(unit))): [
                (as_datetime(start), as_datetime(end)) for start, end in stretches
            ]
            for unit, stretches in windows_by_unit.items()
        }

    def save_watermark(
        self,
        dataflow_id: str,
        watermark: Mapping[str, Any],
        *,
        job_id: str | None = None,
        dataflow_run_id: str | None = None,
    ) -> None:
        """Save a watermark as the next entry. No value may fall below the last one read or saved here.

        This is **not one commit with any rows**: if the run dies between the write of the rows and this call,
        rows are loaded again or lost. ``@incremental_asset`` commits rows and watermark together
        (docs/how-to/incremental-assets.md). The run's log says so once for each id.

        Args:
            dataflow_id: an id of your own; loads of dataflows save their watermarks themselves.
            watermark: values by column: texts, numbers, dates, datetimes or None.
            job_id: the job that the entry names.
            dataflow_run_id: the run that the entry names.

        Raises:
            InvalidWatermarkValue: a value has a type that no watermark has; nothing is written.
            NeedsDecision: a value would fall; nothing is written.
            ConfigurationError: runs load the dataflow, or two values have no common order.
            Conflict: another writer saved meanwhile.
            ProviderError: the store of the log failed.
        """
        self._opened_manager().save_watermark(
            dataflow_id, watermark, job_id=job_id, dataflow_run_id=dataflow_run_id
        )

    def _opened_manager(self) -> WatermarkManager:
        if self._manager is None:
            self._manager = self._opened().manager(self._warn)
        return self._manager
