"""Fresh Definitions from a project, with overrides for tests and the command line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from dagster import (
    AssetChecksDefinition,
    AssetsDefinition,
    DagsterInstance,
    Definitions,
    InitResourceContext,
    IOManagerDefinition,
    JobDefinition,
    ResourceDefinition,
    in_process_executor,
)

from partitions.dataflow import Dataflow
from partitions.definitions import WindowPartitions
from partitions.errors import StrandlineError
from platform_assets.factory.assets import broken_asset, dataflow_assets
from platform_assets.factory.checks import late_files, ledger_check, quarantined_files, row_accounting
from platform_assets.factory.decisions import decision_jobs
from platform_assets.factory.jobs import dataflow_job, job_name
from platform_assets.factory.late import late_job, late_sensor
from platform_assets.factory.sensors import dataflow_sensor
from platform_assets.factory.windows import window_schedule, window_sensor
from platform_assets.ledger_views import ledger_metadata
from platform_assets.metadata import table_metadata, watermark_metadata
from platform_assets.platform import build_platform
from platform_assets.project import Project
from resources.io_managers import RunOptions, TableIOManager, WatermarkIOManager
from resources.loop.loop import clock
from resources.platform import Platform
from resources.watermarks.entry import Entry
from resources.watermarks.quarantine import read_quarantine


def build_definitions(
    project: Project, platform: Platform | None = None, options: RunOptions | None = None
) -> Definitions:
    """Everything that Dagster shows of a project.

    Args:
        project: loaded; dataflows with errors show as assets that fail with them.
        platform: other resources than the project's own.
        options: how runs behave.
    """
    platform = platform or build_platform(project)
    options = options or RunOptions(run_is_live=_run_is_live)
    flows = list(project.dataflows.values())
    partitions = _partitions(flows)
    jobs = {flow.name: dataflow_job(flow) for flow in flows}
    late = {flow.name: late_job(flow, platform, options) for flow in flows if _sorted(flow)}
    broken = [broken_asset(project.layer(name), name, errors) for name, errors in project.broken.items()]
    return Definitions(
        assets=[*_assets(flows, platform, partitions), *broken],
        asset_checks=_checks(flows, platform),
        jobs=[*jobs.values(), *late.values(), *decision_jobs(project, platform, options)],
        sensors=[
            *(dataflow_sensor(flow, platform, jobs[flow.name]) for flow in flows if flow.kind == "path"),
            *(
                window_sensor(flow, platform, jobs[flow.name], partitions[flow.name])
                for flow in flows
                if flow.kind == "window"
            ),
            *(late_sensor(flow, platform, late[flow.name]) for flow in flows if _sorted(flow)),
        ],
        schedules=[
            window_schedule(flow, platform, jobs[flow.name], partitions[flow.name])
            for flow in flows
            if flow.kind == "window" and flow.schedule
        ],
        resources=_resources(platform, options, partitions),
        executor=in_process_executor,  # a process, and so a JVM, per step costs 20 s and gains nothing here
    )


def build_job(
    flow: Dataflow, platform: Platform, options: RunOptions, *, checked: bool = True
) -> JobDefinition:
    """The job that loads a dataflow, and no more: a project of hundreds takes seconds to build.

    What the dataflow reads is not part of it, so that a run without partitions can read what has some: Dagster finds none for it.

    Args:
        flow: of a project.
        platform: its resources.
        options: how runs behave.
        checked: whether the run tells Dagster what its checks find; of no use to an instance that is forgotten after it.
    """
    partitions = _partitions([flow])
    assets = dataflow_assets(flow, platform, partitions.get(flow.name), checked=checked)
    definitions = Definitions(
        assets=[assets],
        asset_checks=_checks([flow], platform) if checked else None,
        jobs=[dataflow_job(flow, checked=checked)],
        resources=_resources(platform, options, partitions),
        executor=in_process_executor,
    )
    return definitions.resolve_job_def(job_name(flow.name))


def _partitions(flows: Sequence[Dataflow]) -> dict[str, WindowPartitions]:
    return {flow.name: WindowPartitions.of(flow.name, flow.window) for flow in flows if flow.kind == "window"}


def _assets(
    flows: Sequence[Dataflow], platform: Platform, partitions: Mapping[str, WindowPartitions]
) -> list[AssetsDefinition]:
    return [dataflow_assets(flow, platform, partitions.get(flow.name)) for flow in flows]


def _checks(flows: Sequence[Dataflow], platform: Platform) -> list[AssetChecksDefinition]:
    of_kind = {
        "path": (row_accounting, late_files, quarantined_files),
        "window": (row_accounting, ledger_check),
    }
    return [check(flow, platform) for flow in flows for check in of_kind[flow.kind]]


def _resources(
    platform: Platform,
    options: RunOptions,
    partitions: Mapping[str, WindowPartitions],
) -> dict[str, Any]:
    return {
        "table": IOManagerDefinition(_tables(platform, options, partitions)),  # type: ignore[arg-type]  # Dagster takes generators, too
        "watermark": WatermarkIOManager(
            platform, lambda flow, entry: _watermark_shown(platform, options, flow, entry)
        ),
        "watermarks": ResourceDefinition(
            lambda context: platform.manager(),
            description="The watermark manager: get_watermark, save_watermark.",
        ),
        "spark": ResourceDefinition.hardcoded_resource(
            platform.spark, description="session() gives a Spark session of the run's own."
        ),
    }


def _tables(
    platform: Platform,
    options: RunOptions,
    partitions: Mapping[str, WindowPartitions],
) -> Callable[[InitResourceContext], Iterator[TableIOManager]]:
    def manager(_: InitResourceContext) -> Iterator[TableIOManager]:
        with closing(TableIOManager(platform, options, table_metadata, partitions)) as made:
            yield made

    return manager


def _watermark_shown(
    platform: Platform, options: RunOptions, flow: Dataflow, entry: Entry | None
) -> dict[str, Any]:
    """An entry; of windows with the ledger, where the definition is the one that it was made with."""
    shown = watermark_metadata(entry, read_quarantine(platform.log, entry))
    if flow.kind != "window":
        return shown
    try:
        return shown | ledger_metadata(platform.ledger(flow, options.now or clock()))
    except (
        StrandlineError
    ) as error:  # the rows are there; what cannot be looked up now is no failure of the run
        return shown | {"ledger": error.message}


def _sorted(flow: Dataflow) -> bool:
    """Whether a file of it can be late; where a set is tracked, each listing is a whole one."""
    return flow.kind == "path" and flow.path.tracking == "watermark"


def _run_is_live(run_id: str) -> bool | None:
    """Whether Dagster knows the run as going on; None where there is no instance, or it does not know it."""
    try:
        with DagsterInstance.get() as instance:
            run = instance.get_run_by_id(run_id)
    except Exception:  # noqa: BLE001 - whatever fails here, the answer is "nobody knows", and safety does not depend on it
        return None
    return None if run is None else not run.is_finished
