"""The table as the first of two outputs of one step (docs/reference/dagster.md).

The table's manager drives the loop, in the step's body: write, verify and append for each slice. So before
any output exists, the step knows whether there was something to do; if not, it yields none. The
watermark's manager runs after it, checks that the newest entry is the one of this run, and shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    Failure,
    InputContext,
    IOManager,
    OutputContext,
)

from partitions.commands import commands_with_environment, with_environment
from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, StrandlineError, shorten_to_line
from partitions.request import DUE, Forced, Request
from resources.connections.places import Place
from resources.dagster.backfills import backfill_of
from resources.dagster.names import DagsterNames
from resources.dagster.output_metadata import add_run_metadata
from resources.dagster.own_asset import OwnAsset
from resources.dagster.own_outputs import DescribeStored, OwnOutput
from resources.dagster.own_tables import OwnTable
from resources.dagster.partition_events import PartitionEvents
from resources.dagster.run_holder import mark_run
from resources.dagster.run_options import RunOptions
from resources.dagster.table_inputs import AssetTable, TableInput, pin_version
from resources.dagster.table_makers import DataflowTable, OwnAssetTable
from resources.dagster.unreported_entries import mark_reported
from resources.kinds.window.awaited import waiting_error
from resources.kinds.window.partitions import WindowAssetPartitions
from resources.loop.loop import Loop, clock
from resources.notes.last_run import note_attempt, note_failed_start
from resources.outcome import Observer, Outcome, Step
from resources.platform.platform import Platform
from resources.replay.chunk_runs import Report
from resources.replay.in_place import read_again

PLAN_TAG = "strandline/plan"
"""The tag that says what a run does. A run over partitions without it was requested by no plan, and ignores the cutoffs."""

_LONGEST_PLAN = 120
"""The most letters of a plan in a tag."""


@dataclass
class Load:
    """The value of both outputs: the dataflow, and the outcome once the table's manager has loaded it.

    Attributes:
        keys: the requested partitions; None if the run is not over partitions.
        metadata: what the table shows of the run.
        is_replay: whether the run reads its partitions again, since no plan has requested them.
        stands_for_all_keys: whether its outputs stand for the requested partitions; not if another run has
        loaded some of them.
        reported_dead_runs: whether the run has shown partitions that dead runs have loaded.
        is_unchanged: whether the output only lets the steps downstream run: nothing was loaded.
        on_stored: called when Dagster has stored all events of the run.
    """

    dataflow: Dataflow
    outcome: Outcome | None = None
    keys: Sequence[str] | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    is_replay: bool = False
    stands_for_all_keys: bool = True
    reported_dead_runs: bool = False
    is_unchanged: bool = False
    on_stored: Callable[[], None] = lambda: None

    @property
    def has_table(self) -> bool:
        """Return whether there is a table to read: something was loaded at some time."""
        newest = self.outcome.newest if self.outcome is not None else None
        return newest is not None and newest.table_version is not None

    @property
    def had_nothing_to_do(self) -> bool:
        """Return whether nothing was new: another run may have loaded what was requested.

        A backfill marks partitions as failed that its run does not materialise.
        """
        outcome = self.outcome
        return outcome is not None and outcome.status == "nothing" and not self.is_replay


DescribeRun = Callable[[Outcome, Place], Mapping[str, Any]]
"""Metadata of a run: its outcome, the table's place."""

DescribeChunks = Callable[[Sequence[Report]], Mapping[str, Any]]
"""Metadata of the chunks of a replay, as they are now."""


