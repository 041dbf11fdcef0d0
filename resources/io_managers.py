"""Table and watermark as two outputs of one step (docs/dagster.md).

The table's manager drives the loop: for every slice write, verify, append. The watermark's manager runs only after it,
checks that the newest entry is what this run left, and shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any

from dagster import (
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    DagsterEvent,
    DagsterInstance,
    Failure,
    InputContext,
    IOManager,
    MetadataValue,
    OutputContext,
    partition_loading_context,
)

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError, StrandlineError
from partitions.request import DUE, Request
from partitions.sentinels import Watermark
from resources.asset_partitions import AssetPartitions
from resources.attempts import not_begun
from resources.loop.holder import RunIsLive, this_process
from resources.loop.loop import Loop, clock
from resources.loop.outcome import Observer, Outcome, Step
from resources.loop.recorded import recorded_commit
from resources.places import Place
from resources.platform import Platform
from resources.reporting import DATAFLOW_TAG, Untold, summary, tell, untold
from resources.tables import find_table
from resources.watermarks.entry import Entry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


HOLDER_TAG = "strandline/holder"
"""On every run that began to load: its process."""


PLAN_TAG = "strandline/plan"
"""On runs that a plan has asked for: a run over partitions without it reads them whatever the cutoffs say."""


_OF_A_PARTITION = ("rows", "work_units")
"""What both a run and each of its partitions show."""


@dataclass
class Load:
    """The value of both outputs: which dataflow, and what its run did once the table's manager has handled it.

    Attributes:
        on_stored: to be called when Dagster has stored all that the run has to say.
    """

    dataflow: Dataflow
    outcome: Outcome | None = None
    on_stored: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class RunOptions:
    """How runs behave where they are started.

    Attributes:
        now: the clock, aware; None reads the wall clock once per run.
        hold_wait: how long to wait for a living holder.
        observer: hears of every step beside the run's own log.
        report: hears of each outcome, failed ones too.
        run_is_live: asks Dagster about a run.
        requests: by dataflow, what is asked for instead of what is due.
    """

    now: datetime | None = None
    hold_wait: timedelta = timedelta(minutes=10)
    observer: Observer | None = None
    report: Callable[[Outcome], None] = lambda outcome: None
    run_is_live: RunIsLive = field(default=lambda run_id: None)
    requests: Mapping[str, Request] = field(default_factory=dict)


DescribeRun = Callable[[Outcome, Place], Mapping[str, Any]]
"""Metadata of a run: its outcome, the table's place."""

DescribeEntry = Callable[[Dataflow, Entry | None], Mapping[str, Any]]
"""Metadata of a dataflow's watermark."""


