"""A dataflow's table and watermark as one multi-asset with two outputs (docs/reference/dagster.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from dagster import (
    AllPartitionMapping,
    AssetDep,
    AssetExecutionContext,
    AssetOut,
    AssetsDefinition,
    AssetSpec,
    BackfillPolicy,
    Failure,
    multi_asset,
)

from partitions.dataflow import Dataflow
from platform_assets.factory.annotations import annotate
from platform_assets.factory.asset_specs import DataflowSpecs, code_reference
from platform_assets.factory.kinds import definitions_of
from platform_assets.factory.kinds.contract import SideTable, side_table_of
from platform_assets.factory.load_step import LoadStep
from platform_assets.factory.run_settings import retry_policy
from platform_assets.project.errors import ProjectError
from resources.dagster.names import DagsterNames
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.platform.platform import Platform


def dataflow_assets(
    dataflow: Dataflow,
    platform: Platform,
    names: DagsterNames,
    specs: DataflowSpecs,
    partitions: WindowAssetPartitions | None = None,
) -> AssetsDefinition:
    """Return a dataflow's table and watermark assets, in this order.

    The watermark's manager then runs only after the table's succeeded. If the watermark is selected alone,
    nothing is loaded and the watermark is only shown.

    Args:
        dataflow: the definition.
        platform: the resources.
        names: the project's names in Dagster.
        specs: the assets' specs.
        partitions: the partitions of both assets; None for a kind without partitions.
    """
    own_names, side_table = names[dataflow.name], side_table_of(definitions_of(dataflow), dataflow)
    step = LoadStep(dataflow, platform, names, partitions)

    def load(context: AssetExecutionContext) -> Iterator[Any]:
        yield from step.events(context)

    annotate(load, context=AssetExecutionContext, returns=Iterator[Any])
    decorate = multi_asset(
        name=own_names.step,
        outs=_outs(names, specs, side_table),
        check_specs=step.check_specs,
        deps=_deps(dataflow, platform, names, specs),
        pool=own_names.pool,
        op_tags=dataflow.op_tags,
        retry_policy=retry_policy(dataflow),
        can_subset=not definitions_of(dataflow).materialised_together,
        required_resource_keys={names.table_manager, names.watermark_manager},
        partitions_def=partitions.definition if partitions else None,
        backfill_policy=BackfillPolicy.single_run() if partitions and partitions.definition else None,
    )
    return decorate(load)


def _outs(names: DagsterNames, specs: DataflowSpecs, side_table: SideTable | None) -> dict[str, AssetOut]:
    outs = {
        "table": _out(specs.table, names.table_manager),
        "watermark": _out(specs.watermark, names.watermark_manager),
    }
    if side_table is not None and specs.beside is not None:
        outs[side_table.output] = _out(specs.beside, names.table_manager)
    return outs


def _out(spec: AssetSpec, io_manager_key: str) -> AssetOut:
    return AssetOut.from_spec(
        spec.replace_attributes(deps=()), is_required=False, io_manager_key=io_manager_key
    )


def _deps(
    dataflow: Dataflow, platform: Platform, names: DagsterNames, specs: DataflowSpecs
) -> list[AssetDep]:
    """Return the tables that a dataflow reads, with all their partitions, and what a translator adds.

    The window or unit of an upstream row says nothing about the row's window here.
    """
    upstream = [names.key_of(asset) for asset in platform.lineage.upstream_assets(dataflow)]
    deps = {key: AssetDep(key, partition_mapping=AllPartitionMapping()) for key in upstream}
    return list(({dep.asset_key: dep for dep in specs.added_deps} | deps).values())


def broken_asset(
    layer: str, name: str, errors: Sequence[ProjectError], folder: Path, names: DagsterNames
) -> AssetsDefinition:
    """Return an asset for a dataflow whose file has errors; its materialisation fails with them."""
    text = "\n".join(str(error) for error in errors)

    key = names.usual_key(f"{layer}/{name}")

    @multi_asset(
        name=key.to_python_identifier(),
        outs={
            "table": AssetOut(
                key=key,
                group_name=layer,
                description=f"This dataflow's file has errors:\n\n```\n{text}\n```",
                kinds={"error"},
                metadata=code_reference(folder / errors[0].file, errors[0].line),
            )
        },
        pool=names.tags.pool(name),
    )
    def load() -> None:
        raise Failure(
            description=text, metadata={"code": "configuration", "exit_code": 2}, allow_retries=False
        )

    return load
