"""Materialisations of partitions that this run, or an unreported dead run, has loaded.

See docs/reference/dagster.md, Runs and partitions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from dagster import (
    AssetExecutionContext,
    AssetMaterialization,
    MetadataValue,
    partition_loading_context,
)

from partitions.dataflow import Dataflow
from resources.dagster.names import DagsterDataflowNames
from resources.dagster.unreported_entries import (
    UnreportedEntries,
    find_unreported,
    mark_reported,
    summarize_entries,
)
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.loop.recorded import committed_slice
from resources.outcome import Outcome
from resources.platform.platform import Platform


@dataclass(frozen=True)
class PartitionEvents:
    """The events of one run, beside its two outputs.

    Attributes:
        platform: the resources.
        partitions: the dataflow's partitions; None if it has none.
        context: the step's context.
        dataflow: loaded by the run.
        names: its names.
        outcome: the run's outcome.
        keys: the requested partitions; None if the run is not over partitions.
    """

    platform: Platform
    partitions: WindowAssetPartitions | None
    context: AssetExecutionContext
    dataflow: Dataflow
    names: DagsterDataflowNames
    outcome: Outcome
    keys: Sequence[str] | None = None

    def report_loaded(self, *, is_replay: bool) -> bool:
        """Materialise each partition that this run has loaded and its output does not stand for.

        Args:
            is_replay: whether the run reads its partitions again; its output stands for all of them.

        Returns:
            whether the output stands for the requested partitions: not if another run has loaded some.
        """
        partitions, context = self.partitions, self.context
        if partitions is None or partitions.definition is None:
            return True
        loaded = partitions.loaded(self.outcome.committed)
        stands_for_all = is_replay or set(self.keys or ()) <= set(loaded)
        covered = set(self.keys or ()) if self.outcome.error is None and stands_for_all else set()
        for key, metadata in loaded.items():
            if key in covered:
                context.add_asset_metadata(metadata, asset_key=self.names.table, partition_key=key)
                continue
            for asset in (self.names.table, self.names.watermark):
                context.log_event(partitions.materialisation(asset, key, metadata))
        return stands_for_all

    def report_dead_runs(self) -> bool:
        """Materialise what dead runs have loaded and not reported; return whether there was anything.

        A failure here fails no run: the next one tries again.
        """
        context, names, before = self.context, self.names, self.outcome.started_at_number
        instance, log, run_id = context.instance, self.platform.log, context.run.run_id
        try:
            unreported = find_unreported(instance, log, names, run_id, before)
            materialisations = list(self._loaded_by_dead_runs(unreported))
        except Exception as error:  # noqa: BLE001 - rows and entries are safe; only their display is missing
            context.log.warning("loads of runs that died are not shown yet: %s", error)
            return False
        for record in materialisations:
            context.log_event(record)
        mark_reported(instance, names, unreported.runs, before)
        return bool(materialisations)

    def _loaded_by_dead_runs(self, unreported: UnreportedEntries) -> Iterator[AssetMaterialization]:
        """Yield the materialisations of dead runs: of the table per run, or of both assets per partition."""
        partitions, context, dataflow = self.partitions, self.context, self.dataflow
        for run_id, entries in groupby(unreported.entries, lambda entry: entry.run_id or ""):
            by = {"loaded_by": MetadataValue.dagster_run(run_id)}
            if partitions is None or partitions.definition is None:
                yield AssetMaterialization(self.names.table, metadata=summarize_entries([*entries]) | by)
                continue
            kind, log = self.platform.kind(dataflow), self.platform.log
            commits = [committed_slice(log, dataflow.name, kind, entry) for entry in entries]
            failed = partitions.failed(self.outcome.committed)
            for key, metadata in partitions.loaded([committed for committed in commits if committed]).items():
                of_both = [
                    partitions.materialisation(asset, key, {**metadata, **by})
                    for asset in (self.names.table, self.names.watermark)
                ]
                # Dagster accepts any key here, but never shows keys of an older definition.
                with partition_loading_context(dynamic_partitions_store=context.instance):
                    is_current = partitions.definition.has_partition_key(str(of_both[0].partition))
                if is_current and key not in failed:
                    yield from of_both
