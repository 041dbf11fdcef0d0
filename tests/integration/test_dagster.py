"""What Dagster runs and shows of a dataflow: two outputs of one step, checks, inputs of downstream assets, failures, decisions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetCheckKey,
    AssetCheckSeverity,
    AssetIn,
    AssetKey,
    AssetMaterialization,
    AssetObservation,
    AssetSpec,
    AutomationCondition,
    DagsterInstance,
    DagsterInvalidConfigError,
    Definitions,
    ExecuteInProcessResult,
    Output,
    asset,
    build_output_context,
    evaluate_automation_conditions,
    materialize,
)
from deltalake import DeltaTable

from platform_assets.build import build_definitions
from platform_assets.project import load_project
from platform_assets.translator import StrandlineAsset, StrandlineTranslator
from resources.dagster.io_managers import PLAN_TAG, Load
from resources.dagster.names import DagsterNames
from resources.dagster.run_options import RunOptions
from resources.dagster.run_tags import DATAFLOW_TAG
from resources.dagster.unreported_entries import UnreportedEntries, find_unreported
from resources.dagster.watermark_io_manager import WatermarkIOManager
from resources.outcome import Step
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine
from tests.integration.conftest import MakeFeed, loaded_one_by_one
from tests.support.feed import NAME, NOW, Feed
from tests.support.names import names_of_runs
from tests.support.steps import killed_at

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


def platform_of(feed: Feed) -> Platform:
    project = load_project(feed.folder)
    return Platform(project.state, project.lake, feed.engine, project.source_place, lineage=project.lineage)


def run(
    feed: Feed,
    job: str = f"load_{NAME}",
    config: Mapping[str, Any] | None = None,
    instance: DagsterInstance | None = None,
    **options: Any,
) -> ExecuteInProcessResult:
    """Run a job as the command line, a sensor and the launchpad do; ``config`` is that of its one op."""
    project = load_project(feed.folder)
    definitions = build_definitions(
        project, platform_of(feed), RunOptions(now=NOW, hold_wait=timedelta(0), **options)
    )
    ops = {"ops": {f"{job}_step": {"config": dict(config)}}} if config is not None else {}
    return definitions.resolve_job_def(job).execute_in_process(
        instance=instance or DagsterInstance.ephemeral(), raise_on_error=False, run_config=QUIET | ops
    )


def materialised(result: ExecuteInProcessResult) -> dict[str, AssetMaterialization]:
    return {
        "/".join(event.asset_key.path): event.step_materialization_data.materialization
        for event in result.all_events
        if event.is_step_materialization and event.asset_key
    }


def observed(result: ExecuteInProcessResult) -> list[AssetObservation]:
    events = [event for event in result.all_events if event.is_asset_observation]
    return [event.asset_observation_data.asset_observation for event in events]


def values(found: AssetMaterialization | AssetObservation) -> Mapping[str, Any]:
    return {key: value.value for key, value in found.metadata.items()}


def failed(result: ExecuteInProcessResult) -> tuple[str, Mapping[str, Any]]:
    """The text of the step's failure, and its metadata."""
    failure = next(event for event in result.all_events if event.is_step_failure).step_failure_data
    assert failure.user_failure_data is not None
    metadata = {key: value.value for key, value in failure.user_failure_data.metadata.items()}
    return str(failure.user_failure_data.description), metadata


def numbered(choices: Sequence[str]) -> dict[str, str]:
    return {f"choice {number}": choice for number, choice in enumerate(choices, 1)}


