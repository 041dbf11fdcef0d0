"""Table and watermark as two outputs of one step (docs/reference/dagster.md).

The table's manager drives the loop, in the step's body: write, verify and append for each slice. So before
any output exists, the step knows whether there was something to do; if not, it yields none. The
watermark's manager runs after it, checks that the newest entry is the one of this run, and shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    DagsterInstance,
    DagsterRun,
    Failure,
    InputContext,
    IOManager,
    OutputContext,
)

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, StrandlineError, UpstreamNotLoaded, shorten_to_line
from partitions.plan import pluralize
from partitions.request import DUE, Forced, Request
from partitions.sentinels import Watermark
from resources.connections.places import Place
from resources.dagster.backfills import backfill_of
from resources.dagster.partition_events import PartitionEvents
from resources.dagster.run_options import RunOptions
from resources.dagster.unreported_entries import DATAFLOW_TAG, HIDDEN, mark_reported
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.loop.loop import Loop, clock
from resources.notes.last_run import note_failed_start
from resources.outcome import Observer, Outcome, Step
from resources.platform.platform import Platform
from resources.replay.chunk_runs import Report
from resources.replay.in_place import read_again
from resources.tables.registry import find_table
from resources.watermarks.entry import Entry, Holder
from resources.watermarks.holder import current_holder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


HOLDER_TAG = f"{HIDDEN}holder"
"""The hidden tag of every run that started to load: its process."""


PLAN_TAG = "strandline/plan"
"""The tag that says what a run does. A run over partitions without it was requested by no plan, and ignores the cutoffs."""

_LONGEST_PLAN = 120
"""The most letters of a plan in a tag."""

_NAMED = 5
"""The most waiting work units that an error names."""

_OF_A_PARTITION = ("rows", "work_units")
"""Metadata of both a run and each of its partitions."""


@dataclass
class Load:
    """The value of both outputs: the dataflow, and the outcome once the table's manager has loaded it.

    Attributes:
        keys: the requested partitions; None if the run is not over partitions.
        metadata: what the table shows of the run.
        on_stored: called when Dagster has stored all events of the run.
    """

    dataflow: Dataflow
    outcome: Outcome | None = None
    keys: Sequence[str] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    on_stored: Callable[[], None] = lambda: None

    @property
    def had_nothing_to_do(self) -> bool:
        """Return whether nothing was new and no partition was requested.

        A backfill marks partitions as failed that its run does not materialise.
        """
        outcome = self.outcome
        return outcome is not None and outcome.status == "nothing" and self.keys is None


DescribeRun = Callable[[Outcome, Place], Mapping[str, Any]]
"""Metadata of a run: its outcome, the table's place."""

DescribeChunks = Callable[[Sequence[Report]], Mapping[str, Any]]
"""Metadata of the chunks of a replay, as they are now."""

DescribeEntry = Callable[[Dataflow, Entry | None], Mapping[str, Any]]
"""Metadata of a dataflow's watermark."""