class TableIOManager(IOManager):
    """Loads a dataflow into its table; gives the table to downstream assets as a Spark DataFrame."""

    def __init__(
        self,
        platform: Platform,
        options: RunOptions,
        describe: DescribeRun,
        partitions: Mapping[str, AssetPartitions] | None = None,
    ) -> None:
        """Use a project's resources.

        Args:
            platform: the resources.
            options: how runs behave.
            describe: says what a materialisation shows.
            partitions: of the dataflows that have some, by name.
        """
        self._platform = platform
        self._options = options
        self._describe = describe
        self._partitions = partitions or {}
        self._loops: list[Loop[Any]] = []

    def close(self) -> None:
        """After the run, when all of it is told: let a warm engine get ready for the next one."""
        for loop in self._loops:
            loop.prepare_next()

    def handle_output(self, context: OutputContext, obj: Load) -> Iterator[DagsterEvent]:  # type: ignore[override]  # Dagster takes generators, too
        """Run the loop; raise its failure if nothing was committed, and leave it in the outcome otherwise.

        Partitions that this run has loaded, and that its output does not stand for, are materialised one by one: all of them in a run
        without partitions, and those that did not fail in a run that does.
        """
        dataflow, now = obj.dataflow, self._options.now or clock()
        instance = context.step_context.instance
        if not instance.is_ephemeral:  # else no sensor will ask for the run
            mark_run(instance, context.run_id, dataflow.name)
        request = self._request(context, dataflow, now)
        try:
            loop = self._platform.loop(
                dataflow,
                now,
                request,
                run_id=context.run_id,
                job_id=context.job_name,
                hold_wait=self._options.hold_wait,
                run_is_live=self._options.run_is_live,
                observer=self._observer(context),
            )
        except StrandlineError as error:  # a variable that is not set, say
            self._options.report(not_begun(self._platform.log, dataflow.name, error, context.run_id))
            raise failure(error) from error
        obj.outcome = outcome = loop.run()
        if outcome.committed:
            self._loops.append(loop)
        self._options.report(outcome)
        for warning in outcome.news:
            context.log.warning(warning)
        metadata = self._describe(outcome, self._platform.lake.child(dataflow.table))
        obj.on_stored = lambda: tell(instance, dataflow.name, [context.run_id], _number(outcome))
        yield from self._left_untold(context, dataflow, outcome)
        yield from self._loaded_partitions(context, dataflow, outcome)
        # What was committed is there, so it is materialised, and the step fails right after it. The output of a run over partitions
        # would stand for all of them, so it is not given if one of them has failed.
        if outcome.error is not None and context.has_asset_partitions:
            observation = AssetObservation(context.asset_key, metadata=metadata)
            yield DagsterEvent.asset_observation(context.step_context, observation)
        if outcome.error is not None and (context.has_asset_partitions or not outcome.committed):
            obj.on_stored()
            raise failure(outcome.error)
        _show(context, metadata, ("status", "state_number", "seconds"))

    def _observer(self, context: OutputContext) -> Observer:
        """Hears of steps: the run's log, unless the instance is forgotten at the end, and whoever started the run."""
        logged = not context.step_context.instance.is_ephemeral

        def heard(step: Step, line: str) -> None:
            if logged:
                context.log.info("%s: %s", step, line)
            if self._options.observer is not None:
                self._options.observer(step, line)

        return heard

    def _request(self, context: OutputContext, dataflow: Dataflow, now: datetime) -> Request:
        """What the run's partitions ask for; a run that no plan has asked for reads them whatever the cutoffs say (docs/guide-windows.md, Forced windows)."""
        if dataflow.name in self._options.requests:
            return self._options.requests[dataflow.name]
        if not context.has_asset_partitions:
            return DUE
        forced = PLAN_TAG not in context.step_context.run_tags
        try:
            return self._partitions[dataflow.name].requested(context.asset_partition_keys, now, forced=forced)
        except StrandlineError as error:
            raise failure(error) from error

    def _loaded_partitions(
        self, context: OutputContext, dataflow: Dataflow, outcome: Outcome
    ) -> Iterator[DagsterEvent]:
        partitions = self._partitions.get(dataflow.name)
        if partitions is None or partitions.definition is None:
            return
        whole = context.has_asset_partitions and outcome.error is None
        covered = set(context.asset_partition_keys) if whole else set()
        for key, metadata in partitions.loaded(outcome.committed).items():
            if key in covered:
                context.step_context.add_asset_metadata(
                    metadata, asset_key=context.asset_key, partition_key=key
                )
                continue
            for asset in (context.asset_key, AssetKey(["watermark", dataflow.name])):
                yield DagsterEvent.asset_materialization(
                    context.step_context, partitions.materialisation(asset, key, metadata)
                )

    def _left_untold(
        self, context: OutputContext, dataflow: Dataflow, outcome: Outcome
    ) -> Iterator[DagsterEvent]:
        """Materialise what runs that died have loaded and not told. What fails here fails no run: the next one tries again."""
        instance, log, before = context.step_context.instance, self._platform.log, outcome.started_at_number
        try:
            left = untold(instance, log, dataflow.name, context.run_id, before)
            made = list(self._loaded_by_dead_runs(context, dataflow, outcome, left))
        except Exception as error:  # noqa: BLE001 - the rows are there, and so is what this run has done
            context.log.warning("what runs that died have loaded is not shown yet: %s", error)
            return
        for record in made:
            yield DagsterEvent.asset_materialization(context.step_context, record)
        tell(instance, dataflow.name, left.runs, before)

    def _loaded_by_dead_runs(
        self, context: OutputContext, dataflow: Dataflow, outcome: Outcome, left: Untold
    ) -> Iterator[AssetMaterialization]:
        """Each partition; of an asset without partitions each run as a whole."""
        partitions = self._partitions.get(dataflow.name)
        for run_id, entries in groupby(left.entries, lambda entry: entry.run_id or ""):
            by = {"loaded_by": MetadataValue.dagster_run(run_id)}
            if partitions is None or partitions.definition is None:
                yield AssetMaterialization(context.asset_key, metadata=summary([*entries]) | by)
                continue
            kind, log = self._platform.kind(dataflow), self._platform.log
            commits = [recorded_commit(log, dataflow.name, kind, entry) for entry in entries]
            failed = partitions.failed(outcome.committed)
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

    def load_input(self, context: InputContext) -> DataFrame:
        """The whole table as a DataFrame."""
        place = self._platform.lake.child(self._platform.lineage.table_of("/".join(context.asset_key.path)))
        table, spark = find_table(place), self._platform.spark.with_places((place,)).session()
        return table.read(spark, table.newest_version())