def test_table_and_watermark_are_materialised_by_one_step_with_what_the_run_measured(feed: Feed) -> None:
    feed.put("1.ndjson", 1, 2)
    result = run(feed)
    assert result.success
    found = materialised(result)
    assert list(found) == [f"bronze/{NAME}", f"watermark/{NAME}"]
    table = values(found[f"bronze/{NAME}"])
    assert {
        key: table[key]
        for key in ("status", "rows", "files", "slices", "state_number", "table_version", "committed_by")
    } == {
        "status": "committed",
        "rows": 2,
        "files": 1,
        "slices": 1,
        "state_number": 1,
        "table_version": 0,
        "committed_by": "Strandline (deltalake)",
    }
    assert (table["watermark_before"], table["watermark_after"]) == ("none", "1.ndjson")
    assert table["watermark_values"] == {"before": {}, "effective": {}, "after": {"path": "1.ndjson"}}
    shown = values(found[f"watermark/{NAME}"])
    assert (shown["watermark"], shown["watermark_values"]) == ("1.ndjson", {"path": "1.ndjson"})
    assert table["dagster/row_count"] == 2
    files = feed.table.rglob("[!.]*.parquet")
    assert table["dagster/size_bytes"] == sum(file.stat().st_size for file in files)
    assert shown["arrivals"].startswith("![arrivals](<data:image/svg+xml,")
    columns = [(column.name, column.type) for column in table["dagster/column_schema"].columns]
    assert ("id", "bigint") in columns
    assert columns[-3:] == [("_source_file", "string"), ("_ingested_at", "timestamp"), ("_run_id", "string")]


class TestARunThatFails:
    """Says in its checks what it knows, and leaves the results that it did not look at."""

    def test_fails_up_to_date_with_the_reason_and_keeps_the_last_results(self, feed: Feed) -> None:
        feed.put("1.ndjson", 1)
        with DagsterInstance.ephemeral() as instance:
            before = {
                result.check_name: result
                for result in run(feed, instance=instance).get_asset_check_evaluations()
            }
            feed.landing.rename(feed.folder / "away")
            for _ in range(2):
                failed = run(feed, instance=instance)
                assert not failed.success
                checks = {result.check_name: result for result in failed.get_asset_check_evaluations()}
                assert set(checks) == set(before)
                up_to_date = checks.pop("up_to_date")
                assert not up_to_date.passed
                assert (up_to_date.description or "").startswith("The last run failed: ")
                assert all(check.passed for check in checks.values())
                assert len({check.metadata["evaluated_at"].value for check in checks.values()}) == 1

    def test_says_of_checks_that_no_run_has_evaluated_that_it_did_not_look(self, feed: Feed) -> None:
        feed.landing.rmdir()
        failed = run(feed)
        assert not failed.success
        texts = {result.description for result in failed.get_asset_check_evaluations() if result.passed}
        assert texts == {"Not evaluated yet: the run failed before"}


class TestARunWithNothingToDo:
    """Materialises nothing, so that nothing downstream is woken."""

    def test_shows_that_it_looked_and_passes_every_check(self, feed: Feed) -> None:
        feed.put("1.ndjson", 1, 2)
        before = run(feed)
        result = run(feed)
        assert result.success
        assert materialised(result) == {}
        (seen,) = observed(result)
        assert seen.asset_key == AssetKey(["bronze", NAME])
        assert (values(seen)["status"], values(seen)["watermark_after"]) == ("nothing", "1.ndjson")
        checks = {each.check_name: each.passed for each in result.get_asset_check_evaluations()}
        assert set(checks) == {each.check_name for each in before.get_asset_check_evaluations()}
        assert all(checks.values())

    def test_wakes_no_asset_that_is_to_follow_every_update(self, feed: Feed) -> None:
        @asset(deps=[AssetKey(["bronze", NAME])], automation_condition=AutomationCondition.any_deps_updated())
        def report() -> None: ...

        feed.put("1.ndjson", 1)
        project, platform = load_project(feed.folder), platform_of(feed)
        ours = build_definitions(project, platform, RunOptions(now=NOW))
        definitions = Definitions.merge(ours, Definitions(assets=[report]))

        cursors: list[Any] = [None]

        def woken() -> int:
            looked = evaluate_automation_conditions(definitions, instance, cursor=cursors[-1])
            cursors.append(looked.cursor)
            return looked.total_requested

        with DagsterInstance.ephemeral() as instance:
            woken()
            assert run(feed, instance=instance).success
            assert woken() == 1
            assert run(feed, instance=instance).success
            assert woken() == 0


