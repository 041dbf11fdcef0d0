"""Fresh Definitions from a project, with overrides for tests and the command line."""

from __future__ import annotations

from pathlib import Path

from dagster import (
    AssetSelection,
    DagsterInstance,
    Definitions,
    ResourceDefinition,
    UnresolvedAssetJobDefinition,
    define_asset_job,
    in_process_executor,
)

from partitions.dataflow import Dataflow
from platform_assets.factory.assets import TAG, broken_asset, dataflow_assets, table_key, watermark_key
from platform_assets.factory.checks import row_accounting
from platform_assets.factory.sensors import dataflow_sensor
from platform_assets.metadata import table_metadata, watermark_metadata
from platform_assets.project import Project
from resources.io_managers import RunOptions, TableIOManager, WatermarkIOManager
from resources.platform import Platform
from resources.spark import SparkEngine

CACHE = Path(__file__).resolve().parent.parent / ".strandline" / "cache"


def build_platform(project: Project) -> Platform:
    """The resources of a project; opens nothing."""
    settings = project.spark_settings
    spark = SparkEngine(settings.master, settings.remote, settings.conf, cache=CACHE)
    sources = {name: project.source_place(dataflow) for name, dataflow in project.dataflows.items()}
    return Platform(project.state, project.lake, spark, sources)


def build_definitions(project: Project, platform: Platform | None = None, options: RunOptions | None = None) -> Definitions:
    """Everything that Dagster shows of a project.

    Args:
        project: loaded; dataflows with errors show as assets that fail with them.
        platform: other resources than the project's own.
        options: how runs behave.
    """
    platform = platform or build_platform(project)
    options = options or RunOptions(run_is_live=_run_is_live)
    flows = list(project.dataflows.values())
    return Definitions(
        assets=[*map(dataflow_assets, flows), *(broken_asset("bronze", name, errors) for name, errors in project.broken.items())],
        asset_checks=[row_accounting(flow, platform) for flow in flows],
        jobs=[dataflow_job(flow) for flow in flows],
        sensors=[dataflow_sensor(flow, platform) for flow in flows],
        resources={
            "table": TableIOManager(platform, options, table_metadata),
            "watermark": WatermarkIOManager(platform, watermark_metadata),
            "watermarks": ResourceDefinition(lambda context: platform.manager(), description="The watermark manager: get_watermark, save_watermark."),
            "spark": ResourceDefinition.hardcoded_resource(platform.spark, description="session() gives a Spark session of the run's own."),
        },
        executor=in_process_executor,  # a process, and so a JVM, per step costs 20 s and gains nothing here
    )


def dataflow_job(dataflow: Dataflow) -> UnresolvedAssetJobDefinition:
    """The job that loads one dataflow."""
    selection = AssetSelection.assets(table_key(dataflow), watermark_key(dataflow.name)).without_checks()
    return define_asset_job(f"load_{dataflow.name}", selection | AssetSelection.checks_for_assets(), tags={TAG: dataflow.name}, description=f"Loads what is new of {dataflow.name}.")


def _run_is_live(run_id: str) -> bool | None:
    """Whether Dagster knows the run as going on; None where there is no instance, or it does not know it."""
    try:
        with DagsterInstance.get() as instance:
            run = instance.get_run_by_id(run_id)
    except Exception:  # noqa: BLE001 - whatever fails here, the answer is "nobody knows", and safety does not depend on it
        return None
    return None if run is None else not run.is_finished
