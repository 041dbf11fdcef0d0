"""The job that loads one dataflow: the CLI and the sensor run it."""

from __future__ import annotations

from typing import Any

from dagster import AssetCheckKey, AssetSelection, define_asset_job, in_process_executor

from partitions.dataflow import Dataflow
from platform_assets.factory.asset_checks import ROW_ACCOUNTING
from platform_assets.factory.dagster_names import asset_key, table_key, watermark_key
from platform_assets.factory.kinds import definitions_of
from resources.dagster.unreported_entries import DATAFLOW_TAG


def job_name(name: str) -> str:
    """Return the name of a dataflow's job."""
    return f"load_{name}"


def dataflow_job(dataflow: Dataflow) -> Any:
    """Return a job of all of its assets and the checks of what its runs change; the operator requests the other checks."""
    beside = map(asset_key, dataflow.tables_beside)
    assets = AssetSelection.assets(table_key(dataflow), *beside, watermark_key(dataflow.name))
    return define_asset_job(
        job_name(dataflow.name),
        assets - _of_the_whole_table(dataflow),
        tags={DATAFLOW_TAG: dataflow.name},
        description=f"Loads what is new of {dataflow.name}.",
        executor_def=in_process_executor,
    )


def _of_the_whole_table(dataflow: Dataflow) -> AssetSelection:
    checks = [ROW_ACCOUNTING, *definitions_of(dataflow).table_checks(dataflow)]
    keys = (AssetCheckKey(table_key(dataflow), check.name) for check in checks if not check.with_runs)
    return AssetSelection.checks(*keys)
