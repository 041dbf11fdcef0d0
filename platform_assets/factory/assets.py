"""A dataflow's table and watermark as one multi-asset with two outputs (docs/reference/dagster.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dagster import (
    AllPartitionMapping,
    AssetDep,
    AssetExecutionContext,
    AssetMaterialization,
    AssetObservation,
    AssetOut,
    AssetsDefinition,
    AssetSpec,
    BackfillPolicy,
    Failure,
    Output,
    multi_asset,
)

from partitions.dataflow import Dataflow
from platform_assets.dagster_internals import WITHOUT_EVENT
from platform_assets.factory.annotations import annotate
from platform_assets.factory.asset_checks import COMMON_RUN_CHECKS, why_metadata
from platform_assets.factory.asset_specs import DataflowSpecs, code_reference
from platform_assets.factory.check_results import DataflowChecks
from platform_assets.factory.failed_run_checks import results_of_failed_run, table_checks_after_failure
from platform_assets.factory.kinds import definitions_of
from platform_assets.factory.kinds.contract import SideTable, side_table_of
from platform_assets.factory.outside_loads import OutsideLoads
from platform_assets.factory.rule_checks import broken_findings, rule_checks
from platform_assets.factory.run_settings import retry_policy
from platform_assets.project.errors import ProjectError
from resources.dagster.backfills import is_backfill
from resources.dagster.io_managers import Load, TableIOManager, dagster_failure
from resources.dagster.names import DagsterDataflowNames, DagsterNames
from resources.dagster.watermark_io_manager import WatermarkIOManager
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
    kind, own_names = definitions_of(dataflow), names[dataflow.name]
    managers = _Managers(names)
    checks, dataflow_checks = (
        [*COMMON_RUN_CHECKS, *kind.run_checks(dataflow), *rule_checks(dataflow)],
        DataflowChecks(dataflow, own_names),
    )
    side_table = side_table_of(kind, dataflow)
    outside_loads = OutsideLoads(dataflow, platform, own_names, partitions)

    def load(context: AssetExecutionContext) -> Iterator[Any]:
        if own_names.table not in context.selected_asset_keys:
            described = managers.watermark(context).described(dataflow)
            yield AssetObservation(own_names.watermark, metadata=described)
            yield from _unchanged_outputs(context, Load(dataflow), ["watermark"])
            return
        run = Load(dataflow)
        try:
            managers.table(context).load(context, run)
            if not context.instance.is_ephemeral:
                committed = run.outcome.committed if run.outcome else ()
                outside_loads.show(context.instance, committed[0].entry.number - 1 if committed else None)
            yield from _run_events(context, run, own_names, managers, side_table)
            run.on_stored()
            if run.outcome is not None and run.outcome.error is not None:
                raise dagster_failure(run.outcome.error, platform.env)
        except Failure as failure:
            why = why_metadata(platform, dataflow, datetime.now(UTC))
            broken = broken_findings(dataflow, run.outcome.error if run.outcome else None)
            yield from results_of_failed_run(
                context.instance, dataflow_checks, context.selected_asset_check_keys, failure, why, broken
            )
            yield from table_checks_after_failure(
                context.instance, dataflow_checks, platform, kind.table_checks(dataflow)
            )
            if run.outcome is not None and run.outcome.committed:
                yield managers.moved_watermark(context, dataflow)
            raise
        for check in checks:
            requested = {
                spec.name
                for spec in dataflow_checks.specs(check)
                if spec.key in context.selected_asset_check_keys
            }
            if run.outcome is not None and requested:
                findings = check.evaluate(dataflow, platform, run.outcome)
                yield from (dataflow_checks.result(item) for item in findings if item.check in requested)

    annotate(load, context=AssetExecutionContext, returns=Iterator[Any])
    decorate = multi_asset(
        name=own_names.step,
        outs=_outs(names, specs, side_table),
        check_specs=[spec for check in checks for spec in dataflow_checks.specs(check)],
        deps=_deps(dataflow, platform, names, specs),
        pool=own_names.pool,
        op_tags=dataflow.op_tags,
        retry_policy=retry_policy(dataflow),
        can_subset=not kind.materialised_together,
        required_resource_keys={names.table_manager, names.watermark_manager},
        partitions_def=partitions.definition if partitions else None,
        backfill_policy=BackfillPolicy.single_run() if partitions and partitions.definition else None,
    )
    return decorate(load)


@dataclass(frozen=True)
class _Managers:
    """The IO managers of a run.

    Attributes:
        names: the project's names in Dagster.
    """

    names: DagsterNames

    def table(self, context: AssetExecutionContext) -> TableIOManager:
        manager: TableIOManager = getattr(context.resources, self.names.table_manager)
        return manager

    def watermark(self, context: AssetExecutionContext) -> WatermarkIOManager:
        manager: WatermarkIOManager = getattr(context.resources, self.names.watermark_manager)
        return manager

    def moved_watermark(
        self, context: AssetExecutionContext, dataflow: Dataflow
    ) -> AssetMaterialization | AssetObservation:
        """Return the event of a watermark that moved and has no output of its own.

        The asset's page shows the newest event. Without this one it would be that of a partition alone. Dagster
        ends a backfill of partitions, with the runs that it still waits for, at a materialisation without one.
        """
        metadata, watermark = self.watermark(context).described(dataflow), self.names[dataflow.name].watermark
        if is_backfill(context.run):
            return AssetObservation(watermark, metadata=metadata)
        return AssetMaterialization(watermark, metadata=metadata)


def _run_events(
    context: AssetExecutionContext,
    run: Load,
    names: DagsterDataflowNames,
    managers: _Managers,
    side_table: SideTable | None,
) -> Iterator[Any]:
    """Yield the outputs of a run; if it did nothing, an observation, which fires no condition."""
    if run.had_nothing_to_do:
        yield AssetObservation(names.table, metadata=run.metadata)
        if run.reported_dead_runs:
            yield managers.moved_watermark(context, run.dataflow)
        yield from _outputs_of_empty_load(context, run, side_table)
        return
    if not run.stands_for_all_keys:  # each partition that it has loaded has an event of its own
        yield AssetObservation(names.table, metadata=run.metadata)
        yield managers.moved_watermark(context, run.dataflow)
        yield from _unchanged_outputs(context, run, ["table", "watermark"])
        return
    yield Output(run, "table")
    if side_table is not None and run.outcome is not None:
        side_metadata = side_table.metadata_of(run.outcome)
        if side_metadata:
            yield Output(replace(run, metadata=side_metadata), side_table.output)
        elif run.dataflow.empty_load == "continue":
            yield from _unchanged_outputs(context, run, [side_table.output])
    if run.outcome is None or run.outcome.error is not None:
        return
    if names.watermark in context.selected_asset_keys:
        yield Output(run, "watermark")
    else:  # the watermark moved although its asset was not selected
        yield from managers.table(context).materialisations(
            run, names.watermark, managers.watermark(context).described(run.dataflow)
        )


def _outputs_of_empty_load(
    context: AssetExecutionContext, run: Load, side_table: SideTable | None
) -> Iterator[Output[Any]]:
    """Yield outputs without events, so that the assets downstream run with the table as it is.

    None if the dataflow's file says skip, or while there is no table.
    """
    if run.dataflow.empty_load == "skip":
        context.log.info("nothing new: assets downstream in this run are skipped (empty_load: skip)")
        return
    if not run.has_table:
        context.log.warning(
            "nothing loaded yet: assets downstream in this run are skipped, since there is no table to read"
        )
        return
    yield from _unchanged_outputs(
        context, run, ["table", *([side_table.output] if side_table else ()), "watermark"]
    )


def _unchanged_outputs(
    context: AssetExecutionContext, run: Load, outputs: Sequence[str]
) -> Iterator[Output[Any]]:
    """Yield the selected ones of some outputs, for which Dagster stores no materialisation."""
    selected = context.op_execution_context.selected_output_names
    for output in outputs:
        if output in selected:
            yield Output(replace(run, is_unchanged=True), output, metadata=WITHOUT_EVENT)


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
