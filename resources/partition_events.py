"""Materialisations of partitions: of those that a run has loaded, and of what runs that died have loaded and not told (docs/dagster.md, Runs and partitions)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from dagster import (
    AssetKey,
    AssetMaterialization,
    DagsterEvent,
    MetadataValue,
    OutputContext,
    partition_loading_context,
)

from partitions.dataflow import Dataflow
from resources.asset_partitions import AssetPartitions
from resources.loop.outcome import Outcome
from resources.loop.recorded import recorded_commit
from resources.platform import Platform
from resources.reporting import Untold, summary, tell, untold


@dataclass(frozen=True)
class PartitionEvents:
    """The events of one run, beside its two outputs.

    Attributes:
        platform: the resources.
        partitions: of the dataflow; None if it has none.
        context: of the table's output.
        dataflow: what was loaded.
        outcome: of the run.
    """

    platform: Platform
    partitions: AssetPartitions | None
    context: OutputContext
    dataflow: Dataflow
    outcome: Outcome

    def loaded(self) -> Iterator[DagsterEvent]:
        """Yield the event of each partition that this run has loaded, and that its output does not stand for."""
        partitions, context, dataflow = self.partitions, self.context, self.dataflow
        if partitions is None or partitions.definition is None:
            return
        whole = context.has_asset_partitions and self.outcome.error is None
        covered = set(context.asset_partition_keys) if whole else set()
        for key, metadata in partitions.loaded(self.outcome.committed).items():
            if key in covered:
                context.step_context.add_asset_metadata(
                    metadata, asset_key=context.asset_key, partition_key=key
                )
                continue
            for asset in (context.asset_key, AssetKey(["watermark", dataflow.name])):
                yield DagsterEvent.asset_materialization(
                    context.step_context, partitions.materialisation(asset, key, metadata)
                )

    def left_untold(self) -> Iterator[DagsterEvent]:
        """Yield the events of what runs that died have loaded and not told. What fails here fails no run: the next one tries again."""
        context, dataflow, before = self.context, self.dataflow, self.outcome.started_at_number
        instance, log = context.step_context.instance, self.platform.log
        try:
            left = untold(instance, log, dataflow.name, context.run_id, before)
            made = list(self._loaded_by_dead_runs(left))
        except Exception as error:  # noqa: BLE001 - the rows are there, and so is what this run has done
            context.log.warning("what runs that died have loaded is not shown yet: %s", error)
            return
        for record in made:
            yield DagsterEvent.asset_materialization(context.step_context, record)
        tell(instance, dataflow.name, left.runs, before)

    def _loaded_by_dead_runs(self, left: Untold) -> Iterator[AssetMaterialization]:
        """Each partition; of an asset without partitions each run as a whole."""
        partitions, context, dataflow = self.partitions, self.context, self.dataflow
        for run_id, entries in groupby(left.entries, lambda entry: entry.run_id or ""):
            by = {"loaded_by": MetadataValue.dagster_run(run_id)}
            if partitions is None or partitions.definition is None:
                yield AssetMaterialization(context.asset_key, metadata=summary([*entries]) | by)
                continue
            kind, log = self.platform.kind(dataflow), self.platform.log
            commits = [recorded_commit(log, dataflow.name, kind, entry) for entry in entries]
            failed = partitions.failed(self.outcome.committed)
            for key, metadata in partitions.loaded([committed for committed in commits if committed]).items():
                of_both = [
                    partitions.materialisation(asset, key, {**metadata, **by})
                    for asset in (context.asset_key, AssetKey(["watermark", dataflow.name]))
                ]
                # Dagster takes any key for such an event, and shows none of another definition.
                with partition_loading_context(dynamic_partitions_store=context.step_context.instance):
                    known = partitions.definition.has_partition_key(str(of_both[0].partition))
                if known and key not in failed:
                    yield from of_both