class TableIOManager(IOManager):
    """Loads a dataflow into its table, and stores what assets of the user's own return (``own_outputs``).

    Provides both kinds of tables to downstream assets (``table_inputs``).
    """

    def __init__(
        self,
        platform: Platform,
        dataflows: Mapping[str, Dataflow],
        names: DagsterNames,
        options: RunOptions,
        describe: DescribeRun,
        describe_chunks: DescribeChunks,
        describe_stored: DescribeStored,
        partitions: Mapping[str, WindowAssetPartitions] | None = None,
    ) -> None:
        """Use a project's resources.

        Args:
            platform: the resources.
            dataflows: the project's dataflows, by name.
            names: the project's names in Dagster.
            options: how runs behave.
            describe: returns the metadata of a materialisation.
            describe_chunks: returns the metadata of chunks while a backfill works.
            describe_stored: returns the metadata of what an asset of the user's own has stored.
            partitions: the partitions of partitioned dataflows, by name.
        """
        self._platform = platform
        self._dataflows = dataflows
        self._names = names
        self._options = options
        self._describe = describe
        self._describe_chunks = describe_chunks
        self._describe_stored = describe_stored
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
        names = self._names[dataflow.name]
        instance, run_id = context.instance, context.run.run_id
        if not instance.is_ephemeral:  # else no sensor will ask for the run
            mark_run(instance, run_id, names)
        load.keys = self._keys(context, dataflow)
        load.outcome = outcome = self._run(context, load, now)
        _pin_version(context, dataflow, outcome)
        self._options.report(outcome)
        for warning in outcome.new_warnings:
            context.log.warning(warning)
        load.metadata = self._describe(outcome, self._platform.lake.child(dataflow.table))
        load.on_stored = lambda: mark_reported(instance, names, [run_id], _number(outcome))
        events = PartitionEvents(
            self._platform, self._partitions.get(dataflow.name), context, dataflow, names, outcome, load.keys
        )
        load.reported_dead_runs = events.report_dead_runs()
        load.stands_for_all_keys = events.report_loaded(is_replay=load.is_replay)
        # Committed rows are in the table, so they are materialised, and the step fails right after. The output of a run over
        # partitions would stand for all of them, so it is not yielded if one of them failed.
        if outcome.error is not None and (load.keys is not None or not outcome.committed):
            context.log_event(AssetObservation(names.table, metadata=load.metadata))
            load.on_stored()
            raise dagster_failure(outcome.error, self._platform.env)

    def handle_output(self, context: OutputContext, obj: object) -> None:
        """Add the metadata of what the run has loaded; store what an asset of the user's own returned.

        Raises:
            Failure: the value, or the table of the asset, is refused.
        """
        if obj is None:
            context.log.info("asset %s returned None: nothing is stored", context.asset_key.to_user_string())
            return
        if not isinstance(obj, Load):
            self._store(context, obj)
            return
        if obj.is_unchanged:
            return
        if obj.outcome is None:
            raise dagster_failure(
                ConfigurationError("the table's output came before its load: expected the load first"), None
            )
        add_run_metadata(context, obj.metadata, ("status", "state_number", "seconds"))

    def _store(self, context: OutputContext, value: object) -> None:
        try:
            if not context.has_asset_key:
                raise ConfigurationError(
                    f"output {context.name} of op {context.op_def.name}: expected an output of an asset, whose key "
                    "names its table, found one of an op. Remove its io_manager_key"
                )
            # A run without partitions has them in the definition alone.
            partitions = context.step_context.partitions_def_for_output(context.name)
            asset = OwnAsset.of(
                context.asset_key, context.definition_metadata, partitions, self._names.key_prefix
            )
            OwnOutput(self._platform, asset, self._describe_stored, context).store(value)
        except StrandlineError as error:
            raise dagster_failure(error, self._platform.env) from error

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
        load.is_replay = is_replay = isinstance(request, Forced) and load.keys is not None
        log = self._platform.log
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
            failed_start = note_failed_start(log, dataflow.name, error, run.run_id, is_replay=is_replay)
            self._options.report(failed_start)
            raise dagster_failure(error, self._platform.env) from error
        if outcome.committed:
            self._loops.append(loop)
        if outcome.error is None and (waiting := self._waiting_partitions(load, outcome, now)) is not None:
            outcome.error = waiting
            note_attempt(log, outcome, is_replay=is_replay)
        return outcome

    def _waiting_partitions(self, load: Load, outcome: Outcome, now: datetime) -> StrandlineError | None:
        """Return the error of a run over partitions of which some wait for the upstream: none is loaded then."""
        dataflow = load.dataflow
        if load.keys is None or not dataflow.watermark.waits_for_upstream:
            return None
        request = self._partitions[dataflow.name].requested(load.keys, now, forced=True)
        plan = self._platform.kind(dataflow).planning.plan(outcome.newest, now, request)
        return waiting_error(self._platform, dataflow, plan, "The sensor loads them once they are complete")

    def _show(self, context: AssetExecutionContext, load: Load, chunks: Sequence[Report]) -> None:
        """Show the chunks of a backfill on the watermark's page, if there are several."""
        if len(chunks) > 1:
            watermark = self._names[load.dataflow.name].watermark
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
            raise dagster_failure(error, self._platform.env) from error

    def load_input(self, context: InputContext) -> Any:
        """Return the table, or the rows of the input's partitions, in the type that the asset asks for.

        Raises:
            Failure: if another writer makes the table, or it cannot be read as that type.
        """
        try:
            return TableInput(self._platform, self._maker_of(context), context).load()
        except StrandlineError as error:
            raise dagster_failure(error, self._platform.env) from error

    def _maker_of(self, context: InputContext) -> AssetTable:
        """Return what makes an input: a dataflow, or an asset of the user's own.

        Raises:
            StrandlineError: neither has stored the table.
        """
        asset = self._names.asset_of(context.asset_key)
        if asset is not None:
            dataflow = self._dataflows[self._names.maker_of(asset)]
            partitions, now = self._partitions.get(dataflow.name), self._options.now or clock()
            return DataflowTable(self._platform, dataflow, partitions, now, asset)
        upstream = context.upstream_output
        own = OwnAsset.of(
            context.asset_key,
            upstream.definition_metadata if upstream is not None else {},
            context.asset_partitions_def if context.has_asset_partitions else None,
            self._names.key_prefix,
        )
        OwnTable(self._platform, own).check()
        return OwnAssetTable(own)


def _pin_version(context: AssetExecutionContext, dataflow: Dataflow, outcome: Outcome) -> None:
    """Let the steps behind a load read what it has committed, if its run has such steps."""
    version = outcome.newest.table_version if outcome.committed and outcome.newest else None
    if version is not None and len(context.job_def.nodes) > 1:
        pin_version(context.instance, context.run.run_id, dataflow.asset, version)


def _number(outcome: Outcome) -> int:
    return outcome.newest.number if outcome.newest else 0


def dagster_failure(error: StrandlineError, env: str | None) -> Failure:
    """Return an error as Dagster shows it, with the same text as on the command line.

    Its commands name the environment, which a shell does not know.
    """
    metadata: dict[str, Any] = {"code": error.code, "exit_code": error.exit_code}
    # Separate entries: Dagster's UI hides a list behind a click.
    choices = [with_environment(choice, env) for choice in error.choices]
    metadata |= {f"choice {number}": choice for number, choice in enumerate(choices, 1)}
    message = commands_with_environment(error.message, env)
    return Failure(description=message, metadata=metadata, allow_retries=error.transient)
