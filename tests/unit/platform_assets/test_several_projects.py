"""Several projects in one code location and one Dagster instance, with dataflows of one name."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dagster import (
    AssetIn,
    AssetKey,
    DagsterInstance,
    DagsterRunStatus,
    Definitions,
    ExecuteInProcessResult,
    SensorResult,
    asset,
    build_sensor_context,
    materialize,
    mem_io_manager,
)
from dagster._core.test_utils import create_run_for_test
from deltalake import DeltaTable

from partitions.errors import ConfigurationError
from platform_assets import public
from platform_assets.build import build_definitions
from platform_assets.cli import running
from platform_assets.cli.running import Runner
from platform_assets.factory import noted_names as noted_names_module
from platform_assets.factory.noted_names import noted_names, noted_tags
from platform_assets.project import Project, load_project
from platform_assets.translator import StrandlineAsset, StrandlineTranslator
from resources.connections.places import Place
from resources.dagster.names import DagsterNames
from resources.dagster.run_history import RunHistory, SuccessfulRuns
from resources.dagster.run_options import RunOptions
from resources.dagster.run_tags import DATAFLOW_TAG, PROJECT_TAG, RunTags
from resources.kinds import all_decisions as decisions
from resources.notes.last_run import last_attempt
from resources.platform.platform import Platform
from tests.support.jvmless import JvmlessEngine, JvmlessPlatform, jvmless

PAGE = Path(__file__).parents[3] / "docs/how-to/several-projects.md"

pytestmark = pytest.mark.without_jvm

QUIET: dict[str, Any] = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
EVENTS = """
source: {type: files, path: ./landing, format: ndjson, schema: id long}
watermark: {type: path}
target: {load: append, origin_columns: false}
"""


@dataclass
class Shop:
    """A project with its files."""

    folder: Path

    @classmethod
    def at(cls, folder: Path, **dataflows: str) -> Shop:
        (folder / "dataflows").mkdir(parents=True)
        (folder / "landing").mkdir()
        (folder / "platform.yaml").write_text("{}")
        for name, text in (dataflows or {"events": EVENTS}).items():
            (folder / f"dataflows/{name}.yaml").write_text(text)
        return cls(folder)

    def put(self, name: str, *ids: int) -> None:
        (self.folder / "landing" / name).write_text("".join(f'{{"id": {number}}}\n' for number in ids))

    @property
    def project(self) -> Project:
        project = load_project(self.folder, environment={})
        assert project.errors == []
        return project

    @property
    def platform(self) -> Platform:
        return JvmlessPlatform(
            state=Place(str(self.folder / ".strandline/state")),
            lake=Place(str(self.folder / ".strandline/lake")),
            spark=JvmlessEngine(),
            source_of=lambda flow: Place(str(self.folder / "landing")),
            folder=self.folder,
            lineage=self.project.lineage,
        )

    def define(self, **options: Any) -> Definitions:
        return build_definitions(self.project, self.platform, RunOptions(), **options)

    def ids(self, table: str = "bronze/events") -> list[int]:
        rows = DeltaTable(str(self.folder / ".strandline/lake" / table)).to_pyarrow_table()
        return sorted(rows.column("id").to_pylist())


@pytest.fixture
def shops(tmp_path: Path) -> Iterator[tuple[Shop, Shop]]:
    north, south = Shop.at(tmp_path / "north"), Shop.at(tmp_path / "south")
    north.put("1.ndjson", 1, 2)
    south.put("1.ndjson", 7)
    with jvmless():
        yield north, south


@pytest.fixture
def instance() -> Iterator[DagsterInstance]:
    with DagsterInstance.ephemeral() as opened:
        yield opened


def merged(shops: Sequence[Shop]) -> Definitions:
    return Definitions.merge(
        *(shop.define(name=shop.folder.name, key_prefix=shop.folder.name) for shop in shops)
    )


def load(definitions: Definitions, job: str, instance: DagsterInstance) -> ExecuteInProcessResult:
    return definitions.resolve_job_def(job).execute_in_process(
        instance=instance, run_config=QUIET, raise_on_error=False
    )


def tick(definitions: Definitions, sensor: str, instance: DagsterInstance) -> SensorResult:
    answer = definitions.resolve_sensor_def(sensor)(build_sensor_context(instance=instance))
    assert isinstance(answer, SensorResult)
    return answer


def test_two_projects_with_a_dataflow_of_one_name_load_each_its_own_rows(
    shops: tuple[Shop, Shop], instance: DagsterInstance
) -> None:
    definitions = merged(shops)
    for project in ("north", "south"):
        result = load(definitions, f"load_{project}__events", instance)
        assert result.success
        assert {event.asset_key for event in result.get_asset_materialization_events()} == {
            AssetKey([project, "bronze", "events"]),
            AssetKey([project, "watermark", "events"]),
        }
        tags = {
            name: value for name, value in result.dagster_run.tags.items() if name.startswith("strandline/")
        }
        assert (tags[DATAFLOW_TAG], tags[PROJECT_TAG]) == (f"{project}/events", project)
    assert [shop.ids() for shop in shops] == [[1, 2], [7]]
    pools = {op.pool for job in definitions.get_repository_def().get_all_jobs() for op in job.all_node_defs}  # type: ignore[attr-defined]
    assert {"strandline/north/events", "strandline/south/events"} <= pools


def test_one_run_over_the_assets_of_both_projects_loads_both(
    shops: tuple[Shop, Shop], instance: DagsterInstance
) -> None:
    definitions = merged(shops)
    job = definitions.resolve_implicit_global_asset_job_def()
    assert job.execute_in_process(instance=instance, run_config=QUIET).success
    assert [shop.ids() for shop in shops] == [[1, 2], [7]]


def test_a_run_in_flight_of_one_project_holds_up_no_dataflow_of_the_other(
    shops: tuple[Shop, Shop], instance: DagsterInstance
) -> None:
    definitions = merged(shops)
    create_run_for_test(
        instance,
        status=DagsterRunStatus.STARTED,
        tags=RunTags("north").of("events"),
        job_name="load_north__events",
    )
    create_run_for_test(instance, status=DagsterRunStatus.STARTED, tags=RunTags().of("events"))
    waits = tick(definitions, "north__events_files", instance)
    assert not waits.run_requests
    (request,) = tick(definitions, "south__events_files", instance).run_requests or ()
    assert {name: request.tags[name] for name in (DATAFLOW_TAG, PROJECT_TAG)} == {
        DATAFLOW_TAG: "south/events",
        PROJECT_TAG: "south",
    }


def test_a_project_sees_failed_runs_of_its_own_alone(
    shops: tuple[Shop, Shop], instance: DagsterInstance
) -> None:
    for project in ("north", None):
        create_run_for_test(
            instance, status=DagsterRunStatus.FAILURE, tags=RunTags(project).of("events"), job_name="load"
        )

    def last(project: str | None) -> str | None:
        history = RunHistory(shops[0].platform.log, instance, SuccessfulRuns(RunTags(project)))
        attempt = history.last("events", None)
        return attempt.status if attempt else None

    assert [last("north"), last(None), last("south")] == ["failed", "failed", None]


def test_names_of_both_projects_differ_in_all_that_an_instance_shares(shops: tuple[Shop, Shop]) -> None:
    def names(shop: Shop) -> set[str]:
        definitions = shop.define(name=shop.folder.name, key_prefix=shop.folder.name)
        repository = definitions.get_repository_def()
        return {
            *(definitions.resources or {}),
            *(job.name for job in repository.get_all_jobs() if not job.name.startswith("__")),
            *(sensor.name for sensor in repository.sensor_defs),
            *(schedule.name for schedule in repository.schedule_defs),
            *(key.to_user_string() for key in repository.assets_defs_by_key),
        }

    north, south = map(names, shops)
    assert not north & south
    assert {name for name in north if "north" not in name} == set()
    assert {"strandline_north_table", "strandline_north_state_set", "strandline_north_replay"} <= north


def test_a_second_project_without_a_name_is_refused_with_both_projects_and_the_remedy(
    shops: tuple[Shop, Shop],
) -> None:
    north, south = (shop.define() for shop in shops)
    with pytest.raises(ConfigurationError) as refused:
        Definitions.merge(north, south)
    assert refused.value.message == (
        f"one code location: expected a name of its own for each Strandline project, found {both_of(shops)} with no"
        " name. Give one of them another name, and a key_prefix, since both have the asset bronze/events:"
        ' `build_definitions(folder, name="north", key_prefix="north")`, or `name: north` and `key_prefix: north` in the'
        " attributes of its defs.yaml"
    )
    both = Definitions.merge(south, shops[0].define(name="north", key_prefix="north"))
    assert {"load_events", "load_north__events"} <= {
        job.name for job in both.get_repository_def().get_all_jobs()
    }
    with pytest.raises(ConfigurationError, match="with the name shop"):
        Definitions.merge(*(shop.define(name="shop") for shop in shops))


def both_of(shops: Sequence[Shop]) -> str:
    return "the projects " + " and ".join(sorted(str(shop.folder.resolve()) for shop in shops))


def test_a_second_project_with_dataflows_of_other_names_needs_only_a_name(shops: tuple[Shop, Shop]) -> None:
    dataflows = shops[1].folder / "dataflows"
    (dataflows / "events.yaml").rename(dataflows / "orders.yaml")
    with pytest.raises(ConfigurationError, match=r"Give one of them another name: .*, or `name: north` in"):
        Definitions.merge(*(shop.define() for shop in shops))
    both = Definitions.merge(shops[0].define(), shops[1].define(name="north"))
    assert both.get_repository_def().has_job("load_north__orders")


@pytest.mark.parametrize("broken", [False, True])
def test_named_projects_with_one_key_of_a_table_are_refused_with_the_remedy(
    broken: bool, shops: tuple[Shop, Shop]
) -> None:
    if broken:
        (shops[1].folder / "dataflows/events.yaml").write_text("source: 1\n")
    projects = [load_project(shop.folder, environment={}) for shop in shops]
    north, south = (build_definitions(project, name=project.folder.name) for project in projects)
    with pytest.raises(ConfigurationError) as refused:
        Definitions.merge(north, Definitions(), south)
    assert refused.value.message == (
        f"one code location: expected keys of their own for the assets of each Strandline project, found {both_of(shops)}"
        ' with the asset bronze/events. Give one of them a prefix: `build_definitions(folder, key_prefix="north")`, or'
        " `key_prefix: north` in the attributes of its defs.yaml"
    )
    moved = build_definitions(projects[0], name="north", key_prefix="north")
    assert Definitions.merge(moved, south).get_repository_def().has_job("load_north__events")


def test_a_dataflow_that_is_called_like_one_of_a_named_project_is_refused(tmp_path: Path) -> None:
    for folder, name in (("north", "events"), ("south", "north__events")):
        (tmp_path / folder / "dataflows").mkdir(parents=True)
        (tmp_path / folder / f"dataflows/{name}.yaml").write_text(EVENTS)
    north = build_definitions(tmp_path / "north", name="north", key_prefix="north")
    with pytest.raises(
        ConfigurationError, match=r"south with north__events: .* Give the project with a name"
    ):
        Definitions.merge(north, build_definitions(tmp_path / "south"))


def test_of_three_projects_each_is_compared_with_each(shops: tuple[Shop, Shop], tmp_path: Path) -> None:
    east = Shop.at(tmp_path / "east")
    named = [shop.define(name=shop.folder.name, key_prefix=shop.folder.name) for shop in shops]
    assert Definitions.merge(*named, east.define()).get_repository_def().has_job("load_events")
    with pytest.raises(ConfigurationError, match="with the name south"):
        Definitions.merge(*named, east.define(name="south", key_prefix="east"))


def test_a_reload_of_a_project_is_no_second_project(shops: tuple[Shop, Shop]) -> None:
    for _ in range(2):
        assert Definitions.merge(shops[0].define(), Definitions()).get_repository_def().get_all_jobs()


@pytest.mark.parametrize("name", ["North", "", "a__b", "a_", "a-b", "2x", "a/b"])
def test_a_name_that_would_make_two_names_alike_is_refused(name: str, shops: tuple[Shop, Shop]) -> None:
    with pytest.raises(ConfigurationError, match="choose a name such as north or shop_north"):
        shops[0].define(name=name)


def test_a_project_may_leave_out_the_jobs_of_an_operator(shops: tuple[Shop, Shop]) -> None:
    jobs = {job.name for job in shops[0].define(decisions=False).get_repository_def().get_all_jobs()}
    assert {name for name in jobs if not name.startswith("__")} == {"load_events", "late_events"}


class Translated(StrandlineTranslator):
    def __init__(self, *prefix: str) -> None:
        self._prefix = prefix

    def get_asset_spec(self, data: StrandlineAsset) -> Any:
        spec = data.spec.replace_attributes(group_name=f"{data.role}s", owners=["team:shop"])
        return spec.replace_attributes(key=AssetKey([*self._prefix, data.dataflow.name, data.role]))


def test_keys_may_change_between_two_runs_and_state_runs_and_checks_go_on(
    shops: tuple[Shop, Shop], instance: DagsterInstance
) -> None:
    shop = shops[0]
    assert load(shop.define(), "load_events", instance).success
    shop.put("2.ndjson", 3)
    definitions = shop.define(translator=Translated("shop"))
    (request,) = tick(definitions, "events_files", instance).run_requests or ()
    result = load(definitions, "load_events", instance)
    assert shop.ids() == [1, 2, 3]
    assert {event.asset_key for event in result.get_asset_materialization_events()} == {
        AssetKey(["shop", "events", "table"]),
        AssetKey(["shop", "events", "watermark"]),
    }
    assert {check.asset_key for check in result.get_asset_check_evaluations()} == {
        AssetKey(["shop", "events", "table"])
    }
    assert request.tags[DATAFLOW_TAG] == result.dagster_run.tags[DATAFLOW_TAG] == "events"
    attempt = last_attempt(shop.platform.log, "events")
    assert attempt is not None
    assert attempt.run_id == result.run_id
    assert [record.dagster_run.tags[DATAFLOW_TAG] for record in instance.get_run_records()] == ["events"] * 2


def test_a_translator_changes_what_an_asset_shows(shops: tuple[Shop, Shop]) -> None:
    specs = shops[0].define(translator=Translated()).resolve_all_asset_specs()
    assert {(spec.key.to_user_string(), spec.group_name, *spec.owners) for spec in specs} == {
        ("events/table", "tables", "team:shop"),
        ("events/watermark", "watermarks", "team:shop"),
    }


def test_a_dataflow_depends_on_the_translated_key_of_what_it_reads(tmp_path: Path) -> None:
    reader = """
