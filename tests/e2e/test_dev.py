"""The whole product as a user has it open: `strandline dev`, a file dropped, the table read back, the page in a browser."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from resources.spark.connect_server import free_port
from tests.support.browser import page_shows
from tests.support.environment import clean_environment

pytestmark = pytest.mark.full

PATIENCE = 240.0
DATAFLOW = """
source: {type: files, path: ./landing, format: ndjson}
watermark: {type: path}
target: {load: append}
description: Arrivals of the test.
"""
DAYS = """
source: {type: files, path: "./days/{start:%Y-%m-%d}", format: ndjson, schema: id long}
watermark:
  type: window
  definition: [{name: day, type: datetime, range: {from: "2024-01-01", to: "2024-02-10"}}]
  window: daily
  partial: false
target: {load: merge_overwrite, replace_by_watermark: true}
"""
COPIED = """
source: {type: table, table: bronze/arrivals, unit_columns: {number: id}}
watermark: {type: window, definition: [{name: number, type: unit, units: [1, 2, 3]}]}
target: {load: merge_overwrite, replace_by_watermark: true}
"""
SPOILT = """
source: {type: files, path: ./spoilt, format: ndjson, schema: id long}
watermark: {type: path}
target: {load: append}
"""
ORDERS = """
source: {type: table, table: raw/orders}
watermark: {type: column, columns: [day]}
target: {load: append}
"""
MISSING = "2024-01-15"
LABELS = (
    "status", "rows", "files", "bytes", "slices", "seconds", "listing_calls", "watermark_before", "watermark_effective",
    "watermark_after", "plan", "lag_seconds", "state_number", "table", "table_version",
)  # fmt: skip
MATERIALISATION = """query($key: AssetKeyInput!) { assetOrError(assetKey: $key) { ... on Asset { assetMaterializations(limit: 1) {
    metadataEntries { label ... on JsonMetadataEntry { jsonString } ... on IntMetadataEntry { intValue } ... on TextMetadataEntry { text } } } } } }"""


@dataclass(frozen=True)
class Dev:
    """A running `strandline dev`."""

    project: Path
    url: str
    process: subprocess.Popen[bytes]
    log: Path
    metrics: str

    def drop(self, name: str, rows: list[dict[str, object]]) -> None:
        """Put a file into the landing zone as a careful writer does: by rename."""
        draft = self.project / "landing" / f".{name}"
        draft.write_text("".join(json.dumps(row) + "\n" for row in rows))
        draft.rename(draft.with_name(name))

    def day(self, day: str, number: int) -> None:
        """Put the file of a day, or another in its place."""
        folder = self.project / "days" / day
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".draft").write_text(json.dumps({"id": number}) + "\n")
        (folder / ".draft").rename(folder / "x.ndjson")

    def order(self, first: int) -> None:
        """Write the source of orders: one a day, the last of which stays."""
        rows = [(date(2024, 1, day), first + day) for day in range(1, 6)] + [(date(2024, 2, 1), 99)]
        table = pa.table({"day": [day for day, _ in rows], "id": [number for _, number in rows]})
        write_deltalake(str(self.project / ".strandline/lake/raw/orders"), table, mode="overwrite")

    def ids(self, name: str = "arrivals", layer: str = "bronze") -> list[int]:
        """What is in a table."""
        table = self.project / ".strandline/lake" / layer / name
        if not DeltaTable.is_deltatable(str(table)):
            return []
        return sorted(DeltaTable(str(table)).to_pyarrow_table(columns=["id"]).column("id").to_pylist())


ALL_DAYS = [(date(2024, 1, 1) + timedelta(days=number)).isoformat() for number in range(40)]


def until(condition: Callable[[], bool], what: str, log: Path) -> None:
    """Poll until it holds; a deadline turns a hang into a failure that shows the log."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, (
            f"{what}: not within {PATIENCE:.0f} s; the log ends with\n{log.read_text()[-3000:]}"
        )
        time.sleep(0.5)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/server_info", timeout=5) as response:
            return bool(response.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="module")
