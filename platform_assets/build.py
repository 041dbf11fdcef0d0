"""Dagster definitions built from a project, with overrides for tests and the command line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from types import MappingProxyType
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
    ScheduleDefinition,
    SensorDefinition,
    in_process_executor,
)

from partitions.dataflow import Dataflow, maintenance_periods
from partitions.errors import ConfigurationError, StrandlineError
from platform_assets.dagster_internals import VALIDATES, step_process
from platform_assets.dagster_jobs import LocationJob
from platform_assets.factory.alerts import alerts_sensor
from platform_assets.factory.asset_specs import DataflowSpecs, dataflow_specs, keys_of
from platform_assets.factory.assets import broken_asset, dataflow_assets
from platform_assets.factory.check_results import DataflowChecks
from platform_assets.factory.config_jobs import ProjectJobs
from platform_assets.factory.decisions import decision_jobs
from platform_assets.factory.delete_job import delete_job
from platform_assets.factory.isolated_replays import isolated_replay_jobs
from platform_assets.factory.jobs import dataflow_job, job_name, loading_jobs
from platform_assets.factory.kinds import definitions_of
from platform_assets.factory.kinds.contract import HasPartitions, HasPicture
from platform_assets.factory.maintenance import maintenance_job, maintenance_schedule
from platform_assets.factory.noted_names import note_names
from platform_assets.factory.reconcile_job import (
    operator_reconcile_job,
    reconcile_checks,
    reconcile_job,
    reconcile_schedule,
)
from platform_assets.factory.sensor_groups import group_sensors
from platform_assets.location_parts import checked_name, checked_prefix, location_metadata
from platform_assets.long_lived import long_lived
from platform_assets.platform import build_platform
from platform_assets.project import InvalidProject, Project, load_project
from platform_assets.project.passed_connections import PassedConnection, with_connections
from platform_assets.project_resources import SparkResource, WatermarkResource
from platform_assets.run_metadata import chunks_metadata, stored_metadata, table_metadata, watermark_metadata
from platform_assets.schema_views import Columns, table_columns
from platform_assets.translator import StrandlineTranslator
from resources.connections.places import Place
from resources.dagster.io_managers import TableIOManager
from resources.dagster.names import DagsterNames
from resources.dagster.run_options import RunOptions
from resources.dagster.watermark_io_manager import WatermarkIOManager
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.loop.loop import clock
from resources.outcome import Outcome
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine
from resources.spark.passed_session import PassedSpark
from resources.spark.run_server import RunServer
from resources.watermarks.entry import Entry
from resources.watermarks.quarantine_list import read_quarantine

_AT_A_GLANCE = ("loaded", "ledger", "arrivals", "watermarks")
"""The metadata of a watermark that comes first: what is loaded in a line, and the picture of its kind."""


_NoteNames = Callable[[DagsterInstance, Platform, DagsterNames], None]
"""Notes a project's names in Dagster for the command line: only a code location does."""


def build_definitions(
    project: Project | Path | str | None = None,
    platform: Platform | None = None,
    options: RunOptions | None = None,
    *,
    strict: bool | None = None,
    name: str | None = None,
    key_prefix: str | Sequence[str] = (),
    translator: StrandlineTranslator | None = None,
    decisions: bool = True,
    executor: ExecutorDefinition | None = in_process_executor,
    connections: Mapping[str, PassedConnection] = MappingProxyType({}),
    spark: PassedSpark | None = None,
) -> Definitions:
    """Return the Dagster definitions of a project.

    Args:
        project: the project, or its folder; None: the folder that :func:`load_project` finds. A dataflow
        with errors becomes an asset that fails with them.
        platform: resources to use instead of the project's own.
        options: how runs behave.
        strict: whether to fail if a file has errors. None: only while ``dg check defs`` or
            ``dagster definitions validate`` loads the definitions.
        name: the project's name in Dagster: small letters, digits and single _. Every project needs one
            where several share a code location or an instance.
        key_prefix: the first parts of the keys of all its assets, such as ``"north"`` or ``["shop", "north"]``.
        translator: changes keys and other attributes of its assets.
        decisions: whether to add the jobs of an operator: decisions, views of a state, replays and deletes.
        executor: the executor of runs that people start from the asset graph. None leaves it to the
            definitions that these are merged with. A dataflow's job always runs in one process: a process
            for each step costs seconds and gains nothing.
        connections: replace connections of platform.yaml, by name: an ``S3Resource``, or a mapping with the keys of
            a connection. Values may be an ``EnvVar``, which each run and each tick of a sensor looks up.
        spark: where Spark sessions come from, instead of platform.yaml: a ``PySparkResource``, a
            ``LazyPySparkResource``, or a function that returns a session. It is asked when a run needs Spark.

    Raises:
        InvalidProject: if a file has errors, as ``strict`` says.
        ConfigurationError: if the folder does not exist or holds no project, for a name of another form,
            if the translator gives two assets one key, if a connection or ``spark`` is of another type, or if
            there is a ``platform`` beside them.
    """
    if not isinstance(project, Project):
        project = load_project(Path(project) if project is not None else None)
    if project.errors and (bool(os.environ.get(VALIDATES)) if strict is None else strict):
        raise InvalidProject(project.errors)
    if platform is not None and (connections or spark is not None):
        raise ConfigurationError(
            "expected platform, or connections and spark, found both: a platform has its own. Leave platform out"
        )
    project = with_connections(project, connections)
    platform = platform or _with_server_of_run(build_platform(project, spark=spark))
    options = options or RunOptions(run_is_live=_run_is_live)
    prefix, translator = checked_prefix(key_prefix), translator or StrandlineTranslator()
    with long_lived(len(project.dataflows)):
        names, specs = _names_and_specs(
            list(project.dataflows.values()), platform, checked_name(name), prefix, translator
        )
        project_jobs = ProjectJobs(project, platform, options, names)
        return _definitions(project_jobs, specs, decisions=decisions, executor=executor)


