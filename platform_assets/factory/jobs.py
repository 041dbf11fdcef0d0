"""The job that loads one dataflow, for the CLI and the sensors."""

from __future__ import annotations

from collections.abc import Sequence

from dagster import AssetCheckKey, AssetSelection, in_process_executor

from partitions.dataflow import Dataflow
from platform_assets.dagster_jobs import LocationJob, OwnAssets
from platform_assets.factory.kinds import definitions_of
from platform_assets.factory.reconcile_job import reconcile_checks
from resources.dagster.names import DagsterDataflowNames


def job_name(names: DagsterDataflowNames) -> str:
    """Return the name of a dataflow's job."""
    return names.job("load")


def loading_jobs(names: DagsterDataflowNames) -> Sequence[str]:
    """Return the names of a dataflow's jobs that load its table, whatever its kind."""
    return job_name(names), names.job("late")


def dataflow_job(dataflow: Dataflow, names: DagsterDataflowNames) -> LocationJob:
    """Return the job of a dataflow's assets and of the checks that its runs evaluate.

    These are the dataflow's own and those that a user's code defines. The operator requests the other checks.
    """
    return LocationJob.of(
        job_name(names),
        OwnAssets([*names.keys.tables.values(), names.watermark], _requested_checks(dataflow, names)),
        tags={**dataflow.run_tags, **names.run_tags},
        description=f"Loads new data of {dataflow.name}.",
        executor=in_process_executor,
    )


def _requested_checks(dataflow: Dataflow, names: DagsterDataflowNames) -> AssetSelection:
    checks = (*reconcile_checks(dataflow), *definitions_of(dataflow).table_checks(dataflow))
    keys = (AssetCheckKey(names.table, check.name) for check in checks if not check.with_runs)
    return AssetSelection.checks(*keys)