def dev(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dev]:
    """`strandline dev` on a project of its own, ended by its own process id."""
    project = tmp_path_factory.mktemp("project")
    (project / "dataflows").mkdir()
    (project / "landing").mkdir()
    (project / "dataflows/arrivals.yaml").write_text(DATAFLOW)
    (project / "dataflows/copied.yaml").write_text(COPIED)
    (project / "dataflows/days.yaml").write_text(DAYS)
    (project / "dataflows/spoilt.yaml").write_text(SPOILT)
    (project / "dataflows/orders.yaml").write_text(ORDERS)
    (project / "spoilt").mkdir()
    (project / "spoilt/1.ndjson").write_text('{"id": "two"}\n')
    (project / "dataflows/broken.yaml").write_text(
        "source: {type: files, pth: ./landing, format: ndjson}\nwatermark: {type: path}\n"
    )
    port, metrics_port, log = free_port(), free_port(), project / "dev.log"
    environment = clean_environment()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "platform_assets.cli",
                "--project",
                str(project),
                "dev",
                "--port",
                str(port),
                "--metrics-port",
                str(metrics_port),
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    metrics = f"http://127.0.0.1:{metrics_port}/metrics"
    running = Dev(project, f"http://127.0.0.1:{port}", process, log, metrics)
    for number, day in enumerate(ALL_DAYS):
        if day != MISSING:
            running.day(day, number)
    running.order(0)
    try:
        until(lambda: answers(running.url) or process.poll() is not None, "the UI answers", log)
        assert process.poll() is None, log.read_text()[-3000:]
        yield running
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(90)


@pytest.mark.timeout(600)
def test_a_file_in_the_landing_zone_is_loaded_after_the_sensors_next_tick(dev: Dev) -> None:
    dev.drop("1706450400-a.ndjson", [{"id": 1}, {"id": 2}])
    # Not only the rows: a run that still goes on would take the next file along.
    until(
        lambda: "1706450400-a.ndjson" in str(shown(dev).get("watermark_after")),
        "the first file is loaded",
        dev.log,
    )
    assert dev.ids() == [1, 2]
    dev.drop("1706450401-b.ndjson", [{"id": 3}])
    until(
        lambda: "1706450401-b.ndjson" in str(shown(dev).get("watermark_after")),
        "the second file is loaded",
        dev.log,
    )
    assert dev.ids() == [1, 2, 3]


@pytest.mark.timeout(600)
def test_metrics_show_the_loaded_rows(dev: Dev) -> None:
    with urllib.request.urlopen(dev.metrics, timeout=30) as response:
        text = response.read().decode()
    assert 'strandline_loaded_rows_total{dataflow="arrivals"} 3.0' in text
    assert 'strandline_known{dataflow="broken"} 0.0' in text


@pytest.mark.timeout(600)
def test_a_dataflow_that_reads_the_table_is_loaded_by_the_sensors_alone(dev: Dev) -> None:
    # Which sensor is first, that of due windows or that of the upstream, is open here; test_chains.py has them tick one by one.
    until(lambda: dev.ids("copied") == [1, 2, 3], "what reads the table is loaded", dev.log)


@pytest.mark.timeout(600)
def test_a_materialisation_shows_watermark_rows_files_listing_calls_and_plan(dev: Dev) -> None:
    metadata = shown(dev)
    assert [label for label in LABELS if label not in metadata] == []
    assert (metadata["rows"], metadata["files"]) == (1, 1)
    assert metadata["watermark_before"] == "1706450400-a.ndjson"


@pytest.mark.timeout(600)
def test_a_broken_dataflow_file_shows_as_an_asset_and_leaves_the_others_loaded(dev: Dev) -> None:
    answer = graphql(dev, "{ assetNodes { assetKey { path } description } }", {})
    nodes = {"/".join(node["assetKey"]["path"]): node["description"] for node in answer["data"]["assetNodes"]}
    assert sorted(nodes) == [
        "bronze/arrivals",
        "bronze/broken",
        "bronze/copied",
        "bronze/days",
        "bronze/orders",
        "bronze/spoilt",
        "raw/orders",
        "watermark/arrivals",
        "watermark/copied",
        "watermark/days",
        "watermark/orders",
        "watermark/spoilt",
    ]
    assert "dataflows/broken.yaml:1" in nodes["bronze/broken"]


@pytest.mark.ui
@pytest.mark.timeout(600)
def test_the_asset_s_page_in_a_browser_shows_the_watermark(dev: Dev) -> None:
    page_shows(
        f"{dev.url}/assets/bronze/arrivals",
        "watermark_after",
        "1706450401-b.ndjson",
        "bronze.arrivals",
        "arrivals.yaml",
        "Columns",
        "_source_file",
    )