class WatermarkIOManager(IOManager):
    """Shows a dataflow's newest watermark; gives it to downstream assets as a dict of values."""

    def __init__(self, platform: Platform, describe: DescribeEntry) -> None:
        """Use a project's resources; ``describe`` says what a materialisation shows."""
        self._platform = platform
        self._describe = describe

    def handle_output(self, context: OutputContext, obj: Load) -> None:
        """Check that the newest entry is what the table's output left."""
        if obj.outcome is None:
            raise failure(
                ConfigurationError("the watermark's output came before the table's: expected the table first")
            )
        newest, left = self._platform.log.newest(obj.dataflow.name), obj.outcome.newest
        if (newest and newest.id) != (left and left.id):
            # Another run may go on right after this one; its entry stands, and this run's is in the history.
            context.log.warning(
                "entry %s was appended by another run meanwhile", newest.number if newest else 0
            )
        metadata = self._describe(obj.dataflow, left)
        _show(context, metadata, ("state_number",))

    def load_input(self, context: InputContext) -> Watermark | None:
        """The newest watermark; None if there is none."""
        return self._platform.manager().get_watermark(context.asset_key.path[-1])


def _show(context: OutputContext, metadata: Mapping[str, Any], of_each: Sequence[str]) -> None:
    """Show what a run has done.

    Of many partitions the event of the last one has all of it, since that is what the asset's page shows, and the others have
    little. What a partition says of itself, too, has another name there.
    """
    keys = context.asset_partition_keys if context.has_asset_partitions else ()
    if len(keys) <= 1:
        context.add_output_metadata(metadata)
        return
    context.add_output_metadata({name: metadata[name] for name in of_each})
    whole = {f"run_{name}" if name in _OF_A_PARTITION else name: value for name, value in metadata.items()}
    context.step_context.add_asset_metadata(whole, asset_key=context.asset_key, partition_key=keys[-1])


def mark_run(instance: DagsterInstance, run_id: str, dataflow: str) -> None:
    """Say on a run which process works on it: one that was killed stays "started" for ever, and by this tag a sensor sees it."""
    instance.add_run_tags(
        run_id, {DATAFLOW_TAG: dataflow, HOLDER_TAG: this_process(run_id).model_dump_json()}
    )


def _number(outcome: Outcome) -> int:
    return outcome.newest.number if outcome.newest else 0


def failure(error: StrandlineError) -> Failure:
    """An error as Dagster shows it: the same text as on the command line."""
    metadata: dict[str, Any] = {"code": error.code, "exit_code": error.exit_code}
    # One by one: a list would be hidden behind a click.
    metadata |= {f"choice {number}": choice for number, choice in enumerate(error.choices, 1)}
    return Failure(description=error.message, metadata=metadata, allow_retries=error.transient)