class TestASelectionOfOneAsset:
    def selected(self, feed: Feed, key: Sequence[str]) -> ExecuteInProcessResult:
        definitions = build_definitions(load_project(feed.folder), platform_of(feed), RunOptions(now=NOW))
        job = definitions.resolve_implicit_global_asset_job_def()
        result: ExecuteInProcessResult = job.execute_in_process(
            asset_selection=[AssetKey(key)], run_config=QUIET
        )
        return result

    def test_the_table_alone_is_loaded_and_its_watermark_is_told_to_have_moved(self, feed: Feed) -> None:
        feed.put("1.ndjson", 1)
        found = materialised(self.selected(feed, ["bronze", NAME]))
        assert values(found[f"bronze/{NAME}"])["rows"] == 1
        assert values(found[f"watermark/{NAME}"])["watermark"] == "1.ndjson"
        assert feed.ids == [1]

    def test_the_watermark_alone_is_shown_and_nothing_is_loaded(self, feed: Feed) -> None:
        feed.put("1.ndjson", 1)
        feed.load()
        feed.put("2.ndjson", 2)
        result = self.selected(feed, ["watermark", NAME])
        assert materialised(result) == {}
        (seen,) = observed(result)
        assert values(seen)["watermark"] == "1.ndjson"
        assert feed.ids == [1]


@pytest.mark.parametrize(
    ("policy", "more"),
    [
        ({}, {}),
        ({"on_bad_file": "quarantine"}, {"quarantined_files": True}),
        ({"late_files": "quarantine"}, {"quarantined_files": True}),
    ],
)
def test_the_checks_of_what_a_run_can_change_pass_on_a_sound_load(
    make_feed: MakeFeed, policy: dict[str, str], more: dict[str, bool]
) -> None:
    feed = make_feed(**policy)
    feed.put("1706450400-a.ndjson", 1)
    checks = {each.check_name: each.passed for each in run(feed).get_asset_check_evaluations()}
    assert checks == {
        "watermark_monotone": True,
        "rows_accounted": True,
        "up_to_date": True,
        "names_sort_by_time": True,
        **more,
    }


@pytest.mark.full
@pytest.mark.parametrize(
    "target",
    [
        {"format": "iceberg"},
        {"format": "parquet"},
        {"load": "merge_upsert", "merge_keys": ["id"]},
        {"load": "merge_upsert", "merge_keys": ["id"], "format": "iceberg"},
        {"load": "scd2", "merge_keys": ["id"], "effective_column": "v"},
    ],
)
def test_the_table_has_the_rows_of_the_log_after_each_load(
    make_feed: MakeFeed, target: dict[str, Any]
) -> None:
    feed = make_feed(source={"schema": "id long, v long"}, target=target)
    for number in (1, 2):
        feed.put(f"{number}.ndjson", {"id": 1, "v": number}, {"id": number + 1, "v": 0})
        checks = {check.check_name: check for check in run(feed).get_asset_check_evaluations()}
        counted = checks["rows_accounted"]
        assert counted.passed, counted.metadata
        assert counted.metadata["rows_in_table"].value == counted.metadata["rows_in_log"].value


def test_rows_that_another_writer_deleted_are_a_warning_of_the_count_of_rows(feed: Feed) -> None:
    feed.put("1.ndjson", 1, 2, 3)
    feed.load()
    DeltaTable(str(feed.table)).delete("id = 2")
    (counted,) = [
        check for check in run(feed).get_asset_check_evaluations() if check.check_name == "rows_accounted"
    ]
    assert (counted.passed, counted.severity) == (False, AssetCheckSeverity.WARN)
    assert counted.description == (
        "The table has 1 row less than its log counts: another writer has changed it"
    )
    assert {name: counted.metadata[name].value for name in ("rows_in_table", "rows_in_log")} == {
        "rows_in_table": 2,
        "rows_in_log": 3,
    }


def test_names_that_do_not_sort_by_time_fail_their_check(feed: Feed) -> None:
    feed.put("event-x.ndjson", 1)
    checks = {each.check_name: each.passed for each in run(feed).get_asset_check_evaluations()}
    assert checks["names_sort_by_time"] is False


class Renamed(StrandlineTranslator):
    def get_asset_spec(self, data: StrandlineAsset) -> AssetSpec:
        return data.spec.replace_attributes(key=["own", f"{data.role}_of_it"])


