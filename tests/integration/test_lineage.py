"""Dataflows that read each other's tables: the order of a run, what a failure leaves alone, and what Dagster shows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
import yaml
from dagster import (
    AssetCheckKey,
    AssetKey,
    DagsterInstance,
    JobDefinition,
    RunRequest,
    SensorResult,
    build_sensor_context,
)
from deltalake import DeltaTable

from platform_assets.build import build_definitions
from platform_assets.factory.kinds.window.run_requests import window_sensor
from platform_assets.project import load_project
from resources.dagster.run_options import RunOptions
from resources.kinds.window.partitions import WindowAssetPartitions
from tests.integration.conftest import MakeFeed
from tests.support.feed import NAME, NOW, Feed
from tests.support.names import names_of

QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
TIME = {"name": "t", "type": "datetime", "range": {"from": "2024-01-01", "to": "2024-01-04"}}
DAILY = {"type": "window", "definition": [TIME], "window": "daily", "partial": False}
KINDS = [{"asset": "silver/daily", "fields": ["kind"]}]


@pytest.fixture
def chain(make_feed: MakeFeed) -> Feed:
    """Files into ``flow``, windows of it into ``daily``, windows x kinds of that into ``by_kind``: sorted the other way round."""
    feed = make_feed(source={"schema": "id long, at timestamp, kind string"})
    add(feed, "daily", "silver", f"bronze/{NAME}", DAILY)
    add(feed, "by_kind", "gold", "silver/daily", DAILY | {"secondary_input": KINDS}, kind="kind")
    return feed


def add(feed: Feed, name: str, layer: str, table: str, watermark: dict[str, Any], **units: str) -> None:
    definition = {
        "layer": layer,
        "source": {"type": "table", "table": table, "window_column": "at", "unit_columns": units},
        "watermark": watermark,
        "target": {"load": "merge_overwrite", "replace_by_watermark": True},
    }
    (feed.folder / f"dataflows/{name}.yaml").write_text(yaml.safe_dump(definition))


def put(feed: Feed, name: str, *days: int) -> None:
    feed.put(name, *({"id": day, "at": f"2024-01-0{day}T06:00:00Z", "kind": "ab"[day % 2]} for day in days))


def ids(feed: Feed, table: str) -> list[int]:
    place = str(feed.folder / "lake" / table)
    if not DeltaTable.is_deltatable(place):
        return []
    return sorted(DeltaTable(place).to_pyarrow_table(columns=["id"]).column("id").to_pylist())


def statuses(documents: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(one["dataflow"], one["status"]) for one in documents]


@pytest.mark.full
def test_each_dataflow_runs_after_those_whose_tables_it_reads_however_they_are_named(chain: Feed) -> None:
    """And the instance of DAGSTER_HOME is told: of runs without partitions that read what has some, too."""
    home = chain.folder / "dagster_home"
    home.mkdir()
    (home / "dagster.yaml").touch()
    chain.environment["DAGSTER_HOME"] = str(home)
    put(chain, "1.ndjson", 1, 2, 3)
    answer = chain.cli("run", "--all")
    committed = [(NAME, "committed"), ("daily", "committed"), ("by_kind", "committed")]
    assert (answer.code, statuses(answer.json)) == (0, committed)
    assert ids(chain, "gold/by_kind") == [1, 2, 3]

    # The second time what is read has events of its own, with partitions.
    answer = chain.cli("run", "by_kind", NAME, "daily")
    nothing = [(NAME, "nothing"), ("daily", "nothing"), ("by_kind", "nothing")]
    assert (answer.code, statuses(answer.json)) == (0, nothing)
    with DagsterInstance.from_config(str(home)) as instance:
        assert sorted(run.job_name for run in instance.get_runs()) == sorted(
            2 * ["load_by_kind", "load_daily", f"load_{NAME}"]
        )
        keys = [AssetCheckKey(AssetKey(["silver", "daily"]), "rows_accounted")]
        keys += [AssetCheckKey(AssetKey(["silver", "daily"]), "watermark_monotone")]
        found = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
        assert [found[key].status.value for key in keys] == ["SUCCEEDED", "SUCCEEDED"]
        days = instance.get_materialized_partitions(AssetKey(["gold", "by_kind"]))
        assert sorted(days) == ["2024-01-01", "2024-01-02", "2024-01-03"]


@pytest.mark.remedy("upstream", "run")
@pytest.mark.full
def test_what_reads_a_failed_one_is_skipped_and_others_run(chain: Feed) -> None:
    put(chain, "1.ndjson", 1)
    chain.put_text("2.ndjson", "no json\n")
    (chain.folder / "other").mkdir()
    aside = {"source": chain.definition["source"] | {"path": "./other"}, "watermark": {"type": "path"}}
    (chain.folder / "dataflows/aside.yaml").write_text(yaml.safe_dump(aside))
    answer = chain.cli("run", "--all")
    found = {one["dataflow"]: one for one in answer.json}
    assert (answer.code, {name: one["status"] for name, one in found.items()}) == (
        1,
        {NAME: "failed", "daily": "skipped", "by_kind": "skipped", "aside": "nothing"},
    )
    assert found["daily"]["error"] == {
        "code": "upstream",
        "message": f"daily was not started: {NAME} (failed) should have loaded what it reads",
        "choices": [f"strandline run {NAME} daily"],
    }
    assert found["daily"]["run_id"] is None

    # No window counts as read that the mended file has rows of.
    put(chain, "2.ndjson", 2, 3)
    chain.command(*found["daily"]["error"]["choices"][0].split()[1:])
    assert ids(chain, "silver/daily") == [1, 2, 3]
    chain.command("run", "--all")
    assert ids(chain, "gold/by_kind") == ids(chain, "silver/daily") == [1, 2, 3]


def test_a_broken_file_is_a_failed_run_of_all_and_what_reads_its_table_is_skipped(chain: Feed) -> None:
    put(chain, "1.ndjson", 1)
    chain.define(lyer="raw")
    answer = chain.cli("run", "--all")
    assert (answer.code, statuses(answer.json)) == (
        1,
        [(NAME, "failed"), ("daily", "skipped"), ("by_kind", "skipped")],
    )
    assert answer.json[0]["error"]["code"] == "project"
    assert "lyer" in answer.json[0]["error"]["message"]


def test_a_state_that_needs_a_decision_stops_what_reads_its_table(chain: Feed) -> None:
    put(chain, "1.ndjson", 1, 2, 3)
    chain.command("run", NAME)
    newest = min((chain.state / "entries").iterdir())
    newest.write_text("garbage")
    answer = chain.cli("run", NAME, "daily")
    assert (answer.code, statuses(answer.json)) == (4, [(NAME, "blocked"), ("daily", "skipped")])


def test_dagster_shows_what_is_read_and_a_run_over_partitions_reads_partitions(chain: Feed) -> None:
    put(chain, "1.ndjson", 1, 2, 3)
    chain.command("run", NAME)
    project, options = load_project(chain.folder), RunOptions(now=NOW, hold_wait=timedelta(0))
    definitions = build_definitions(project, chain.platform, options)
    graph = definitions.resolve_asset_graph()
    parents = {
        "/".join(key.path): sorted("/".join(above.path) for above in graph.get(key).parent_keys)
        for key in graph.get_all_asset_keys()
    }
    assert parents == {
        f"bronze/{NAME}": [],
        f"watermark/{NAME}": [],
        "silver/daily": [f"bronze/{NAME}"],
        "watermark/daily": [f"bronze/{NAME}"],
        "gold/by_kind": ["silver/daily"],
        "watermark/by_kind": ["silver/daily"],
    }
    with DagsterInstance.ephemeral() as instance:
        for name in ("daily", "by_kind"):
            job = definitions.resolve_job_def(f"load_{name}")
            for request in asked(instance, chain, name, job):
                result = job.execute_in_process(
                    instance=instance,
                    run_config=QUIET,
                    tags=request.tags,
                    partition_key=request.partition_key,
                    raise_on_error=False,
                )
                assert result.success
        for key in (["silver", "daily"], ["gold", "by_kind"]):
            found = sorted(instance.get_materialized_partitions(AssetKey(key)))
            assert found == ["2024-01-01", "2024-01-02", "2024-01-03"]
    assert ids(chain, "gold/by_kind") == [1, 2, 3]


def asked(instance: DagsterInstance, feed: Feed, name: str, job: JobDefinition) -> Sequence[RunRequest]:
    """What the sensor of a dataflow asks for."""
    flow = load_project(feed.folder).dataflows[name]
    partitions = WindowAssetPartitions.of(name, flow.window)
    found = window_sensor(flow, feed.platform, names_of(flow), job, partitions, NOW.timestamp).definition()(
        build_sensor_context(instance=instance)
    )
    assert isinstance(found, SensorResult)
    for request in found.dynamic_partitions_requests or ():
        instance.add_dynamic_partitions(request.partitions_def_name, list(request.partition_keys))
    return found.run_requests or ()
