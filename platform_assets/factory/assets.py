"""A dataflow's table and watermark as one multi-asset with two outputs (docs/reference/dagster.md)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dagster import (
    AllPartitionMapping,
    AssetDep,
    AssetExecutionContext,
    AssetKey,
    AssetObservation,
    AssetOut,
    AssetsDefinition,
    BackfillPolicy,
    BetaWarning,
    CodeReferencesMetadataValue,
    Failure,
    FreshnessPolicy,
    LocalFileCodeReference,
    Output,
    multi_asset,
)

from partitions.dataflow import Dataflow
from platform_assets.factory.asset_checks import common_run_checks, why_metadata
from platform_assets.factory.dagster_names import (
    TABLE_MANAGER,
    WATERMARK_MANAGER,
    asset_key,
    pool,
    table_key,
    watermark_key,
)
from platform_assets.factory.failed_run_checks import results_of_failed_run
from platform_assets.factory.kinds import definitions_of
from platform_assets.factory.kinds.contract import SideTable, side_table_of
from platform_assets.project.errors import ProjectError
from resources.dagster.io_managers import Load, TableIOManager, WatermarkIOManager, dagster_failure
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.platform.platform import Platform

WATERMARK_GROUP = "watermarks"
"""The group of all watermarks, so that a layer's group shows one asset for each dataflow."""

_ICONS = {"delta": "deltalake"}
"""Names of Dagster's icons for formats where they differ."""


def dataflow_assets(
    dataflow: Dataflow, platform: Platform, partitions: WindowAssetPartitions | None = None
) -> AssetsDefinition:
    """Return a dataflow's table and watermark assets, in this order.

    The watermark's manager then runs only after the table's succeeded. If the watermark is selected alone,
    nothing is loaded and the watermark is only shown.

    Args:
        dataflow: the definition.
        platform: the resources.
        partitions: the partitions of both assets; None for a kind without partitions.
    """
    kind = definitions_of(dataflow)
    checks = [*common_run_checks(dataflow), *kind.run_checks(dataflow)]
    table, watermark = table_key(dataflow), watermark_key(dataflow.name)
    side_table = side_table_of(kind, dataflow)

    def load(context: AssetExecutionContext) -> Iterator[Any]:
        if table not in context.selected_asset_keys:
            yield AssetObservation(watermark, metadata=_watermark_manager(context).described(dataflow))
            return
        run = Load(dataflow)
        try:
            _table_manager(context).load(context, run)
            yield from _run_events(context, run, side_table)
            run.on_stored()
            if run.outcome is not None and run.outcome.error is not None:
                raise dagster_failure(run.outcome.error)
        except Failure as failure:
            why = why_metadata(platform, dataflow, datetime.now(UTC))
            yield from results_of_failed_run(
                context.instance, context.selected_asset_check_keys, failure, why
            )
            raise
        for check in checks:
            requested_checks = {
                spec.name for spec in check.specs if spec.key in context.selected_asset_check_keys
            }
            if run.outcome is not None and requested_checks:
                results = check.evaluate(dataflow, platform, run.outcome)
                yield from (result for result in results if result.check_name in requested_checks)

    load.__annotations__["context"] = AssetExecutionContext  # Dagster needs the type, not its name as text
    decorate = multi_asset(
        name=dataflow.name,
        outs=_outs(dataflow, platform, side_table),
        check_specs=[spec for check in checks for spec in check.specs],
        deps=_deps(dataflow, platform),
        pool=pool(dataflow.name),
        can_subset=not kind.materialised_together,
        required_resource_keys={TABLE_MANAGER, WATERMARK_MANAGER},
        partitions_def=partitions.definition if partitions else None,
        backfill_policy=BackfillPolicy.single_run() if partitions and partitions.definition else None,
    )
    return decorate(load)


def _run_events(context: AssetExecutionContext, run: Load, side_table: SideTable | None) -> Iterator[Any]:
    """Yield the outputs of a run; an observation, which wakes nothing downstream, if it did nothing."""
    dataflow = run.dataflow
    if run.had_nothing_to_do:
        yield AssetObservation(table_key(dataflow), metadata=run.metadata)
        return
    yield Output(run, "table")
    if (
        side_table is not None
        and run.outcome is not None
        and (side_metadata := side_table.metadata_of(run.outcome))
    ):
        yield Output(replace(run, metadata=side_metadata), side_table.output)
    if run.outcome is None or run.outcome.error is not None:
        return
    watermark = watermark_key(dataflow.name)
    if watermark in context.selected_asset_keys:
        yield Output(run, "watermark")
    else:  # the watermark moved although its asset was not selected
        yield from _table_manager(context).materialisations(
            run, watermark, _watermark_manager(context).described(dataflow)
        )