def _definitions(
    project_jobs: ProjectJobs,
    specs: Mapping[str, DataflowSpecs],
    *,
    decisions: bool,
    executor: ExecutorDefinition | None,
) -> Definitions:
    project, platform = project_jobs.project, project_jobs.platform
    options, names = project_jobs.options, project_jobs.names
    flows = list(project.dataflows.values())
    partitions = _partitions(flows, names)
    resources = _resources(flows, platform, names, options, partitions, note=note_names)
    assets = {
        flow.name: dataflow_assets(flow, platform, names, specs[flow.name], partitions.get(flow.name))
        for flow in flows
    }
    checks = {flow.name: _checks(flow, platform, names) for flow in flows}
    jobs = {flow.name: dataflow_job(flow, names[flow.name]) for flow in flows}
    triggers = [
        definitions_of(flow).triggers(flow, platform, names[flow.name], options, jobs[flow.name])
        for flow in flows
    ]
    upkeep = [*_maintenance(flows, platform, names, options), *_reconciling(flows, platform, names, options)]
    return Definitions(
        assets=[*assets.values(), *_broken_assets(project, names)],
        asset_checks=list(chain.from_iterable(checks.values())),
        jobs=[
            *jobs.values(),
            *chain.from_iterable(trigger.jobs for trigger in triggers),
            *(job for job, _ in upkeep),
            *(_operator_jobs(project_jobs) if decisions else ()),
        ],
        sensors=[
            *group_sensors(chain.from_iterable(trigger.sensors for trigger in triggers), names),
            *_alerts(project, platform, names),
        ],
        schedules=[
            *chain.from_iterable(trigger.schedules for trigger in triggers),
            *(schedule for _, schedule in upkeep),
        ],
        resources=resources,
        metadata=location_metadata(project, names),
        executor=executor,
    )


def build_job(flow: Dataflow, platform: Platform, options: RunOptions, names: DagsterNames) -> JobDefinition:
    """Return the job that loads one dataflow, without building the rest of the project.

    Building a project of hundreds of dataflows takes seconds.

    Args:
        flow: a dataflow of a project.
        platform: its resources.
        options: how runs behave.
        names: the project's names in Dagster.
    """
    partitions = _partitions([flow], names)
    specs = dataflow_specs(flow, platform, names[flow.name], StrandlineTranslator())
    assets = dataflow_assets(flow, platform, names, specs, partitions.get(flow.name))
    definitions = Definitions(
        assets=[assets],
        asset_checks=_checks(flow, platform, names),
        jobs=[dataflow_job(flow, names[flow.name])],
        resources=_resources([flow], platform, names, options, partitions),
        executor=in_process_executor,
    )
    return definitions.resolve_job_def(job_name(names[flow.name]))


def _with_server_of_run(platform: Platform) -> Platform:
    """Return the same resources with one Spark for all steps of a run that are processes of their own."""

    def server(engine: SparkEngine) -> str | None:
        step = step_process()
        return RunServer(step.run_id, step.run_process).url(engine) if step else None

    return replace(platform, spark=replace(platform.spark, server=server))


def _names_and_specs(
    flows: Sequence[Dataflow],
    platform: Platform,
    name: str | None,
    key_prefix: Sequence[str],
    translator: StrandlineTranslator,
) -> tuple[DagsterNames, Mapping[str, DataflowSpecs]]:
    """Return the names of a project, with the keys that the translator gives its assets, and their specs."""
    usual = DagsterNames.of(flows, name, key_prefix)
    specs = {flow.name: dataflow_specs(flow, platform, usual[flow.name], translator) for flow in flows}
    return keys_of(specs, usual), specs