class TableIOManager(IOManager):
    """Loads a dataflow into its table; provides the table to downstream assets as a Spark DataFrame."""

    def __init__(
        self,
        platform: Platform,
        options: RunOptions,
        describe: DescribeRun,
        describe_chunks: DescribeChunks,
        partitions: Mapping[str, WindowAssetPartitions] | None = None,
    ) -> None:
        """Use a project's resources.

        Args:
            platform: the resources.
            options: how runs behave.
            describe: returns the metadata of a materialisation.
            describe_chunks: returns the metadata of chunks while a backfill works.
            partitions: the partitions of partitioned dataflows, by name.
        """
        self._platform = platform
        self._options = options
        self._describe = describe
        self._describe_chunks = describe_chunks
        self._partitions = partitions or {}
        self._loops: list[Loop[Any]] = []

    def close(self) -> None:
        """Let a warm engine prepare the next run, once this run has reported everything."""
        for loop in self._loops:
            loop.prepare_next()

    def load(self, context: AssetExecutionContext, load: Load) -> None:
        """Run the loop; raise its failure if nothing was committed, or the run is over partitions.

        Loaded partitions that the output does not stand for are materialised one by one: all of them in a
        run without partitions, and those that did not fail in a run over partitions.

        Raises:
            Failure: the run's error, with its choices as metadata.
        """
        dataflow, now = load.dataflow, self._options.now or clock()
        instance, run_id = context.instance, context.run.run_id
        if not instance.is_ephemeral:  # else no sensor will ask for the run
            mark_run(instance, run_id, dataflow.name)
        load.keys = self._keys(context, dataflow)
        load.outcome = outcome = self._run(context, load, now)
        outcome.error = outcome.error or self._waiting_partitions(load, now)
        self._options.report(outcome)
        for warning in outcome.new_warnings:
            context.log.warning(warning)
        load.metadata = self._describe(outcome, self._platform.lake.child(dataflow.table))
        load.on_stored = lambda: mark_reported(instance, dataflow.name, [run_id], _number(outcome))
        events = PartitionEvents(
            self._platform, self._partitions.get(dataflow.name), context, dataflow, outcome, load.keys
        )
        events.report_dead_runs()
        events.report_loaded()
        # Committed rows are in the table, so they are materialised, and the step fails right after. The output of a run over
        # partitions would stand for all of them, so it is not yielded if one of them failed.
        if outcome.error is not None and (load.keys is not None or not outcome.committed):
            context.log_event(AssetObservation(events.table, metadata=load.metadata))
            load.on_stored()
            raise dagster_failure(outcome.error)

    def handle_output(self, context: OutputContext, obj: Load) -> None:
        """Add the metadata of what the run has loaded."""
        if obj.outcome is None:
            raise dagster_failure(
                ConfigurationError("the table's output came before its load: expected the load first")
            )
        _add_metadata(context, obj.metadata, ("status", "state_number", "seconds"))

    def materialisations(
        self, load: Load, asset: AssetKey, metadata: Mapping[str, Any]
    ) -> Iterator[AssetMaterialization]:
        """Yield the materialisations of another asset that the run has loaded: one, or one per partition."""
        partitions = self._partitions.get(load.dataflow.name)
        if partitions is None or load.keys is None:
            yield AssetMaterialization(asset, metadata=metadata)
        else:
            yield from (partitions.materialisation(asset, key, metadata) for key in load.keys)

    def _keys(self, context: AssetExecutionContext, dataflow: Dataflow) -> Sequence[str] | None:
        partitions, step = self._partitions.get(dataflow.name), context.op_execution_context
        if partitions is None or partitions.definition is None:
            return None
        return step.partition_keys if step.has_partition_key or step.has_partition_key_range else None

    def _run(self, context: AssetExecutionContext, load: Load, now: datetime) -> Outcome:
        """Load the request of the run; partitions that no plan has requested are a replay in place.

        See docs/reference/replay.md, Backfills.
        """
        dataflow, run = load.dataflow, context.run
        request = self._request(context, load, now)
        how: dict[str, Any] = {
            "run_id": run.run_id,
            "job_id": run.job_name,
            "hold_wait": self._options.hold_wait,
            "run_is_live": self._options.run_is_live,
            "observer": self._observer(context, tags_plan=load.keys is None),
        }
        try:
            if isinstance(request, Forced) and load.keys is not None:
                again = backfill_of(self._platform, dataflow, request.of, load.keys, run, now)
                loop = self._platform.loop(again.loaded_by(dataflow), now, **how)
                outcome = read_again(
                    self._platform, again, loop, lambda chunks: self._show(context, load, chunks)
                ).outcome
            else:
                loop = self._platform.loop(dataflow, now, request, **how)
                outcome = loop.run()
        except StrandlineError as error:  # a variable that is not set, say
            self._options.report(note_failed_start(self._platform.log, dataflow.name, error, run.run_id))
            raise dagster_failure(error) from error
        if outcome.committed:
            self._loops.append(loop)
        return outcome

    def _waiting_partitions(self, load: Load, now: datetime) -> StrandlineError | None:
        """Return the error of a run over partitions of which some wait for the upstream: none is loaded then."""
        dataflow = load.dataflow
        if load.keys is None or load.outcome is None or not dataflow.watermark.waits_for_upstream:
            return None
        request = self._partitions[dataflow.name].requested(load.keys, now, forced=True)
        plan = self._platform.kind(dataflow).planning.plan(load.outcome.newest, now, request)
        waiting = [skip for skip in plan.skips if skip.waits_for_upstream]
        if not waiting:
            return None
        named = "; ".join(f"{skip.subject} {skip.why}" for skip in waiting[:_NAMED])
        more = f"; and {len(waiting) - _NAMED:,} more" if len(waiting) > _NAMED else ""
        upstream = self._platform.lineage.upstream_dataflows(dataflow.name)
        return UpstreamNotLoaded(
            f"dataflow {dataflow.name}: {pluralize(len(waiting), 'work unit')} of these partitions wait, and are not loaded:"
            f" {named}{more}. The sensor loads them once they are complete",
            choices=[f"strandline run {name}" for name in upstream],
        )

    def _show(self, context: AssetExecutionContext, load: Load, chunks: Sequence[Report]) -> None:
        """Show the chunks of a backfill on the watermark's page, if there are several."""
        if len(chunks) > 1:
            watermark = AssetKey(["watermark", load.dataflow.name])
            context.log_event(AssetObservation(watermark, metadata=self._describe_chunks(chunks)))

    def _observer(self, context: AssetExecutionContext, *, tags_plan: bool) -> Observer:
        """Return an observer of steps that writes to the run's log and calls the observer of the options.

        An ephemeral instance is discarded at the end, so nothing is written to its log.

        Args:
            context: the run's.
            tags_plan: whether the run gets its first plan as a tag, unless it has one. Partitions name
                themselves, and a run over them that no plan has requested must not look like one.
        """
        logged = not context.instance.is_ephemeral
        untagged = logged and tags_plan and PLAN_TAG not in context.run.tags

        def notify(step: Step, line: str) -> None:
            nonlocal untagged
            if untagged and step is Step.PLANNED:
                plan = shorten_to_line(line, _LONGEST_PLAN)
                context.instance.add_run_tags(context.run.run_id, {PLAN_TAG: plan})
                untagged = False
            if logged:
                context.log.info("%s: %s", step, line)
            if self._options.observer is not None:
                self._options.observer(step, line)

        return notify

    def _request(self, context: AssetExecutionContext, load: Load, now: datetime) -> Request:
        """Return the run's request: due work, or its partitions, forced unless a plan tagged the run.

        See docs/reference/windows.md, Forced windows.
        """
        name = load.dataflow.name
        if name in self._options.requests:
            return self._options.requests[name]
        if load.keys is None:
            return DUE
        forced = PLAN_TAG not in context.run.tags
        try:
            return self._partitions[name].requested(load.keys, now, forced=forced)
        except StrandlineError as error:
            raise dagster_failure(error) from error

    def load_input(self, context: InputContext) -> DataFrame:
        """Return the whole table as a DataFrame."""
        place = self._platform.lake.child(self._platform.lineage.table_of("/".join(context.asset_key.path)))
        table, spark = find_table(place), self._platform.reader_of(place).session()
        return table.contents.read(spark, table.contents.newest_version())


