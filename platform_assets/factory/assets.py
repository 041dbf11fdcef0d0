"""A dataflow's table and watermark as one multi-asset with two outputs (docs/reference/dagster.md)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
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
from platform_assets.factory.asset_checks import common_run_checks
from platform_assets.factory.dagster_names import (
    TABLE_MANAGER,
    WATERMARK_MANAGER,
    asset_key,
    pool,
    table_key,
    watermark_key,
)
from platform_assets.factory.kinds import definitions_of
from platform_assets.factory.kinds.contract import SideTable, side_table_of
from platform_assets.project.errors import ProjectError
from resources.dagster.io_managers import Load, TableIOManager, WatermarkIOManager, failure
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.platform.platform import Platform

_ICONS = {"delta": "deltalake"}
"""Formats whose icon in Dagster has another name."""


def dataflow_assets(
    dataflow: Dataflow, platform: Platform, partitions: WindowAssetPartitions | None = None
) -> AssetsDefinition:
    """Return the table and the watermark, in this order: the watermark's manager runs only after the table's succeeded.

    Selected alone, the table is loaded, and the watermark only shown.

    Args:
        dataflow: the definition.
        platform: the resources.
        partitions: of both; None for a kind without partitions.
    """
    of_kind = definitions_of(dataflow)
    checks = [*common_run_checks(dataflow), *of_kind.run_checks(dataflow)]
    table, watermark = table_key(dataflow), watermark_key(dataflow.name)
    beside = side_table_of(of_kind, dataflow)

    def load(context: AssetExecutionContext) -> Iterator[Any]:
        if table not in context.selected_asset_keys:
            yield AssetObservation(watermark, metadata=_watermarks(context).described(dataflow))
            return
        run = Load(dataflow)
        _tables(context).load(context, run)
        yield from _events(context, run, beside)
        run.on_stored()
        if run.outcome is not None and run.outcome.error is not None:
            raise failure(run.outcome.error)
        for check in checks:
            asked = {spec.name for spec in check.specs if spec.key in context.selected_asset_check_keys}
            if run.outcome is not None and asked:
                results = check.evaluate(dataflow, platform, run.outcome)
                yield from (result for result in results if result.check_name in asked)

    load.__annotations__["context"] = AssetExecutionContext  # the type itself: Dagster takes no text for it
    decorate = multi_asset(
        name=dataflow.name,
        outs=_outs(dataflow, platform, beside),
        check_specs=[spec for check in checks for spec in check.specs],
        deps=_deps(dataflow, platform),
        pool=pool(dataflow.name),
        can_subset=not of_kind.one_step,
        required_resource_keys={TABLE_MANAGER, WATERMARK_MANAGER},
        partitions_def=partitions.definition if partitions else None,
        backfill_policy=BackfillPolicy.single_run() if partitions and partitions.definition else None,
    )
    return decorate(load)


def _events(context: AssetExecutionContext, run: Load, beside: SideTable | None) -> Iterator[Any]:
    """Yield what a run has loaded; of one that had nothing to do an observation, which wakes nothing downstream."""
    dataflow = run.dataflow
    if run.had_nothing_to_do:
        yield AssetObservation(table_key(dataflow), metadata=run.metadata)
        return
    yield Output(run, "table")
    if beside is not None and run.outcome is not None and (shown := beside.shown(run.outcome)):
        yield Output(replace(run, metadata=shown), beside.output)
    if run.outcome is None or run.outcome.error is not None:
        return
    watermark = watermark_key(dataflow.name)
    if watermark in context.selected_asset_keys:
        yield Output(run, "watermark")
    else:  # it has moved all the same
        yield from _tables(context).materialisations(run, watermark, _watermarks(context).described(dataflow))


def _tables(context: AssetExecutionContext) -> TableIOManager:
    manager: TableIOManager = getattr(context.resources, TABLE_MANAGER)
    return manager


def _watermarks(context: AssetExecutionContext) -> WatermarkIOManager:
    manager: WatermarkIOManager = getattr(context.resources, WATERMARK_MANAGER)
    return manager


def _outs(dataflow: Dataflow, platform: Platform, beside: SideTable | None) -> dict[str, AssetOut]:
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
    loaded = f"Loaded from {dataflow.source.shown} above a {dataflow.kind} watermark."
    outs = {
        "table": AssetOut(
            key=table_key(dataflow),
            io_manager_key=TABLE_MANAGER,
            description=dataflow.description or loaded,
            kinds=kinds,
            tags=dataflow.tags,
            metadata=_place(dataflow.table, dataflow.target.format, platform)
            | _sharing(dataflow, platform)
            | yaml,
            **common,
        ),
        "watermark": AssetOut(
            key=watermark_key(dataflow.name),
            io_manager_key=WATERMARK_MANAGER,
            description=f"How far {dataflow.name} is loaded: its {dataflow.kind} watermark, from the watermark log.",
            kinds={"json"},
            metadata=yaml,
            **common,
        ),
    }
    if beside is not None:
        outs[beside.output] = AssetOut(
            key=asset_key(beside.asset),
            io_manager_key=TABLE_MANAGER,
            description=beside.description,
            kinds=kinds,
            tags=dataflow.tags,
            metadata=_place(beside.table, dataflow.target.format, platform) | yaml,
            **{**common, "freshness_policy": None},
        )
    return outs


def _place(table: str, format_: str, platform: Platform) -> dict[str, str]:
    """Return what Dagster's own pages show of a table: its name, where it lies, and its format."""
    return {
        "dagster/table_name": table.replace("/", "."),
        "dagster/uri": str(platform.lake.child(table)),
        "dagster/storage_kind": format_,
    }


def _code_reference(file: Path, line: int | None = None) -> dict[str, Any]:
    """Return the link that opens a dataflow's file at a line, by default at its source; nothing if the file is not there."""
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    line = line or next((number for number, text in enumerate(lines, 1) if text.startswith("source:")), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BetaWarning)  # the test of these links tells if Dagster changes them
        reference = LocalFileCodeReference(file_path=str(file), line_number=line, label=file.name)
        return {"dagster/code_references": CodeReferencesMetadataValue(code_references=[reference])}


def _sharing(dataflow: Dataflow, platform: Platform) -> dict[str, str]:
    """Return the table of a dataflow and who else loads it, if several dataflows share it."""
    if not dataflow.target.shared:
        return {}
    others = [maker.name for maker in platform.lineage.makers(dataflow.table) if maker.name != dataflow.name]
    return {"table": dataflow.table, "shared_with": ", ".join(others) or "no other dataflow"}


def _deps(dataflow: Dataflow, platform: Platform) -> list[AssetDep]:
    """Return the tables that a dataflow reads, with all partitions: a row's window or unit there says nothing about its window here."""
    above = platform.lineage.upstream_assets(dataflow)
    return [AssetDep(asset_key(asset), partition_mapping=AllPartitionMapping()) for asset in above]


def broken_asset(layer: str, name: str, errors: Sequence[ProjectError], folder: Path) -> AssetsDefinition:
    """Return the asset of a dataflow whose file, in this project, has errors: its materialisation fails with them."""
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
