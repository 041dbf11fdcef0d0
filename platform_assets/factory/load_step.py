"""The step of a dataflow in Dagster: what a run loads, and its events (docs/reference/dagster.md)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from dagster import (
    AssetCheckSpec,
    AssetExecutionContext,
    AssetMaterialization,
    AssetObservation,
    Failure,
    Output,
)

from partitions.dataflow import Dataflow
from platform_assets.dagster_internals import WITHOUT_EVENT
from platform_assets.factory.asset_checks import COMMON_RUN_CHECKS, why_metadata
from platform_assets.factory.check_results import DataflowChecks, RunCheck
from platform_assets.factory.failed_run_checks import results_of_failed_run, table_checks_after_failure
from platform_assets.factory.kinds import definitions_of
from platform_assets.factory.kinds.contract import SideTable, side_table_of
from platform_assets.factory.outside_loads import OutsideLoads
from platform_assets.factory.rule_checks import broken_findings, rule_checks
from resources.dagster.backfills import is_backfill
from resources.dagster.io_managers import Load, TableIOManager, dagster_failure
from resources.dagster.names import DagsterDataflowNames, DagsterNames
from resources.dagster.watermark_io_manager import WatermarkIOManager
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.platform.platform import Platform


@dataclass(frozen=True)
class LoadStep:
    """The step that loads a dataflow's table and moves its watermark.

    Attributes:
        dataflow: the definition.
        platform: the resources.
        names: the project's names in Dagster.
        partitions: the partitions of both assets; None for a kind without partitions.
    """

    dataflow: Dataflow
    platform: Platform
    names: DagsterNames
    partitions: WindowAssetPartitions | None = None

    @property
    def check_specs(self) -> Sequence[AssetCheckSpec]:
        """The specs of the checks of a run."""
        return [spec for check in self._run_checks for spec in self._checks.specs(check)]

    def events(self, context: AssetExecutionContext) -> Iterator[Any]:
        """Load, and yield the events and outputs of the run.

        Raises:
            Failure: the run failed; what it has committed is told before.
        """
        if self._own_names.table not in context.selected_asset_keys:
            yield from self._shown_watermark(context)
            return
        run = Load(self.dataflow)
        try:
            yield from self._load(context, run)
        except Failure as failure:
            yield from self._events_of_failure(context, run, failure)
            raise
        yield from self._check_results(context, run)

    def _shown_watermark(self, context: AssetExecutionContext) -> Iterator[Any]:
        described = self._managers.watermark(context).described(self.dataflow)
        yield AssetObservation(self._own_names.watermark, metadata=described)
        yield from _unchanged_outputs(context, Load(self.dataflow), ["watermark"])

    def _load(self, context: AssetExecutionContext, run: Load) -> Iterator[Any]:
        self._managers.table(context).load(context, run)
        if not context.instance.is_ephemeral:
            committed = run.outcome.committed if run.outcome else ()
            self._outside_loads.show(context.instance, committed[0].entry.number - 1 if committed else None)
        side_table = side_table_of(definitions_of(self.dataflow), self.dataflow)
        yield from _run_events(context, run, self._own_names, self._managers, side_table)
        run.on_stored()
        if run.outcome is not None and run.outcome.error is not None:
            raise dagster_failure(run.outcome.error, self.platform.env)

    def _events_of_failure(
        self, context: AssetExecutionContext, run: Load, failure: Failure
    ) -> Iterator[Any]:
        why = why_metadata(self.platform, self.dataflow, datetime.now(UTC))
        broken = broken_findings(self.dataflow, run.outcome.error if run.outcome else None)
        yield from results_of_failed_run(
            context.instance, self._checks, context.selected_asset_check_keys, failure, why, broken
        )
        table_checks = definitions_of(self.dataflow).table_checks(self.dataflow)
        yield from table_checks_after_failure(context.instance, self._checks, self.platform, table_checks)
        if run.outcome is not None and run.outcome.committed:
            yield self._managers.moved_watermark(context, self.dataflow)

    def _check_results(self, context: AssetExecutionContext, run: Load) -> Iterator[Any]:
        for check in self._run_checks:
            specs = self._checks.specs(check)
            requested = {spec.name for spec in specs if spec.key in context.selected_asset_check_keys}
            if run.outcome is not None and requested:
                findings = check.evaluate(self.dataflow, self.platform, run.outcome)
                yield from (self._checks.result(item) for item in findings if item.check in requested)

    @property
    def _own_names(self) -> DagsterDataflowNames:
        return self.names[self.dataflow.name]

    @cached_property
    def _managers(self) -> _Managers:
        return _Managers(self.names)

    @cached_property
    def _checks(self) -> DataflowChecks:
        return DataflowChecks(self.dataflow, self._own_names)

    @cached_property
    def _run_checks(self) -> Sequence[RunCheck]:
        of_kind = definitions_of(self.dataflow).run_checks(self.dataflow)
        return [*COMMON_RUN_CHECKS, *of_kind, *rule_checks(self.dataflow)]

    @cached_property
    def _outside_loads(self) -> OutsideLoads:
        return OutsideLoads(self.dataflow, self.platform, self._own_names, self.partitions)


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