def _table_manager(context: AssetExecutionContext) -> TableIOManager:
    manager: TableIOManager = getattr(context.resources, TABLE_MANAGER)
    return manager


def _watermark_manager(context: AssetExecutionContext) -> WatermarkIOManager:
    manager: WatermarkIOManager = getattr(context.resources, WATERMARK_MANAGER)
    return manager


def _outs(dataflow: Dataflow, platform: Platform, side_table: SideTable | None) -> dict[str, AssetOut]:
    freshness = dataflow.freshness and FreshnessPolicy.time_window(
        fail_window=dataflow.freshness.fail, warn_window=dataflow.freshness.warn
    )
    common: dict[str, Any] = {
        "group_name": dataflow.layer,
        "owners": list(dataflow.owners) or None,
        "is_required": False,
        "freshness_policy": freshness,
    }
    yaml = _code_reference(platform.folder / f"dataflows/{dataflow.name}.yaml")
    kinds = {_ICONS.get(dataflow.target.format, dataflow.target.format), "spark"}
    loaded = f"Loaded from {dataflow.source.label} above a {dataflow.kind} watermark."
    outs = {
        "table": AssetOut(
            key=table_key(dataflow),
            io_manager_key=TABLE_MANAGER,
            description=dataflow.description or loaded,
            kinds=kinds,
            tags=dataflow.tags,
            metadata=_table_facts(dataflow.table, dataflow.target.format, platform)
            | _sharing(dataflow, platform)
            | yaml,
            **common,
        ),
        "watermark": AssetOut(
            key=watermark_key(dataflow.name),
            io_manager_key=WATERMARK_MANAGER,
            description=f"How far {dataflow.name} is loaded and what is missing, by its {dataflow.kind} watermark. "
            f"Whether runs succeed, and why one fails, is on the page of its table, {dataflow.asset}.",
            kinds={"json"},
            metadata=yaml,
            **{**common, "freshness_policy": None, "group_name": WATERMARK_GROUP},
        ),
    }
    if side_table is not None:
        outs[side_table.output] = AssetOut(
            key=asset_key(side_table.asset),
            io_manager_key=TABLE_MANAGER,
            description=side_table.description,
            kinds=kinds,
            tags=dataflow.tags,
            metadata=_table_facts(side_table.table, dataflow.target.format, platform) | yaml,
            **{**common, "freshness_policy": None},
        )
    return outs


def _table_facts(table: str, format_: str, platform: Platform) -> dict[str, str]:
    """Return a table's name, location and format under Dagster's own metadata keys."""
    return {
        "dagster/table_name": table.replace("/", "."),
        "dagster/uri": str(platform.lake.child(table)),
        "dagster/storage_kind": format_,
    }


def _code_reference(file: Path, line: int | None = None) -> dict[str, Any]:
    """Return the link that opens a dataflow's file at a line; nothing if the file is missing.

    The default line is that of ``source:``.
    """
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    line = line or next((number for number, text in enumerate(lines, 1) if text.startswith("source:")), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetaWarning)  # a test of these links fails if Dagster changes them
        reference = LocalFileCodeReference(file_path=str(file), line_number=line, label=file.name)
        return {"dagster/code_references": CodeReferencesMetadataValue(code_references=[reference])}


def _sharing(dataflow: Dataflow, platform: Platform) -> dict[str, str]:
    """Return a shared table and the other dataflows that load it; nothing if it is not shared."""
    if not dataflow.target.shared:
        return {}
    sharing_dataflows = [
        maker.name for maker in platform.lineage.makers(dataflow.table) if maker.name != dataflow.name
    ]
    return {"table": dataflow.table, "shared_with": ", ".join(sharing_dataflows) or "no other dataflow"}


def _deps(dataflow: Dataflow, platform: Platform) -> list[AssetDep]:
    """Return the tables that a dataflow reads, with all their partitions.

    The window or unit of an upstream row says nothing about the row's window here.
    """
    upstream = platform.lineage.upstream_assets(dataflow)
    return [AssetDep(asset_key(asset), partition_mapping=AllPartitionMapping()) for asset in upstream]


def broken_asset(layer: str, name: str, errors: Sequence[ProjectError], folder: Path) -> AssetsDefinition:
    """Return an asset for a dataflow whose file has errors; its materialisation fails with them."""
    text = "\n".join(str(error) for error in errors)

    @multi_asset(
        name=name,
        outs={
            "table": AssetOut(
                key=AssetKey([layer, name]),
                group_name=layer,
                description=f"This dataflow's file has errors:\n\n```\n{text}\n```",
                kinds={"error"},
                metadata=_code_reference(folder / errors[0].file, errors[0].line),
            )
        },
        pool=pool(name),
    )
    def load() -> None:
        raise Failure(
            description=text, metadata={"code": "configuration", "exit_code": 2}, allow_retries=False
        )

    return load