class WatermarkIOManager(IOManager):
    """Shows a dataflow's newest watermark; provides it to downstream assets as a dict of values."""

    def __init__(self, platform: Platform, describe: DescribeEntry) -> None:
        """Use a project's resources; ``describe`` returns the metadata of a materialisation."""
        self._platform = platform
        self._describe = describe

    def handle_output(self, context: OutputContext, obj: Load) -> None:
        """Add the metadata of the run's newest entry; warn if another run has appended an entry since."""
        if obj.outcome is None:
            raise dagster_failure(
                ConfigurationError("the watermark's output came before the table's: expected the table first")
            )
        newest, own_entry = self._platform.log.newest(obj.dataflow.name), obj.outcome.newest
        if (newest and newest.id) != (own_entry and own_entry.id):
            # Another run may continue right after this one; its entry is valid, and this run's entry is in the history.
            context.log.warning(
                "entry %s was appended by another run meanwhile", newest.number if newest else 0
            )
        metadata = self._describe(obj.dataflow, own_entry)
        _add_metadata(context, metadata, ("state_number",))

    def described(self, dataflow: Dataflow) -> Mapping[str, Any]:
        """Return the metadata of the newest entry."""
        return self._describe(dataflow, self._platform.log.newest(dataflow.name))

    def load_input(self, context: InputContext) -> Watermark | None:
        """Return the newest watermark; None if there is none."""
        return self._platform.manager().get_watermark(context.asset_key.path[-1])


def _add_metadata(context: OutputContext, metadata: Mapping[str, Any], of_each: Sequence[str]) -> None:
    """Add a run's metadata to its output.

    If the run is over many partitions, only the event of the last one has all metadata, since the asset's
    page shows that one. There, metadata that a partition has, too, is prefixed with ``run_``.
    """
    keys = context.asset_partition_keys if context.has_asset_partitions else ()
    if len(keys) <= 1:
        context.add_output_metadata(metadata)
        return
    context.add_output_metadata({name: metadata[name] for name in of_each})
    whole = {f"run_{name}" if name in _OF_A_PARTITION else name: value for name, value in metadata.items()}
    context.step_context.add_asset_metadata(whole, asset_key=context.asset_key, partition_key=keys[-1])


def mark_run(instance: DagsterInstance, run_id: str, dataflow: str) -> None:
    """Tag a run with its dataflow and the process that works on it.

    A killed run stays "started" for ever; with this tag a sensor detects it.
    """
    instance.add_run_tags(
        run_id, {DATAFLOW_TAG: dataflow, HOLDER_TAG: current_holder(run_id).model_dump_json()}
    )


def holder_of(run: DagsterRun) -> Holder | None:
    """Return the process that works on a run; None before one does.

    A retry has the tags of the run before, whose process is not its own.
    """
    tag = run.tags.get(HOLDER_TAG)
    holder = Holder.model_validate_json(tag) if tag else None
    return holder if holder is not None and holder.run_id == run.run_id else None


def _number(outcome: Outcome) -> int:
    return outcome.newest.number if outcome.newest else 0


def dagster_failure(error: StrandlineError) -> Failure:
    """Return an error as Dagster shows it, with the same text as on the command line."""
    metadata: dict[str, Any] = {"code": error.code, "exit_code": error.exit_code}
    # Separate entries: Dagster's UI hides a list behind a click.
    metadata |= {f"choice {number}": choice for number, choice in enumerate(error.choices, 1)}
    return Failure(description=error.message, metadata=metadata, allow_retries=error.transient)
