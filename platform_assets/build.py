"""Dagster definitions built from a project, with overrides for tests and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import Any

from dagster import (
    AssetChecksDefinition,
    AssetsDefinition,
    DagsterInstance,
    DagsterRun,
    Definitions,
    ExecutorDefinition,
    InitResourceContext,
    IOManagerDefinition,
    JobDefinition,
    ResourceDefinition,
    SensorDefinition,
    in_process_executor,
)

from partitions.dataflow import Dataflow, maintenance_periods
from partitions.errors import StrandlineError
from platform_assets.factory.alerts import alerts_sensor
from platform_assets.factory.assets import broken_asset, dataflow_assets
from platform_assets.factory.dagster_names import SPARK, TABLE_MANAGER, WATERMARK_MANAGER, WATERMARKS
from platform_assets.factory.decisions import decision_jobs
from platform_assets.factory.delete_job import delete_job
from platform_assets.factory.isolated_replays import isolated_replay_jobs
from platform_assets.factory.jobs import dataflow_job, job_name
from platform_assets.factory.kinds import definitions_of
from platform_assets.factory.kinds.contract import HasPartitions, HasPicture
from platform_assets.factory.maintenance import maintenance_job, maintenance_schedule
from platform_assets.factory.sensor_groups import group_sensors
from platform_assets.platform import build_platform
from platform_assets.project import Project, load_project
from platform_assets.run_metadata import chunks_metadata, table_metadata, watermark_metadata
from platform_assets.schema_views import Columns, table_columns
from resources.connections.places import Place
from resources.dagster.io_managers import TableIOManager, WatermarkIOManager
from resources.dagster.run_options import RunOptions
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.loop.loop import clock
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.watermarks.entry import Entry
from resources.watermarks.quarantine_list import read_quarantine

_AT_A_GLANCE = ("loaded", "ledger", "arrivals", "watermarks")
"""The metadata of a watermark that comes first: what is loaded in a line, and the picture of its kind."""


def build_definitions(
    project: Project | Path | str | None = None,
    platform: Platform | None = None,
    options: RunOptions | None = None,
    *,
    executor: ExecutorDefinition | None = in_process_executor,
) -> Definitions:
    """Return the Dagster definitions of a project.

    Args:
        project: the project, or its folder; None: the folder that :func:`load_project` finds. A dataflow
        with errors becomes an asset that fails with them.
        platform: resources to use instead of the project's own.
        options: how runs behave.
        executor: the executor of runs that people start from the asset graph. None leaves it to the
            definitions that these are merged with. A dataflow's job always runs in one process: a process
            (and a JVM) for each step costs 20 s and gains nothing.

    Raises:
        ConfigurationError: if the folder does not exist or holds no project.
    """
    if not isinstance(project, Project):
        project = load_project(Path(project) if project is not None else None)
    platform = platform or build_platform(project)
    options = options or RunOptions(run_is_live=_run_is_live)
    flows = list(project.dataflows.values())
    partitions = _partitions(flows)
    jobs = {flow.name: dataflow_job(flow) for flow in flows}
    triggers = [definitions_of(flow).triggers(flow, platform, options, jobs[flow.name]) for flow in flows]
    maintenance_jobs = [
        (flow, maintenance_job(flow, platform, options)) for flow in flows if maintenance_periods(flow)
    ]
    return Definitions(
        assets=[*_assets(flows, platform, partitions), *_broken_assets(project)],
        asset_checks=_checks(flows, platform),
        jobs=[
            *jobs.values(),
            *chain.from_iterable(trigger.jobs for trigger in triggers),
            *(job for _, job in maintenance_jobs),
            *decision_jobs(project, platform, options),
            *isolated_replay_jobs(project, platform, options),
            delete_job(project, platform, options),
        ],
        sensors=[
            *group_sensors(chain.from_iterable(trigger.sensors for trigger in triggers)),
            *_alerts(project, platform),
        ],
        schedules=[
            *chain.from_iterable(trigger.schedules for trigger in triggers),
            *(maintenance_schedule(flow, platform, job) for flow, job in maintenance_jobs),
        ],
        resources=_resources(flows, platform, options, partitions),
        executor=executor,
    )


def build_job(flow: Dataflow, platform: Platform, options: RunOptions) -> JobDefinition:
    """Return the job that loads one dataflow, without building the rest of the project.

    Building a project of hundreds of dataflows takes seconds. The job leaves out the upstream assets, so
    that a run without partitions can read a table that has partitions.

    Args:
        flow: a dataflow of a project.
        platform: its resources.
        options: how runs behave.
    """
    partitions = _partitions([flow])
    assets = dataflow_assets(flow, platform, partitions.get(flow.name))
    definitions = Definitions(
        assets=[assets],
        asset_checks=_checks([flow], platform),
        jobs=[dataflow_job(flow)],
        resources=_resources([flow], platform, options, partitions),
        executor=in_process_executor,
    )
    return definitions.resolve_job_def(job_name(flow.name))


def _broken_assets(project: Project) -> list[AssetsDefinition]:
    return [
        broken_asset(project.layer(name), name, errors, project.folder)
        for name, errors in project.broken.items()
    ]


def _alerts(project: Project, platform: Platform) -> list[SensorDefinition]:
    sensor = alerts_sensor(project, platform)
    return [] if sensor is None else [sensor]


def _partitions(flows: Sequence[Dataflow]) -> dict[str, WindowAssetPartitions]:
    definitions = ((flow, definitions_of(flow)) for flow in flows)
    return {flow.name: kind.partitions(flow) for flow, kind in definitions if isinstance(kind, HasPartitions)}


def _assets(
    flows: Sequence[Dataflow], platform: Platform, partitions: Mapping[str, WindowAssetPartitions]
) -> list[AssetsDefinition]:
    return [dataflow_assets(flow, platform, partitions.get(flow.name)) for flow in flows]


def _checks(flows: Sequence[Dataflow], platform: Platform) -> list[AssetChecksDefinition]:
    return [
        check.define(flow, platform) for flow in flows for check in definitions_of(flow).table_checks(flow)
    ]


def _resources(
    flows: Sequence[Dataflow],
    platform: Platform,
    options: RunOptions,
    partitions: Mapping[str, WindowAssetPartitions],
) -> dict[str, Any]:
    return {
        TABLE_MANAGER: IOManagerDefinition(_table_manager(flows, platform, options, partitions)),  # type: ignore[arg-type]  # Dagster takes generators, too
        WATERMARK_MANAGER: WatermarkIOManager(
            platform, lambda flow, entry: _watermark_and_picture(platform, options, flow, entry)
        ),
        WATERMARKS: ResourceDefinition(
            lambda context: platform.manager(),
            description="The watermark manager: get_watermark, save_watermark.",
        ),
        SPARK: ResourceDefinition.hardcoded_resource(
            platform.spark, description="session() gives a Spark session of the run's own."
        ),
    }


def _table_manager(
    flows: Sequence[Dataflow],
    platform: Platform,
    options: RunOptions,
    partitions: Mapping[str, WindowAssetPartitions],
) -> Callable[[InitResourceContext], Iterator[TableIOManager]]:
    """Return the function with which Dagster opens the table manager of a run."""
    by_name = {flow.name: flow for flow in flows}

    def describe(outcome: Outcome, place: Place) -> dict[str, Any]:
        flow = by_name[outcome.dataflow]
        columns: Columns = []
        size: int | None = None
        # The rows are committed: a run does not fail because its table's facts cannot be read.
        if outcome.committed:
            with suppress(StrandlineError):
                columns = table_columns(platform, flow)
            with suppress(StrandlineError):
                size = platform.table(flow).contents.count_bytes()
        return table_metadata(flow, outcome, place, columns, size)

    def open_manager(context: InitResourceContext) -> Iterator[TableIOManager]:
        resources = platform.loading(platform.loads or dataflows_loaded_by(context.run, flows))
        with closing(TableIOManager(resources, options, describe, chunks_metadata, partitions)) as tables:
            yield tables

    return open_manager


def dataflows_loaded_by(run: DagsterRun | None, flows: Sequence[Dataflow]) -> list[Dataflow]:
    """Return the dataflows that a run loads: the selected assets' or the job's, else all."""
    if run is None:
        return list(flows)
    if run.asset_selection:  # a run of a whole job has none
        selected = {key.to_user_string() for key in run.asset_selection}
        return [flow for flow in flows if flow.asset in selected]
    return [flow for flow in flows if job_name(flow.name) == run.job_name] or list(flows)


def _watermark_and_picture(
    platform: Platform, options: RunOptions, flow: Dataflow, entry: Entry | None
) -> dict[str, Any]:
    """Return an entry as metadata, below the kind's picture and what it says in a line, if it has one."""
    metadata = watermark_metadata(entry, read_quarantine(platform.log, entry))
    kind = definitions_of(flow)
    if not isinstance(kind, HasPicture):
        return metadata
    try:
        picture = kind.picture_metadata(platform, flow, options.now or clock())
    except StrandlineError as error:  # the rows are committed: a missing picture fails no run
        return metadata | {"picture": error.message}
    first = {name: picture[name] for name in _AT_A_GLANCE if name in picture}
    return {**first, **metadata, **picture}


def _run_is_live(run_id: str) -> bool | None:
    """Return whether Dagster has the run in progress; None if Dagster does not know it."""
    try:
        with DagsterInstance.get() as instance:
            run = instance.get_run_by_id(run_id)
    except Exception:  # noqa: BLE001 - if Dagster fails here, the answer is "unknown"; safety does not depend on it
        return None
    return None if run is None else not run.is_finished