@pytest.mark.ui
@pytest.mark.timeout(600)
def test_the_page_of_a_path_s_watermark_in_a_browser_shows_the_arrivals(dev: Dev) -> None:
    page_shows(f"{dev.url}/assets/watermark/arrivals", "Green is loaded", image="arrivals")


@pytest.mark.ui
@pytest.mark.timeout(600)
def test_the_page_of_an_asset_in_a_browser_says_what_failed_and_when_it_goes_on(dev: Dev) -> None:
    page_shows(
        f"{dev.url}/assets/bronze/spoilt?view=events",
        "did not materialize this asset",
        "1.ndjson, line 1",
        "failing_since",
        "why_nothing_runs",
        "next_attempt",
    )


@pytest.mark.timeout(600)
def test_the_sensor_loads_all_days_in_one_run_and_one_without_folder_fails(dev: Dev) -> None:
    until(lambda: counts(dev) == (39, 1), "39 partitions are loaded, and one failed", dev.log)
    assert dev.ids("days") == [number for number, day in enumerate(ALL_DAYS) if day != MISSING]
    first = runs(dev, "load_days")[-1]  # a later one has tried the missing day again
    assert (first["dagster/asset_partition_range_start"], first["dagster/asset_partition_range_end"]) == (
        ALL_DAYS[0],
        ALL_DAYS[-1],
    )


@pytest.mark.timeout(600)
def test_a_failed_partition_is_retried_from_the_ui(dev: Dev) -> None:
    dev.day(MISSING, 14)
    backfill(dev, [MISSING])
    until(lambda: counts(dev) == (40, 0), "the failed partition is loaded", dev.log)
    assert dev.ids("days") == list(range(40))


@pytest.mark.timeout(600)
def test_a_backfill_of_thirty_partitions_is_one_run_that_replaces_them(dev: Dev) -> None:
    for number, day in enumerate(ALL_DAYS[:30]):
        dev.day(day, 1000 + number)
    found = backfill(dev, ALL_DAYS[:30])
    done = {"dagster/backfill": found}
    until(
        lambda: [run["status"] for run in runs(dev, tags=done)] == ["SUCCESS"],
        "the backfill is over",
        dev.log,
    )
    assert dev.ids("days") == [*range(30, 40), *range(1000, 1030)]


@pytest.mark.ui
@pytest.mark.timeout(600)
def test_the_page_of_partitions_in_a_browser_shows_each_with_its_window_and_rows(dev: Dev) -> None:
    page_shows(
        f"{dev.url}/assets/bronze/days?view=partitions&partition=2024-01-30",
        "[2024-01-30T00:00:00+00:00, 2024-01-31T00:00:00+00:00)",
        "Materialized (40)",
        "Failed (0)",
        "Missing (0)",
        "forced",
    )


@pytest.mark.ui
@pytest.mark.timeout(600)
def test_the_page_of_the_watermark_in_a_browser_shows_the_ledger_after_a_range_run(dev: Dev) -> None:
    page_shows(
        f"{dev.url}/assets/watermark/days",
        "complete_up_to",
        "2024-02-10T00:00:00+00:00",
        "Green is loaded",
        image="ledger",
    )


@pytest.mark.timeout(600)
def test_a_month_is_replayed_aside_and_promoted_or_dropped_by_jobs_from_the_ui(dev: Dev) -> None:
    until(lambda: dev.ids("orders") == [1, 2, 3, 4, 5, 99], "orders are loaded", dev.log)
    dev.order(100)  # below the watermark: no run reads it
    month = {"dataflow": "orders", "start": "2024-01-01", "end": "2024-02-01", "every": "2 days"}
    ending = {"dataflow": "orders", "table": "aside/january", "reason": "corrected at the source"}
    launch(dev, "strandline_replay", {**month, "into": "aside/january"})
    assert dev.ids("january", "aside") == [101, 102, 103, 104, 105]
    launch(dev, "strandline_promote", ending)  # only shows what it would do
    assert dev.ids("orders") == [1, 2, 3, 4, 5, 99]
    launch(dev, "strandline_promote", {**ending, "confirm": True})
    assert (dev.ids("orders"), dev.ids("january", "aside")) == ([99, 101, 102, 103, 104, 105], [])
    launch(dev, "strandline_replay", {**month, "into": "aside/january"})
    launch(dev, "strandline_drop", {**ending, "confirm": True})
    assert (dev.ids("orders"), dev.ids("january", "aside")) == ([99, 101, 102, 103, 104, 105], [])
    dev.order(200)
    launch(dev, "strandline_replay", {**month, "replace": True})
    assert dev.ids("orders") == [99, 201, 202, 203, 204, 205]


