"""The usual names of dataflows in Dagster."""

from __future__ import annotations

from dagster import AssetsDefinition

from partitions.dataflow import Dataflow
from platform_assets.factory.asset_specs import dataflow_specs
from platform_assets.factory.assets import dataflow_assets
from platform_assets.translator import StrandlineTranslator
from resources.dagster.names import AssetKeys, DagsterDataflowNames, DagsterNames
from resources.platform.platform import Platform


def names_of(flow: Dataflow, project: str | None = None) -> DagsterDataflowNames:
    """Return the names of a dataflow that is alone in its project."""
    return DagsterNames.of([flow], project)[flow.name]


def names_of_runs(dataflow: str) -> DagsterDataflowNames:
    """Return the names of a dataflow whose runs alone matter."""
    keys: AssetKeys = AssetKeys(DagsterNames().usual_key("watermark"), {})
    return DagsterDataflowNames(dataflow, DagsterNames(), keys)


def assets_of(flow: Dataflow, platform: Platform) -> AssetsDefinition:
    """Return the assets of a dataflow of a project."""
    names = DagsterNames.of([flow])
    specs = dataflow_specs(flow, platform, names[flow.name], StrandlineTranslator())
    return dataflow_assets(flow, platform, names, specs)