@pytest.mark.parametrize(
    ("names", "mark_key", "table_key"),
    [
        ({}, ["watermark", NAME], ["bronze", NAME]),
        (
            {"name": "north", "translator": Renamed()},
            ["own", "watermark_of_it"],
            ["own", "table_of_it"],
        ),
    ],
    ids=["usual", "named"],
)
def test_downstream_assets_get_the_watermark_and_the_table(
    names: Any, mark_key: list[str], table_key: list[str], feed: Feed
) -> None:
    feed.put("1.ndjson", 1, 2)
    seen: dict[str, Any] = {}

    @asset(
        ins={"mark": AssetIn(AssetKey(mark_key)), "table": AssetIn(AssetKey(table_key))},
        io_manager_key="nothing",
    )
    def report(mark, table) -> Output[None]:  # type: ignore[no-untyped-def]  # noqa: ANN001 - Dagster reads annotations as types
        seen.update(mark=mark, ids=sorted(row["id"] for row in table.collect()))
        return Output(None)

    definitions = build_definitions(
        load_project(feed.folder), platform_of(feed), RunOptions(now=NOW, hold_wait=timedelta(0)), **names
    )
    from dagster import mem_io_manager

    with DagsterInstance.ephemeral() as instance:
        result = materialize(
            [*(definitions.assets or ()), report],  # type: ignore[list-item]
            instance=instance,
            resources={**(definitions.resources or {}), "nothing": mem_io_manager},
            run_config=QUIET,
        )
    assert result.success
    assert seen == {"mark": {"path": "1.ndjson"}, "ids": [1, 2]}