def _maintenance(
    flows: Sequence[Dataflow], platform: Platform, names: DagsterNames, options: RunOptions
) -> Iterator[tuple[JobDefinition, ScheduleDefinition]]:
    """Yield the job that maintains each table that is maintained, with its schedule."""
    for flow in flows:
        if maintenance_periods(flow):
            job = maintenance_job(flow, platform, names[flow.name], options)
            yield job, maintenance_schedule(flow, platform, names[flow.name], job)


def _reconciling(
    flows: Sequence[Dataflow], platform: Platform, names: DagsterNames, options: RunOptions
) -> Iterator[tuple[JobDefinition, ScheduleDefinition]]:
    """Yield the job that compares each dataflow that is reconciled with its source, with its schedule."""
    for flow in flows:
        if flow.reconcile is not None:
            job = reconcile_job(flow, platform, names[flow.name], options)
            yield job, reconcile_schedule(flow, names[flow.name], job)


def _operator_jobs(jobs: ProjectJobs) -> Iterator[JobDefinition | LocationJob]:
    yield from decision_jobs(jobs)
    yield from isolated_replay_jobs(jobs)
    yield delete_job(jobs)
    yield operator_reconcile_job(jobs)


def _broken_assets(project: Project, names: DagsterNames) -> list[AssetsDefinition]:
    return [
        broken_asset(project.layer(name), name, errors, project.folder, names)
        for name, errors in project.broken.items()
    ]


def _alerts(project: Project, platform: Platform, names: DagsterNames) -> list[SensorDefinition]:
    sensor = alerts_sensor(project, platform, names)
    return [] if sensor is None else [sensor]


def _partitions(flows: Sequence[Dataflow], names: DagsterNames) -> dict[str, WindowAssetPartitions]:
    definitions = ((flow, definitions_of(flow)) for flow in flows)
    return {
        flow.name: kind.partitions(flow, names[flow.name])
        for flow, kind in definitions
        if isinstance(kind, HasPartitions)
    }


def _checks(flow: Dataflow, platform: Platform, names: DagsterNames) -> list[AssetChecksDefinition]:
    return [
        DataflowChecks(flow, names[flow.name]).definition(check, platform)
        for check in (*reconcile_checks(flow), *definitions_of(flow).table_checks(flow))
    ]


def _resources(
    flows: Sequence[Dataflow],
    platform: Platform,
    names: DagsterNames,
    options: RunOptions,
    partitions: Mapping[str, WindowAssetPartitions],
    note: _NoteNames = lambda instance, platform, names: None,
) -> dict[str, Any]:
    return {
        names.table_manager: IOManagerDefinition(
            _table_manager(flows, platform, names, options, partitions, note)  # type: ignore[arg-type]  # Dagster takes generators, too
        ),
        names.watermark_manager: WatermarkIOManager(
            platform, names, lambda flow, entry: _watermark_and_picture(platform, options, flow, entry)
        ),
        names.watermarks: ResourceDefinition(
            lambda context: WatermarkResource.of(platform).in_run(context),
            description=WatermarkResource.__doc__,
        ),
        names.spark: ResourceDefinition(
            lambda context: SparkResource.of(
                platform.loading(dataflows_loaded_by(context.run, flows, names))
            ),
            description=SparkResource.__doc__,
        ),
    }


def _table_manager(
    flows: Sequence[Dataflow],
    platform: Platform,
    names: DagsterNames,
    options: RunOptions,
    partitions: Mapping[str, WindowAssetPartitions],
    note: _NoteNames,
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
        return table_metadata(flow, outcome, place, columns, size, env=platform.env)

    def open_manager(context: InitResourceContext) -> Iterator[TableIOManager]:
        if context.instance is not None:
            note(context.instance, platform, names)
        resources = platform.loading(platform.loads or dataflows_loaded_by(context.run, flows, names))
        with closing(
            TableIOManager(
                resources, by_name, names, options, describe, chunks_metadata, stored_metadata, partitions
            )
        ) as tables:
            yield tables

    return open_manager


def dataflows_loaded_by(
    run: DagsterRun | None, flows: Sequence[Dataflow], names: DagsterNames
) -> list[Dataflow]:
    """Return the dataflows that a run loads: the selected assets' or the job's.

    All if it loads none: Spark then starts with the jars of each table that an asset of the user may read.
    """
    if run is None:
        return list(flows)
    if run.asset_selection:  # a run of a whole job has none
        loaded = [flow for flow in flows if names[flow.name].table in run.asset_selection]
    else:
        loaded = [flow for flow in flows if run.job_name in loading_jobs(names[flow.name])]
    return loaded or list(flows)


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
