"""The names of a project's parts in Dagster: keys of assets and resources, pools, tags of runs."""

from __future__ import annotations

from dagster import AssetKey, RunRequest

from partitions.dataflow import Dataflow
from resources.dagster.unreported_entries import DATAFLOW_TAG

TABLE_MANAGER, WATERMARK_MANAGER = "strandline_table", "strandline_watermark"
"""The keys of the IO managers. The prefix keeps them apart from resources of a user's own definitions, which these may be merged with."""

WATERMARKS, SPARK = "strandline_watermarks", "strandline_spark"
"""The keys of the resources that any asset may ask for."""


def asset_key(name: str) -> AssetKey:
    """Return the key of an asset named ``<layer>/<name>``."""
    return AssetKey(name.split("/"))


def table_key(dataflow: Dataflow) -> AssetKey:
    """Return the key of the dataflow's table."""
    return asset_key(dataflow.asset)


def watermark_key(name: str) -> AssetKey:
    """Return the key of a dataflow's watermark."""
    return AssetKey(["watermark", name])


def pool(name: str) -> str:
    """Return the pool that all runs of a dataflow share."""
    return f"strandline/{name}"


def run_request(dataflow: Dataflow, run_key: str) -> RunRequest:
    """Return a request for a run of a dataflow; Dagster runs each key once."""
    return RunRequest(run_key=run_key, tags={DATAFLOW_TAG: dataflow.name})