def test_commits_before_a_failure_are_materialised_and_it_fails_in_words(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    (feed.landing / "2.ndjson").write_text('{"id": "no number"}\n')
    result = run(feed)
    assert not result.success
    found = materialised(result)
    assert list(found) == [f"bronze/{NAME}", f"watermark/{NAME}"]
    assert (values(found[f"bronze/{NAME}"])["rows"], values(found[f"bronze/{NAME}"])["status"]) == (
        1,
        "failed",
    )
    assert failed(result)[0].startswith("file 2.ndjson, line 1: field id: expected bigint, found")


def test_a_failed_run_that_committed_nothing_leaves_its_message_on_the_table_s_page(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    feed.put_text("2.ndjson", '{"id": "no number"}\n')
    with DagsterInstance.ephemeral() as instance:
        assert not run(feed, instance=instance).success
        (record,) = instance.fetch_observations(AssetKey(["bronze", NAME]), limit=5).records
    assert record.asset_observation is not None
    shown = values(record.asset_observation)
    assert (shown["status"], shown["rows"]) == ("failed", 0)
    assert shown["error"].startswith("file 2.ndjson, line 1: field id: expected bigint, found")


class TestARunThatDiedBeforeItCouldTell:
    """Its slices are in the log; the next run materialises them, once."""

    @pytest.fixture
    def feed(self, make_feed: MakeFeed) -> Feed:
        """Each file is a slice."""
        feed = make_feed(watermark={"checkpoint": {"interval_files": 1}})
        feed.put("1.ndjson", 1)
        feed.put("2.ndjson", 2, 22)
        return feed

    @pytest.fixture
    def instance(self) -> Iterator[DagsterInstance]:
        with DagsterInstance.ephemeral() as instance:
            yield instance

    def die(self, feed: Feed, instance: DagsterInstance, times: int) -> str:
        """A run that is killed after so many entries; returns its id."""
        before = self.told(instance)
        result = run(feed, instance=instance, observer=killed_at(Step.APPENDED, times))
        assert (result.success, self.told(instance)) == (False, before)
        return result.run_id

    def told(self, instance: DagsterInstance) -> list[dict[str, Any]]:
        """What the table's materialisations show, oldest first."""
        records = instance.fetch_materializations(AssetKey(["bronze", NAME]), limit=100).records
        found = [one.asset_materialization for one in records if one.asset_materialization]
        names = ("status", "rows", "files", "slices", "state_number", "loaded_by")
        return [{key: value for key, value in values(one).items() if key in names} for one in reversed(found)]

    def test_is_materialised_by_the_next_idle_run(self, feed: Feed, instance: DagsterInstance) -> None:
        dead = self.die(feed, instance, 2)
        assert run(feed, instance=instance).success
        lost = {"status": "committed", "rows": 3, "files": 2, "slices": 2, "state_number": 2}
        assert self.told(instance) == [lost | {"loaded_by": dead}]
        assert run(feed, instance=instance).success
        assert self.told(instance) == [lost | {"loaded_by": dead}]

    def test_is_materialised_beside_the_next_load(self, feed: Feed, instance: DagsterInstance) -> None:
        dead = self.die(feed, instance, 1)
        assert run(feed, instance=instance).success
        assert [(one["rows"], one["state_number"], one.get("loaded_by")) for one in self.told(instance)] == [
            (1, 1, dead),
            (2, 2, None),
        ]

    def test_is_materialised_for_each_that_died(self, feed: Feed, instance: DagsterInstance) -> None:
        dead = [self.die(feed, instance, 1), self.die(feed, instance, 1)]
        assert run(feed, instance=instance).success
        assert [one.get("loaded_by") for one in self.told(instance)] == dead

    def test_is_materialised_if_the_next_run_fails(self, feed: Feed, instance: DagsterInstance) -> None:
        dead = self.die(feed, instance, 2)
        feed.put_text("3.ndjson", '{"id": "no number"}\n')
        for _ in range(2):
            assert not run(feed, instance=instance).success
        assert [one.get("loaded_by") for one in self.told(instance)] == [dead]

    def test_and_one_with_nothing_to_tell_costs_nothing(self, feed: Feed, instance: DagsterInstance) -> None:
        assert not run(feed, instance=instance, observer=killed_at(Step.PLANNED, 1)).success
        assert run(feed, instance=instance).success
        assert (
            find_unreported(instance, feed.platform.log, names_of_runs(NAME), "another", 2)
            == UnreportedEntries()
        )


def test_a_run_that_nobody_has_planned_is_tagged_with_its_own_plan(feed: Feed, tmp_path: Path) -> None:
    feed.put("1.ndjson", 1)
    with DagsterInstance.local_temp(str(tmp_path)) as instance:
        assert run(feed, instance=instance).success
        (record,) = instance.get_runs()
        assert (record.tags[DATAFLOW_TAG], record.tags[PLAN_TAG]) == (
            NAME,
            "1 file to start with, in 1 slice",
        )


def test_what_the_command_line_has_loaded_without_dagster_is_not_told_for_it(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    with DagsterInstance.ephemeral() as instance:
        feed.put("2.ndjson", 2)
        result = run(feed, instance=instance)
    shown = [one for one in result.all_events if one.is_step_materialization]
    assert len(shown) == 2


def test_a_broken_project_file_fails_alone_when_it_is_materialised(make_feed: MakeFeed) -> None:
    feed = make_feed()
    (feed.folder / "dataflows/broken.yaml").write_text(
        "layer: silver\nsource: {type: files, pth: x, format: ndjson}\nwatermark: {type: path}\n"
    )
    feed.put("1.ndjson", 1)
    assert run(feed).success
    definitions = build_definitions(load_project(feed.folder), platform_of(feed))
    (broken,) = [each for each in definitions.assets or () if AssetKey(["silver", "broken"]) in each.keys]  # type: ignore[union-attr]
    with DagsterInstance.ephemeral() as instance:
        result = materialize([broken], instance=instance, raise_on_error=False, run_config=QUIET)  # type: ignore[list-item]
    assert "dataflows/broken.yaml:2" in failed(result)[0]


def test_the_watermark_before_the_table_is_refused(feed: Feed) -> None:
    manager = WatermarkIOManager(platform_of(feed), DagsterNames(), lambda flow, entry: {})
    with pytest.raises(Exception, match="expected the table first"):
        manager.handle_output(build_output_context(), Load(load_project(feed.folder).dataflows[NAME]))


@pytest.mark.full
def test_files_in_quarantine_are_counted_and_listed_with_their_reasons(make_feed: MakeFeed) -> None:
    feed = make_feed(on_bad_file="quarantine")
    feed.put_text("1.ndjson", '{"id": "no number"}\n')
    feed.put("2.ndjson", 2)
    found = materialised(run(feed))
    table = values(found[f"bronze/{NAME}"])
    assert (table["files"], table["quarantined"], table["late"]) == (1, 1, 0)
    shown = values(found[f"watermark/{NAME}"])
    assert shown["in_quarantine"] == 1
    (record,) = shown["quarantine"].records
    assert record.data["file"] == "1.ndjson"
    assert record.data["reason"].startswith("line 1: field id: expected bigint, found")


def test_a_guard_shows_the_command_line_s_text_and_choices_in_the_failed_run(feed: Feed) -> None:
    feed.put("1.ndjson", 1)
    feed.load()
    shutil.rmtree(feed.state)
    refused = feed.cli("run", NAME).error
    assert refused["code"] == "state_lost"
    text, metadata = failed(run(feed))
    assert text == refused["message"]
    assert metadata == {"code": "state_lost", "exit_code": 4, **numbered(refused["choices"])}


class TestLateJob:
    JOB = f"late_{NAME}"
    CHECK = AssetCheckKey(AssetKey(["bronze", NAME]), "late_files")

    @pytest.fixture
    def late(self, feed: Feed) -> Feed:
        """One file is loaded, and one has come late."""
        feed.put("2.ndjson", 2)
        feed.load()
        feed.put("1.ndjson", 1, 11)
        return feed

    def passed(self, instance: DagsterInstance) -> bool | None:
        record = instance.event_log_storage.get_latest_asset_check_execution_by_key([self.CHECK])[self.CHECK]
        evaluation = record.event and record.event.asset_check_evaluation
        return evaluation.passed if evaluation else None

    def test_it_loads_late_files_materialises_the_table_and_reports_the_check(self, late: Feed) -> None:
        with DagsterInstance.ephemeral() as instance:
            result = run(late, self.JOB, instance=instance)
            assert result.success
            assert self.passed(instance) is True
        table = values(materialised(result)[f"bronze/{NAME}"])
        assert {key: table[key] for key in ("status", "rows", "files", "state_number")} == {
            "status": "committed",
            "rows": 2,
            "files": 1,
            "state_number": 2,
        }
        assert table["watermark_before"] == table["watermark_after"] == "2.ndjson"
        assert (late.ids, late.path) == ([1, 2, 11], "2.ndjson")

    def test_under_alert_it_loads_nothing_and_the_check_fails(self, late: Feed) -> None:
        late.define(late_files="alert")
        with DagsterInstance.ephemeral() as instance:
            result = run(late, self.JOB, instance=instance)
            assert result.success
            assert (materialised(result), self.passed(instance)) == ({}, False)
        assert late.ids == [2]

    def test_under_quarantine_it_sets_them_aside_and_an_observation_lists_them(self, late: Feed) -> None:
        late.define(late_files="quarantine")
        with DagsterInstance.ephemeral() as instance:
            result = run(late, self.JOB, instance=instance)
            assert (result.success, self.passed(instance)) == (True, True)
        (event,) = [event for event in result.all_events if event.is_asset_observation]
        shown = values(event.asset_observation_data.asset_observation)
        assert (shown["why"], shown["in_quarantine"]) == ("late", 1)
        assert [record.data for record in shown["quarantine"].records] == [
            {"file": "1.ndjson", "reason": "came late"}
        ]
        assert late.ids == [2]

    def test_commits_before_a_bad_late_file_are_materialised_and_it_is_named(self, late: Feed) -> None:
        late.put_text("1b.ndjson", '{"id": "no number"}\n')
        result = run(late, self.JOB)
        assert not result.success
        assert "late file 1b.ndjson: line 1: field id: expected bigint, found" in failed(result)[0]
        assert values(materialised(result)[f"bronze/{NAME}"])["rows"] == 2
        assert late.ids == [1, 2, 11]


@pytest.fixture(scope="module")
def loaded_once(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> Feed:
    """Two entries, of a file each."""
    return loaded_one_by_one(tmp_path_factory.mktemp("loaded") / "project", engine, 2)


class TestDecisionJobs:
    @pytest.fixture
    def feed(self, loaded_once: Feed, tmp_path: Path) -> Feed:
        """A copy of one's own."""
        return loaded_once.copy(tmp_path / "loaded")

    REWIND: Mapping[str, Any] = {"dataflow": NAME, "reason": "because", "to": 1, "replace": True}
    SHOWN = (
        "the watermark now: 2.ndjson; after this decision: 1.ndjson",
        "next run: 1 file above 1.ndjson, in 1 slice",
        "1 of these files was ingested before; each commit deletes the rows of its own files and inserts them again: 2.ndjson",
    )

    def test_without_confirm_it_logs_what_would_follow_and_appends_nothing(self, feed: Feed) -> None:
        with DagsterInstance.ephemeral() as instance:
            result = run(feed, "strandline_state_rewind", self.REWIND, instance)
            logged = [
                event.user_message for event in instance.all_logs(result.run_id) if not event.dagster_event
            ]
        assert result.success
        assert logged == [
            "flow: rewind",
            *self.SHOWN,
            "nothing was appended: set confirm to true to append this entry",
        ]
        assert len(feed.entries) == 2

    def test_with_confirm_it_appends_the_entry_and_an_observation_shows_it(self, feed: Feed) -> None:
        result = run(feed, "strandline_state_rewind", {**self.REWIND, "confirm": True})
        assert result.success
        newest = feed.entries[-1]
        assert (newest.number, newest.why, newest.reason, feed.path) == (3, "rewind", "because", "1.ndjson")
        (event,) = [event for event in result.all_events if event.is_asset_observation]
        observation = event.asset_observation_data.asset_observation
        assert observation.asset_key == AssetKey(["watermark", NAME])
        shown = values(observation)
        assert (shown["state_number"], shown["watermark"], shown["why"], shown["reason"]) == (
            3,
            "1.ndjson",
            "rewind",
            "because",
        )
        assert shown["effect"] == "\n".join(f"- {line}" for line in self.SHOWN)
        assert feed.load().rows == 1
        assert feed.ids == [1, 2]

    @pytest.mark.parametrize(
        ("job", "config", "command"),
        [
            (
                "strandline_state_set",
                {"watermark": '{"path": "1.ndjson"}'},
                ["state", "set", NAME, '{"path": "1.ndjson"}'],
            ),
            ("strandline_state_rewind", {"to": 9}, ["state", "rewind", NAME, "--to", "9"]),
            ("strandline_files_release", {"paths": ["1.ndjson"]}, ["files", "release", NAME, "1.ndjson"]),
            ("strandline_files_unprocess", {"paths": ["1.ndjson"]}, ["files", "unprocess", NAME, "1.ndjson"]),
        ],
    )
    def test_a_refused_decision_fails_the_run_with_the_command_line_s_text_and_choices(
        self, feed: Feed, job: str, config: Mapping[str, Any], command: list[str]
    ) -> None:
        text, metadata = failed(
            run(feed, job, {"dataflow": NAME, "reason": "because", "confirm": True, **config})
        )
        answer = feed.cli(
            *command, "--reason", "because", *(["--yes"] if job.startswith("strandline_state") else [])
        )
        assert text == answer.error["message"]
        assert metadata == {
            "code": answer.error["code"],
            "exit_code": answer.code,
            **numbered(answer.error["choices"]),
        }
        assert len(feed.entries) == 2

    @pytest.mark.parametrize(
        ("job", "found"),
        [
            ("strandline_state_accept", "expected a reason"),
            ("strandline_state_rewind", "expected the number of an entry, found -1"),
            ("strandline_state_set", 'expected a watermark such as {"path": text}'),
            ("strandline_state_import", "expected the lines of `strandline state export`"),
            ("strandline_files_release", "expected paths of files, found none"),
        ],
    )
    def test_its_form_names_the_dataflow_and_what_is_missing(self, feed: Feed, job: str, found: str) -> None:
        definitions = build_definitions(load_project(feed.folder), platform_of(feed))
        filled = definitions.resolve_job_def(job).run_config or {}
        form = filled["ops"][f"{job}_step"]["config"]
        assert (form["dataflow"], form["confirm"]) == (NAME, False)
        assert found in failed(run(feed, job, {**form, "confirm": True}))[0]
        assert len(feed.entries) == 2

    def test_an_unknown_dataflow_fails_the_run_with_the_nearest_name(self, feed: Feed) -> None:
        text, metadata = failed(
            run(feed, "strandline_state_accept", {"dataflow": "flw", "reason": "because"})
        )
        assert (metadata["code"], metadata["exit_code"]) == ("unknown_dataflow", 2)
        assert "flow" in text

    @pytest.mark.parametrize(
        "config", [{"dataflow": NAME, "to": 1}, {**REWIND, "to": "one"}, {**REWIND, "too": 1}]
    )
    def test_what_does_not_fit_its_form_never_runs(self, feed: Feed, config: Mapping[str, Any]) -> None:
        with pytest.raises(DagsterInvalidConfigError):
            run(feed, "strandline_state_rewind", config)

    @pytest.mark.parametrize(
        ("job", "config", "why"),
        [
            ("strandline_state_accept", {}, "accept"),
            ("strandline_state_adopt", {}, "adopt"),
            ("strandline_state_reset", {"replace": True}, "reset"),
            ("strandline_state_set", {"watermark": '{"path": "3.ndjson"}'}, "set"),
        ],
    )
    def test_every_decision_is_a_job(self, feed: Feed, job: str, config: Mapping[str, Any], why: str) -> None:
        assert run(feed, job, {"dataflow": NAME, "reason": "because", "confirm": True, **config}).success
        assert [entry.why for entry in feed.entries] == ["run", "run", why]

    def test_an_import_takes_the_answer_about_deleted_rows(self, feed: Feed) -> None:
        lines = feed.command("state", "export", NAME).out.splitlines()
        ids = feed.ids
        feed.put("9.ndjson", 9)
        feed.load()
        DeltaTable(str(feed.table)).delete("id = 9")
        config = {"dataflow": NAME, "reason": "because", "confirm": True, "lines": lines}
        assert run(feed, "strandline_state_import", {**config, "deleted": "load"}).success
        feed.load()
        assert feed.ids == [*ids, 9]

    @pytest.mark.parametrize(
        ("job", "config", "command"),
        [
            ("strandline_state_history", {"limit": 1}, ["history", NAME, "--limit", "1"]),
            ("strandline_state_diff", {"before": None, "after": None}, ["diff", NAME]),
            ("strandline_state_diff", {"before": 0, "after": 1}, ["diff", NAME, "--from", "0", "--to", "1"]),
        ],
    )
    def test_views_show_the_command_line_s_documents(
        self, feed: Feed, job: str, config: Mapping[str, Any], command: list[str]
    ) -> None:
        result = run(feed, job, {"dataflow": NAME, **config})
        (event,) = [event for event in result.all_events if event.is_asset_observation]
        shown = values(event.asset_observation_data.asset_observation)
        assert shown == {"state": feed.cli("state", *command).json}

    def test_import_takes_the_lines_of_an_export(self, feed: Feed) -> None:
        lines = feed.cli("state", "export", NAME).out.splitlines()
        shutil.rmtree(feed.state)
        config = {"dataflow": NAME, "reason": "because", "confirm": True, "lines": lines}
        assert run(feed, "strandline_state_import", config).success
        assert [(entry.number, entry.why) for entry in feed.entries][-1] == (3, "import")

    def test_release_hands_a_quarantined_file_to_the_next_run(self, make_feed: MakeFeed) -> None:
        feed = make_feed(on_bad_file="quarantine")
        feed.put_text("1.ndjson", '{"id": "no number"}\n')
        feed.put("2.ndjson", 2)
        feed.load()
        feed.put("1.ndjson", 1)
        config = {"dataflow": NAME, "reason": "because", "confirm": True, "paths": ["1.ndjson"]}
        assert run(feed, "strandline_files_release", config).success
        feed.load()
        assert feed.ids == [1, 2]
