"""What Dagster 1.13 does with partitioned runs of one step with two outputs: the facts that loading windows is built on.

A run for a range (tags ``dagster/asset_partition_range_start|end``), ``BackfillPolicy.single_run()``:

- Before it starts, each output has one planned event a partition; each output that is yielded has one materialisation a partition of
  the range, whatever the step did. So a range that was not loaded as a whole must not end in its Output.
- An IO manager asks ``has_asset_partitions`` and ``asset_partition_keys``: a sequence in no fixed order (of two dimensions
  ``MultiPartitionKey``). ``asset_partition_key_range`` raises over two dimensions. A reversed range has partitions and no keys: it
  must be refused, else it succeeds with an event of no partition.
- A range of cron windows that ends in the future is planned as it is, and its keys end with the window that holds now.
- ``add_output_metadata`` goes to all partitions; ``context.step_context.add_asset_metadata(…, asset_key=…, partition_key=…)``, called in
  ``handle_output``, to one of this run's own range.

A run without a key:

- It is allowed. ``has_asset_partitions`` is False, one planned event and one materialisation an output, without a partition: no
  partition counts as materialised. ``add_asset_metadata`` with a partition raises.
- ``context.log_event`` in ``handle_output`` (and in the body) stores materialisations of any partitions, of both assets, at once. They count
  where the step fails later, too (``ExecuteInProcessResult.all_events`` lacks them then), and for partitions that an older run has failed.
  The Output's own event without a partition comes beside them and disturbs nothing. An output that is not required and not
  yielded has none, but then every step downstream in the run is skipped.
- A partition that is logged and lies in the range of an Output has two materialisations.

A step that fails after it has logged some partitions of its range: these are materialised, the others failed, for each asset by what was
logged of it: the watermark's must be logged, too, since its Output never comes. A run without a key fails no partition.

Of two dimensions a logged event needs the tags ``dagster/partition/<dimension>`` (``WindowPartitions.materialisation``): without them the key counts
in the status, and is not found by dimension.

Backfills (``launchPartitionBackfill``, then ``execute_backfill_iteration`` twice; the instance must be a persistent one):

- 30 neighbouring days are one run with range tags. Of days with a gap each stretch is one; of dynamic keys neighbours are those in the
  order in which they were added. Without a policy each partition is one, with ``dagster/partition``.
- Of two dimensions it is one run for each key (and stretch) of the dimension that has fewer of them in the backfill; only range tags
  of our own make one run of all.
- Both assets must be asked for (``can_subset=False``).
- A materialisation without a partition, of an asset of the backfill and in one of its runs, ends the backfill as failed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetMaterialization,
    AssetsDefinition,
    DagsterEventType,
    DagsterInstance,
    ExecuteInProcessResult,
    Failure,
    MultiPartitionsDefinition,
    Output,
    OutputContext,
    RunRequest,
    RunsFilter,
)
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.instance_for_test import instance_for_test
from dagster._core.remote_origin import InProcessCodeLocationOrigin
from dagster._core.storage.partition_status_cache import (
    get_and_update_asset_status_cache_value,
    get_materialized_multipartitions,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import InProcessWorkspaceLoadTarget
from dagster._daemon.backfill import execute_backfill_iteration

from partitions.dagster_partitions import END_TAG, START_TAG, PartitionRange, WindowPartitions
from tests.support.partitioned import (
    DAYS,
    PAIRS,
    ROLLING,
    Body,
    Effect,
    below,
    definitions,
    loading,
    nothing,
    table_of,
    watermark_of,
)
from tests.support.windows import windowed

TABLE, WATERMARK = table_of("flow"), watermark_of("flow")
FOUR = PartitionRange("2020-01-02", "2020-01-05")
KEYS = ["2020-01-02", "2020-01-03", "2020-01-04", "2020-01-05"]
QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as made:
        yield made


def execute(
    instance: DagsterInstance, assets: Sequence[AssetsDefinition], asked: PartitionRange | None
) -> ExecuteInProcessResult:
    job = definitions(*assets).resolve_implicit_global_asset_job_def()
    return job.execute_in_process(
        instance=instance,
        raise_on_error=False,
        run_config=QUIET,
        partition_key=asked.partition_key if asked else None,
        tags=asked.tags if asked else None,
    )


def run(
    instance: DagsterInstance,
    asked: PartitionRange | None,
    table: Effect = nothing,
    body: Body | None = None,
    partitions: WindowPartitions = DAYS,
    *,
    required: bool = True,
) -> ExecuteInProcessResult:
    """Run the step; without a range it is a run without a key."""
    asset = loading("flow", partitions.definition, table, body, required=required)
    return execute(instance, [asset], asked)


def materialised(result: ExecuteInProcessResult, asset: AssetKey = TABLE) -> list[AssetMaterialization]:
    """What a run said that it has materialised, in that order."""
    found = (
        event.step_materialization_data.materialization
        for event in result.all_events
        if event.is_step_materialization
    )
    return [one for one in found if one.asset_key == asset]


def keys(result: ExecuteInProcessResult, asset: AssetKey = TABLE) -> list[str | None]:
    return [one.partition for one in materialised(result, asset)]


def planned(instance: DagsterInstance, result: ExecuteInProcessResult) -> list[str | None]:
    """The partitions of the table that were planned before the run began."""
    logs = instance.all_logs(result.run_id, of_type=DagsterEventType.ASSET_MATERIALIZATION_PLANNED)
    data = [log.dagster_event.asset_materialization_planned_data for log in logs if log.dagster_event]
    return [one.partition for one in data if one.asset_key == TABLE]


def status(
    instance: DagsterInstance, asset: AssetKey = TABLE, partitions: WindowPartitions = DAYS
) -> tuple[list[str], list[str]]:
    """The partitions that the UI shows as materialised, and as failed."""
    assert partitions.definition is not None
    with partition_loading_context(dynamic_partitions_store=instance):
        value = get_and_update_asset_status_cache_value(instance, asset, partitions.definition)
        assert value is not None
        done = value.deserialize_materialized_partition_subsets(partitions.definition)
        failed = value.deserialize_failed_partition_subsets(partitions.definition)
        return sorted(done.get_partition_keys()), sorted(failed.get_partition_keys())


def log(context: OutputContext | AssetExecutionContext, *logged: str, asset: AssetKey = TABLE) -> None:
    """Say that partitions are loaded."""
    for key in logged:
        context.log_event(DAYS.materialisation(asset, key, {"rows": int(key[-2:])}))


class TestRangeRun:
    def test_metadata_of_a_partition_outside_the_range_is_refused(self, instance: DagsterInstance) -> None:
        def table(context: OutputContext) -> None:
            context.step_context.add_asset_metadata({"rows": 1}, asset_key=TABLE, partition_key="2020-03-01")

        result = run(instance, FOUR, table)
        assert not result.success
        assert status(instance) == ([], KEYS)

    @pytest.mark.parametrize("partitions", [DAYS, PAIRS])
    def test_a_reversed_range_succeeds_unless_the_step_refuses_it(
        self, instance: DagsterInstance, partitions: WindowPartitions
    ) -> None:
        seen: list[Any] = []
        first, last = ("2020-01-05", "2020-01-02") if partitions is DAYS else ("d|2020-01-02", "b|2020-01-05")
        result = run(
            instance,
            PartitionRange(first, last),
            lambda context: seen.append((context.has_asset_partitions, list(context.asset_partition_keys))),
            partitions=partitions,
        )
        assert (result.success, seen, keys(result)) == (True, [(True, [])], [None])

    def test_a_range_into_the_future_ends_with_the_current_window(self, instance: DagsterInstance) -> None:
        today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        first, last = ((today + timedelta(days=days)).strftime("%Y-%m-%d") for days in (-1, 3))
        partitions = WindowPartitions.of("flow", windowed("2020-01-01"))
        result = run(instance, PartitionRange(first, last), partitions=partitions)
        assert [len(planned(instance, result)), keys(result)[0], len(keys(result))] == [5, first, 2]

    def test_a_range_over_dynamic_keys_follows_their_order(self, instance: DagsterInstance) -> None:
        instance.add_dynamic_partitions("rolling_windows", ["x", "z", "y", "w"])
        result = run(instance, PartitionRange("x", "y"), partitions=ROLLING)
        assert sorted(map(str, keys(result))) == ["x", "y", "z"]


class TestRunWithoutKey:
    def test_what_is_logged_is_stored_at_once(self, instance: DagsterInstance) -> None:
        seen: list[set[str]] = []

        def table(context: OutputContext) -> None:
            log(context, KEYS[0])
            seen.append(instance.get_materialized_partitions(TABLE))

        run(instance, None, table)
        assert seen == [{KEYS[0]}]

    def test_metadata_of_a_partition_is_refused(self, instance: DagsterInstance) -> None:
        def table(context: OutputContext) -> None:
            context.step_context.add_asset_metadata({"rows": 1}, asset_key=TABLE, partition_key=KEYS[0])

        assert not run(instance, None, table).success

    def test_an_unyielded_output_has_no_event_and_skips_readers(self, instance: DagsterInstance) -> None:
        def body(context: AssetExecutionContext) -> Iterator[Any]:
            context.log_event(DAYS.materialisation(table_of("days"), KEYS[0]))
            yield from ()

        asset = loading("days", DAYS.definition, body=body, required=False)
        result = execute(instance, [asset, below], None)
        assert result.success
        assert keys(result, table_of("days")) == [KEYS[0]]
        assert [event.step_key for event in result.all_events if event.is_step_skipped] == ["silver__below"]


class TestFailure:
    def test_it_is_the_same_from_the_step_s_body(self, instance: DagsterInstance) -> None:
        def body(context: AssetExecutionContext) -> Iterator[Any]:
            log(context, KEYS[0])
            yield from ()
            raise Failure("the second window cannot be read")

        run(instance, FOUR, body=body)
        assert status(instance) == (KEYS[:1], KEYS[1:])

    def test_after_its_output_all_partitions_are_materialised(self, instance: DagsterInstance) -> None:
        def body(context: AssetExecutionContext) -> Iterator[Any]:
            yield Output(nothing, "table")
            raise Failure("only the first window was read")

        run(instance, FOUR, body=body)
        assert (status(instance), status(instance, WATERMARK)) == ((KEYS, []), ([], KEYS))

    def test_a_logged_partition_of_a_range_counts_twice(self, instance: DagsterInstance) -> None:
        result = run(instance, FOUR, lambda context: log(context, KEYS[0]))
        assert sorted(map(str, keys(result))) == sorted([KEYS[0], *KEYS])

    def test_a_run_without_key_fails_none_and_heals_logged_ones(self, instance: DagsterInstance) -> None:
        def broken(context: OutputContext) -> None:
            raise Failure("the source is away")

        def half(context: OutputContext) -> None:
            log(context, *KEYS[:2])
            raise Failure("the third window cannot be read")

        run(instance, FOUR, broken)
        assert status(instance) == ([], KEYS)
        run(instance, None, half)
        assert status(instance) == (KEYS[:2], KEYS[2:])

    def test_only_an_event_with_tags_is_found_by_dimension(self, instance: DagsterInstance) -> None:
        def table(context: OutputContext) -> None:
            context.log_event(PAIRS.materialisation(TABLE, "a%7Cc|2020-01-02"))
            context.log_event(AssetMaterialization(TABLE, partition="b|2020-01-02"))
            raise Failure("the rest cannot be read")

        run(instance, PartitionRange("b|2020-01-02", "d|2020-01-02"), table, partitions=PAIRS)
        assert status(instance, partitions=PAIRS) == (["a%7Cc|2020-01-02", "b|2020-01-02"], ["d|2020-01-02"])
        assert isinstance(PAIRS.definition, MultiPartitionsDefinition)
        assert list(get_materialized_multipartitions(instance, TABLE, PAIRS.definition)) == [
            "a%7Cc|2020-01-02"
        ]


class TestRequest:
    def test_a_key_of_two_dimensions_is_asked_for_as_text(self, instance: DagsterInstance) -> None:
        job = definitions(loading("flow", PAIRS.definition)).resolve_implicit_global_asset_job_def()
        request = RunRequest(partition_key="a%7Cc|2020-01-02").with_resolved_tags_and_config(
            target_definition=job,
            dynamic_partitions_requests=[],
            dynamic_partitions_store=instance,
        )
        shown = {name: value for name, value in request.tags.items() if name != "dagster/partition_set"}
        assert shown == {
            "dagster/partition": "a%7Cc|2020-01-02",
            "dagster/partition/unit": "a%7Cc",
            "dagster/partition/window": "2020-01-02",
        }


_LAUNCH = """
mutation($asked: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $asked) {
    __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message }
  }
}"""
_STATUS = """
query($key: AssetKeyInput!) {
  assetNodeOrError(assetKey: $key) { ... on AssetNode { assetPartitionStatuses {
    ... on TimePartitionStatuses { ranges { startKey endKey status } }
    ... on DefaultPartitionStatuses { materializedPartitions failedPartitions }
    ... on MultiPartitionStatuses { ranges {
      primaryDimStartKey primaryDimEndKey
      secondaryDim { ... on DefaultPartitionStatuses { materializedPartitions failedPartitions } } } }
  } } }
}"""


@dataclass(frozen=True)
class Webserver:
    """What the UI asks, and what the daemon does."""

    instance: DagsterInstance
    workspace: WorkspaceProcessContext

    def ask(self, query: str, **variables: Any) -> Any:
        from dagster_graphql.test.utils import execute_dagster_graphql

        return execute_dagster_graphql(self.workspace.create_request_context(), query, variables).data

    def launch(self, partitions: Sequence[str], *assets: AssetKey) -> dict[str, Any]:
        selection = [{"path": asset.path} for asset in assets]
        answer = self.ask(_LAUNCH, asked={"partitionNames": list(partitions), "assetSelection": selection})
        launched: dict[str, Any] = answer["launchPartitionBackfill"]
        return launched

    def backfill(self, name: str, partitions: Sequence[str]) -> list[PartitionRange | str]:
        """Backfill both assets of a step; what its runs were asked for."""
        backfill = self.launch(partitions, table_of(name), watermark_of(name))["backfillId"]
        for _ in range(2):  # one asks for the runs, one sees that they have ended
            list(execute_backfill_iteration(self.workspace, logging.getLogger(__name__)))
        made = self.instance.get_backfill(backfill)
        assert made is not None
        assert made.status.value.startswith("COMPLETED")
        runs = self.instance.get_runs(RunsFilter(tags={"dagster/backfill": backfill}))
        tags = [run.tags for run in runs]
        return [
            PartitionRange(one[START_TAG], one[END_TAG]) if START_TAG in one else one["dagster/partition"]
            for one in tags
        ]

    def status(self, name: str) -> dict[str, Any]:
        answer = self.ask(_STATUS, key={"path": table_of(name).path})
        shown: dict[str, Any] = answer["assetNodeOrError"]["assetPartitionStatuses"]
        return shown


@pytest.fixture(scope="module")
def webserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webserver]:
    """A persistent instance that starts runs at once, in this process."""
    at_once = {
        "run_coordinator": {"module": "dagster._core.run_coordinator", "class": "DefaultRunCoordinator"},
        "run_launcher": {
            "module": "dagster._core.launcher.sync_in_memory_run_launcher",
            "class": "SyncInMemoryRunLauncher",
        },
    }
    origin = InProcessCodeLocationOrigin(
        LoadableTargetOrigin(
            module_name="tests.support.partitioned", attribute="defs", working_directory=str(Path.cwd())
        )
    )
    folder = str(tmp_path_factory.mktemp("dagster"))
    with (
        instance_for_test(at_once, temp_dir=folder) as instance,
        WorkspaceProcessContext(instance, InProcessWorkspaceLoadTarget(origin)) as workspace,
    ):
        yield Webserver(instance, workspace)


class TestBackfill:
    def test_windows_with_a_gap_are_a_run_for_each_stretch(self, webserver: Webserver) -> None:
        asked = webserver.backfill("days", ["2020-03-01", "2020-03-02", "2020-03-05"])
        assert sorted(asked) == [
            PartitionRange("2020-03-01", "2020-03-02"),
            PartitionRange("2020-03-05", "2020-03-05"),
        ]

    def test_without_a_policy_each_partition_is_a_run(self, webserver: Webserver) -> None:
        assert sorted(webserver.backfill("single", KEYS[:2])) == KEYS[:2]

    @pytest.mark.full
    def test_two_dimensions_are_a_run_for_each_key_of_the_smaller(self, webserver: Webserver) -> None:
        units = ("b", "a%7Cc")
        assert sorted(webserver.backfill("pairs", [f"{unit}|{day}" for unit in units for day in KEYS])) == [
            PartitionRange("a%7Cc|2020-01-02", "a%7Cc|2020-01-05"),
            PartitionRange("b|2020-01-02", "b|2020-01-05"),
        ]
        (shown,) = webserver.status("pairs")["ranges"]
        assert (shown["primaryDimStartKey"], shown["primaryDimEndKey"]) == ("2020-01-02", "2020-01-05")
        assert sorted(shown["secondaryDim"]["materializedPartitions"]) == sorted(units)

        assert sorted(webserver.backfill("pairs", [f"{unit}|2020-02-01" for unit in (*units, "d")])) == [
            PartitionRange("b|2020-02-01", "d|2020-02-01")
        ]

    def test_dynamic_keys_are_neighbours_as_they_were_added(self, webserver: Webserver) -> None:
        webserver.instance.add_dynamic_partitions("rolling_windows", ["x", "z", "y", "w"])
        assert sorted(webserver.backfill("rolling", ["x", "y"])) == [
            PartitionRange("x", "x"),
            PartitionRange("y", "y"),
        ]
        assert webserver.backfill("rolling", ["y", "z", "x"]) == [PartitionRange("x", "y")]

    def test_a_failed_run_shows_its_partitions_as_materialised(self, webserver: Webserver) -> None:
        webserver.backfill("failing", KEYS)
        assert webserver.status("failing") == {
            "ranges": [
                {"startKey": "2020-01-02", "endKey": "2020-01-03", "status": "MATERIALIZED"},
                {"startKey": "2020-01-04", "endKey": "2020-01-05", "status": "FAILED"},
            ]
        }

    def test_a_materialisation_without_a_partition_ends_it(self, webserver: Webserver) -> None:
        name = webserver.launch(KEYS, table_of("whole"), watermark_of("whole"))["backfillId"]
        for _ in range(2):
            list(execute_backfill_iteration(webserver.workspace, logging.getLogger(__name__)))
        ended = webserver.instance.get_backfill(name)
        assert ended is not None
        assert ended.status.value in {"FAILING", "FAILED"}
        assert ended.error is not None
        assert "received an unpartitioned materialization" in ended.error.message

    def test_one_of_the_two_assets_alone_is_refused(self, webserver: Webserver) -> None:
        answer = webserver.launch(KEYS, table_of("days"))
        assert "must include every key in a non-subsettable multi-asset" in answer["message"]