source: {type: table, table: bronze/events}
watermark: {type: column, columns: [id]}
target: {load: append}
layer: silver
"""
    shop = Shop.at(tmp_path / "shop", events=EVENTS, copies=reader)
    for options, above in (
        ({}, ["bronze", "events"]),
        ({"key_prefix": "shop/north"}, ["shop", "north", "bronze", "events"]),
        ({"translator": Translated("x")}, ["x", "events", "table"]),
    ):
        specs = shop.define(**options).resolve_all_asset_specs()
        deps = {dep.asset_key for spec in specs for dep in spec.deps}
        assert deps == {AssetKey(above)}


def test_a_translator_may_add_assets_upstream(shops: tuple[Shop, Shop]) -> None:
    class Fed(StrandlineTranslator):
        def get_asset_spec(self, data: StrandlineAsset) -> Any:
            return data.spec.merge_attributes(deps=["exports"]) if data.role == "table" else data.spec

    specs = shops[0].define(translator=Fed()).resolve_all_asset_specs()
    assert {dep.asset_key for spec in specs for dep in spec.deps} == {AssetKey("exports")}


def test_an_error_of_a_translator_names_the_asset_that_it_was_asked_for(shops: tuple[Shop, Shop]) -> None:
    class Failing(StrandlineTranslator):
        def get_asset_spec(self, data: StrandlineAsset) -> Any:
            return data.spec if data.role == "table" else next(iter(()))

    with pytest.raises(StopIteration) as raised:
        shops[0].define(translator=Failing())
    assert raised.value.__notes__ == ["(translator, the watermark of dataflow events)"]


class OneKey(StrandlineTranslator):
    def get_asset_spec(self, data: StrandlineAsset) -> Any:
        return data.spec.replace_attributes(key="same")


class NoSpec(StrandlineTranslator):
    def get_asset_spec(self, data: StrandlineAsset) -> Any:
        return "events"


@pytest.mark.parametrize(
    ("translator", "message"),
    [
        (
            OneKey(),
            "dataflow events: expected a key of its own for each asset, found two with the key same: correct the translator",
        ),
        (NoSpec(), "translator, the table of dataflow events: expected an AssetSpec, found str"),
    ],
)
def test_a_translator_that_cannot_be_followed_is_refused(
    translator: StrandlineTranslator, message: str, shops: tuple[Shop, Shop]
) -> None:
    with pytest.raises(ConfigurationError) as refused:
        shops[0].define(translator=translator)
    assert refused.value.message == message


@pytest.mark.parametrize("way", ["tick", "run"])
def test_the_command_line_finds_the_names_that_a_location_has_noted(
    way: str, shops: tuple[Shop, Shop], instance: DagsterInstance
) -> None:
    north, south = shops
    definitions = north.define(name="north", translator=Translated("n"))
    if way == "tick":
        tick(definitions, "north__events_files", instance)
    else:
        load(definitions, "load_north__events", instance)
    names = noted_names(instance, north.platform, north.project.dataflows.values())
    assert (names.project, names["events"].table, names["events"].watermark) == (
        "north",
        AssetKey(["n", "events", "table"]),
        AssetKey(["n", "events", "watermark"]),
    )
    assert noted_tags(instance, north.platform) == RunTags("north")
    flows = list(south.project.dataflows.values())
    assert noted_names(instance, south.platform, flows) == DagsterNames.of(flows)
    tick(north.define(), "events_files", instance)
    assert noted_names(instance, north.platform, flows) == DagsterNames.of(flows)


def test_an_instance_that_keeps_no_names_fails_no_tick_no_run_and_no_command(
    shops: tuple[Shop, Shop], instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> str:
        raise NotImplementedError

    for name in ("store_text", "stored_text"):
        monkeypatch.setattr(noted_names_module, name, refuse)
    definitions = shops[0].define(name="north")
    assert tick(definitions, "north__events_files", instance).run_requests
    assert load(definitions, "load_north__events", instance).success
    flows = list(shops[0].project.dataflows.values())
    assert noted_names(instance, shops[0].platform, flows) == DagsterNames.of(flows)


def test_an_asset_of_another_kind_is_refused_by_a_project_s_io_managers(
    shops: tuple[Shop, Shop], instance: DagsterInstance
) -> None:
    definitions = shops[0].define(name="north")

    @asset(key=["bronze", "events2"], io_manager_key="own")
    def foreign() -> int:
        return 1

    messages = {
        "strandline_north_table": "asset bronze/events2: expected the table bronze/events2 that it has stored, found none. Materialize the asset first; or give the input the IO manager that stores the asset",
        "strandline_north_watermark": "asset bronze/events2: expected a watermark of this project, found another asset. Its IO manager,"
        " strandline_north_watermark, reads the project's own assets only: give it another IO manager",
    }
    for manager, message in messages.items():

        @asset(ins={"given": AssetIn(AssetKey(["bronze", "events2"]), input_manager_key=manager)})
        def reader(given: Any) -> None: ...

        result = materialize(
            [foreign, reader],
            instance=instance,
            resources={**(definitions.resources or {}), "own": mem_io_manager},
            run_config=QUIET,
            raise_on_error=False,
        )
        (failure,) = [event.step_failure_data for event in result.all_node_events if event.is_step_failure]
        assert failure.error is not None
        assert message in str(failure.error.cause or failure.error)


def test_a_second_project_on_the_state_of_the_first_is_refused_before_it_writes(
    shops: tuple[Shop, Shop], instance: DagsterInstance
) -> None:
    north, south = shops
    assert load(north.define(name="north"), "load_north__events", instance).success
    (south.folder / ".strandline").mkdir()
    (south.folder / ".strandline/state").symlink_to(north.folder / ".strandline/state")
    result = load(south.define(name="south"), "load_south__events", instance)
    (failure,) = [event.step_failure_data for event in result.all_node_events if event.is_step_failure]
    assert failure.user_failure_data is not None
    assert failure.user_failure_data.metadata["code"].value == "table_missing"
    assert not (south.folder / ".strandline/lake").exists()
    # What the refusal offers does not mix the rows either.
    flow = south.project.dataflows["events"]
    decisions.decide(south.platform, flow, decisions.reset("x"), "x", lambda run: None)
    assert load(south.define(name="south"), "load_south__events", instance).success
    north.put("2.ndjson", 3)
    assert not load(north.define(name="north"), "load_north__events", instance).success
    assert [shop.ids() for shop in shops] == [[1, 2], [7]]


def test_a_run_of_the_command_line_shows_under_the_names_of_the_location(
    shops: tuple[Shop, Shop], instance: DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    north = shops[0]
    definitions = north.define(name="north", translator=Translated("n"))
    tick(definitions, "north__events_files", instance)
    for shop in shops:
        monkeypatch.setattr(running, "build_platform", lambda *_: shop.platform)  # noqa: B023 - called in this round
        flows = list(shop.project.dataflows.values())
        assert Runner(shop.project, flows, instance).run(flows[0]).status == "committed"
    assert [shop.ids() for shop in shops] == [[1, 2], [7]]
    rows = {
        key: record.asset_materialization.metadata["rows"].value
        for key in (("n", "events", "table"), ("bronze", "events"))
        for record in instance.fetch_materializations(AssetKey(key), limit=5).records
        if record.asset_materialization
    }
    assert rows == {("n", "events", "table"): 2, ("bronze", "events"): 1}
    tags = {run.tags[DATAFLOW_TAG]: run.tags.get(PROJECT_TAG) for run in instance.get_runs()}
    assert tags == {"north/events": "north", "events": None}
    assert tick(definitions, "north__events_files", instance).run_requests == []


def test_the_code_that_the_documentation_shows_works(
    shops: tuple[Shop, Shop], monkeypatch: pytest.MonkeyPatch
) -> None:
    Shop.at(shops[0].folder.parent / "loads")
    monkeypatch.chdir(shops[0].folder.parent)
    monkeypatch.setitem(sys.modules, "strandline", public)
    merged_projects, translated = (
        _defs_of(text) for text in re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    )
    jobs = {job.name for job in merged_projects.get_repository_def().get_all_jobs()}
    assert {"load_north__events", "load_south__events", "strandline_north_replay"} <= jobs
    specs = {spec.key.to_user_string(): spec for spec in translated.resolve_all_asset_specs()}
    assert {key: (spec.group_name, *spec.owners) for key, spec in specs.items()} == {
        "shop/bronze/events": ("bronze", "team:shop"),
        "watermark/events": ("operations",),
    }
    assert specs["shop/bronze/events"].tags["kind"] == "path"


def _defs_of(text: str) -> Definitions:
    module: dict[str, Any] = {"__name__": "shown"}
    exec(compile(text, "shown", "exec"), module)  # what the page says to write
    definitions = module["defs"]
    assert isinstance(definitions, Definitions)
    return definitions
