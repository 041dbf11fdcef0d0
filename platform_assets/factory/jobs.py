"""The job that loads one dataflow, for the CLI and the sensors."""

from __future__ import annotations

from typing import Any

from dagster import AssetCheckKey, AssetSelection, define_asset_job, in_process_executor

from partitions.dataflow import Dataflow
from platform_assets.factory.dagster_names import asset_key, table_key, watermark_key
from platform_assets.factory.kinds import definitions_of
from resources.dagster.unreported_entries import DATAFLOW_TAG


def job_name(name: str) -> str:
    """Return the name of a dataflow's job."""
    return f"load_{name}"


def dataflow_job(dataflow: Dataflow) -> Any:
    """Return the job of a dataflow's assets and of the checks that its runs evaluate.

    The operator requests the other checks.
    """
    side_tables = map(asset_key, dataflow.tables_beside)
    assets = AssetSelection.assets(table_key(dataflow), *side_tables, watermark_key(dataflow.name))
    return define_asset_job(
        job_name(dataflow.name),
        assets - _requested_checks(dataflow),
        tags={DATAFLOW_TAG: dataflow.name},
        description=f"Loads new data of {dataflow.name}.",
        executor_def=in_process_executor,
    )


def _requested_checks(dataflow: Dataflow) -> AssetSelection:
    checks = definitions_of(dataflow).table_checks(dataflow)
    keys = (AssetCheckKey(table_key(dataflow), check.name) for check in checks if not check.with_runs)
    return AssetSelection.checks(*keys)