@pytest.mark.ui
@pytest.mark.timeout(600)
def test_the_page_of_the_watermark_in_a_browser_shows_the_chunks_of_a_replay(dev: Dev) -> None:
    page_shows(f"{dev.url}/assets/watermark/orders?view=events", "chunks_done", "chunks_in_all")


@pytest.mark.timeout(600)
def test_a_killed_engine_starts_again_at_its_address_and_runs_go_on(dev: Dev) -> None:
    loaded, address = dev.ids(), engine_of(dev)[0]
    for number in (4, 5):
        before = dev.log.read_text()
        os.kill(engine_of(dev)[1], signal.SIGKILL)
        dev.drop(f"170645040{number}-c.ndjson", [{"id": number}])
        until(lambda: dev.ids()[-1:] == [number], "the file after the engine's death is loaded", dev.log)  # noqa: B023 - called in this round
        said = dev.log.read_text().removeprefix(before)
        assert "was ended by SIGKILL (often because memory ran out); starting another" in said
        assert engine_of(dev)[0] == address
    assert dev.ids() == [*loaded, 4, 5]


def test_dev_says_what_it_started_and_what_is_broken_and_keeps_runs_below(dev: Dev) -> None:
    said = dev.log.read_text()
    home = dev.project / ".strandline/dagster"
    assert (
        f"project: {dev.project}; Dagster's runs: {home}\ndataflows: arrivals, copied, days, orders, spoilt\nbroken: broken"
        in said
    )
    assert "  broken: dataflows/broken.yaml:1:" in said
    assert f"Dagster UI: {dev.url}" in said
    assert "DEBUG" not in said + (home / "dev/code-server.log").read_text()
    assert (home / "history/runs.db").exists()


@pytest.mark.timeout(600)
def test_a_new_dataflow_shows_in_the_ui_and_is_loaded_and_a_broken_one_is_named(dev: Dev) -> None:
    (dev.project / "added").mkdir()
    (dev.project / "added/1.ndjson").write_text('{"id": 7}\n')
    (dev.project / "dataflows/added.yaml").write_text(DATAFLOW.replace("./landing", "./added"))
    until(lambda: dev.ids("added") == [7], "the new dataflow is loaded by its sensor", dev.log)
    said = dev.log.read_text()
    assert (
        "reloading, because dataflows/added.yaml changed …\nreloaded: 7 dataflows, 1 of them broken\n" in said
    )
    nodes = graphql(dev, "{ assetNodes { assetKey { path } } }", {})["data"]["assetNodes"]
    assert ["bronze", "added"] in [node["assetKey"]["path"] for node in nodes]

    (dev.project / "platform.yaml").write_text("lakes: {path: ./lake}\n")
    until(
        lambda: "the project does not load: " in dev.log.read_text().removeprefix(said),
        "the broken settings are told",
        dev.log,
    )
    assert "platform.yaml" in dev.log.read_text().removeprefix(said)
    (dev.project / "platform.yaml").unlink()
    until(
        lambda: "reloaded: 7 dataflows, 1 of them broken\n" in dev.log.read_text().removeprefix(said),
        "the mended settings are loaded",
        dev.log,
    )


@pytest.mark.timeout(600)
def test_after_term_nothing_that_it_has_started_is_left_and_there_is_no_stack_trace(dev: Dev) -> None:
    """The last one of this module: it ends what the others use."""
    started = descendants(dev.process.pid)
    assert len(started) >= 5  # engine, code server and its child, daemon, webserver
    dev.process.send_signal(signal.SIGTERM)
    assert dev.process.wait(60) == 0
    assert started & alive() == set()
    assert "Traceback" not in dev.log.read_text()


def engine_of(dev: Dev) -> tuple[str, int]:
    """Address and process of the newest engine."""
    found = re.findall(r"^Spark Connect server: (\S+) \(process (\d+),", dev.log.read_text(), re.MULTILINE)
    return found[-1][0], int(found[-1][1])


def descendants(of: int) -> set[int]:
    """All processes below one."""
    children: dict[int, set[int]] = {}
    for pid in alive():
        with suppress(OSError):
            parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
            children.setdefault(parent, set()).add(pid)
    found, left = set[int](), [of]
    while left:
        below = children.get(left.pop(), set())
        found |= below
        left += below
    return found


def alive() -> set[int]:
    """All processes that are not dead, reaped or not."""
    found = set[int]()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if stat.read_text().rpartition(")")[2].split()[0] not in ("Z", "X"):
                found.add(int(stat.parent.name))
    return found


def counts(dev: Dev) -> tuple[int, int]:
    """How many partitions are loaded, and how many failed."""
    query = """query($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
        partitionStats { numMaterialized numFailed } } } }"""
    stats = graphql(dev, query, {"key": {"path": ["bronze", "days"]}})["data"]["assetNodeOrError"][
        "partitionStats"
    ]
    return stats["numMaterialized"], stats["numFailed"]


def launch(dev: Dev, job: str, config: Mapping[str, object]) -> None:
    """Run a job with config as its launchpad does, to its end."""
    query = """mutation($params: ExecutionParams!) { launchRun(executionParams: $params) {
        __typename ... on LaunchRunSuccess { run { runId } } ... on RunConfigValidationInvalid { errors { message } }
        ... on PythonError { message } } }"""
    selector = {"repositoryLocationName": "strandline", "repositoryName": "__repository__", "jobName": job}
    given = {"ops": {f"{job}_step": {"config": config}}}
    before = {run["runId"] for run in runs(dev, job)}
    answer = graphql(dev, query, {"params": {"selector": selector, "runConfigData": given}})["data"][
        "launchRun"
    ]
    assert answer["__typename"] == "LaunchRunSuccess", answer
    ended = ("SUCCESS", "FAILURE", "CANCELED")
    until(
        lambda: [run["status"] in ended for run in runs(dev, job) if run["runId"] not in before] == [True],
        f"the job {job} is over",
        dev.log,
    )
    assert [run["status"] for run in runs(dev, job) if run["runId"] not in before] == ["SUCCESS"]


def backfill(dev: Dev, days: Sequence[str]) -> str:
    """Launch a backfill as the UI does; returns its id."""
    query = """mutation($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
        __typename ... on LaunchBackfillSuccess { backfillId } ... on PythonError { message } } }"""
    assets = [{"path": ["bronze", "days"]}, {"path": ["watermark", "days"]}]
    params = {"assetSelection": assets, "partitionNames": list(days)}
    answer = graphql(dev, query, {"params": params})["data"]["launchPartitionBackfill"]
    assert answer["__typename"] == "LaunchBackfillSuccess", answer
    return str(answer["backfillId"])


def runs(dev: Dev, job: str | None = None, tags: Mapping[str, str] | None = None) -> list[dict[str, str]]:
    """Runs of a job, or with tags, newest first: id, status, and all their tags."""
    query = """query($filter: RunsFilter!) { runsOrError(filter: $filter) { ... on Runs {
        results { runId status tags { key value } } } } }"""
    wanted = [{"key": key, "value": value} for key, value in (tags or {}).items()]
    chosen: dict[str, object] = {"pipelineName": job} if job else {"tags": wanted}
    found = graphql(dev, query, {"filter": chosen})["data"]["runsOrError"]["results"]
    return [
        {"runId": run["runId"], "status": run["status"], **{tag["key"]: tag["value"] for tag in run["tags"]}}
        for run in found
    ]


def shown(dev: Dev) -> dict[str, object]:
    """The metadata of the newest materialisation, by label."""
    answer = graphql(dev, MATERIALISATION, {"key": {"path": ["bronze", "arrivals"]}})
    materialisations = answer["data"]["assetOrError"].get("assetMaterializations") or [
        {"metadataEntries": []}
    ]
    return {
        entry["label"]: entry.get("jsonString") or entry.get("text") or entry.get("intValue")
        for entry in materialisations[0]["metadataEntries"]
    }


def graphql(dev: Dev, query: str, variables: dict[str, object]) -> dict[str, dict[str, dict]]:  # type: ignore[type-arg]
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(f"{dev.url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        answer: dict[str, dict[str, dict]] = json.load(response)  # type: ignore[type-arg]
    assert "errors" not in answer, answer
    return answer
