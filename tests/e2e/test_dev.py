"""The whole product as a user has it open: `strandline dev`, a file dropped, the table read back, the page in a browser."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from deltalake import DeltaTable

from resources.connect_server import free_port

PATIENCE = 240.0
DATAFLOW = """
source: {type: files, path: ./landing, format: ndjson}
watermark: {type: path}
target: {load: append}
description: Arrivals of the test.
"""
LABELS = (
    "status", "rows", "files", "bytes", "slices", "seconds", "listing_calls", "watermark_before", "watermark_effective",
    "watermark_after", "plan", "lag_seconds", "state_number", "table", "table_version",
)  # fmt: skip
MATERIALISATION = """query($key: AssetKeyInput!) { assetOrError(assetKey: $key) { ... on Asset { assetMaterializations(limit: 1) {
    metadataEntries { label ... on JsonMetadataEntry { jsonString } ... on IntMetadataEntry { intValue } } } } } }"""


@dataclass(frozen=True)
class Dev:
    """A running `strandline dev`."""

    project: Path
    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def drop(self, name: str, rows: list[dict[str, object]]) -> None:
        """Put a file into the landing zone as a careful writer does: by rename."""
        draft = self.project / "landing" / f".{name}"
        draft.write_text("".join(json.dumps(row) + "\n" for row in rows))
        draft.rename(draft.with_name(name))

    def ids(self) -> list[int]:
        """What is in the table."""
        table = self.project / ".strandline/lake/bronze/arrivals"
        if not DeltaTable.is_deltatable(str(table)):
            return []
        return sorted(DeltaTable(str(table)).to_pyarrow_table(columns=["id"]).column("id").to_pylist())


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
    (project / "dataflows/broken.yaml").write_text(
        "source: {type: files, pth: ./landing, format: ndjson}\nwatermark: {type: path}\n"
    )
    port, log = free_port(), project / "dev.log"
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("DAGSTER", "STRANDLINE"))
    }
    environment["STRANDLINE_DAGSTER_DIR"] = str(project / "dagster")
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
            ],
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    running = Dev(project, f"http://127.0.0.1:{port}", process, log)
    try:
        until(lambda: answers(running.url) or process.poll() is not None, "the UI answers", log)
        assert process.poll() is None, log.read_text()[-3000:]
        yield running
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(90)


@pytest.mark.timeout(600)
def test_a_file_dropped_into_the_landing_zone_is_in_the_table_after_the_sensor_s_next_tick(dev: Dev) -> None:
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
def test_a_materialisation_shows_watermark_rows_files_listing_calls_and_plan(dev: Dev) -> None:
    metadata = shown(dev)
    assert [label for label in LABELS if label not in metadata] == []
    assert (metadata["rows"], metadata["files"]) == (1, 1)
    assert json.loads(str(metadata["watermark_before"])) == {"path": "1706450400-a.ndjson"}


@pytest.mark.timeout(600)
def test_a_broken_dataflow_file_shows_as_an_asset_and_leaves_the_others_loaded(dev: Dev) -> None:
    answer = graphql(dev, "{ assetNodes { assetKey { path } description } }", {})
    nodes = {"/".join(node["assetKey"]["path"]): node["description"] for node in answer["data"]["assetNodes"]}
    assert sorted(nodes) == ["bronze/arrivals", "bronze/broken", "watermark/arrivals"]
    assert "dataflows/broken.yaml:1" in nodes["bronze/broken"]


@pytest.mark.ui
@pytest.mark.timeout(600)
def test_the_asset_s_page_in_a_browser_shows_the_watermark(dev: Dev) -> None:
    chromium = shutil.which("chromium") or pytest.skip("needs Chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    quiet = [
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
    ]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=quiet)
        page = browser.new_page(viewport={"width": 1500, "height": 1300})
        page.goto(f"{dev.url}/assets/bronze/arrivals")
        page.get_by_text("watermark_after").wait_for(timeout=120_000)
        text = page.inner_text("body")
        browser.close()
    assert '"path": "1706450401-b.ndjson"' in text


def shown(dev: Dev) -> dict[str, object]:
    """The metadata of the newest materialisation, by label."""
    answer = graphql(dev, MATERIALISATION, {"key": {"path": ["bronze", "arrivals"]}})
    materialisations = answer["data"]["assetOrError"].get("assetMaterializations") or [
        {"metadataEntries": []}
    ]
    return {
        entry["label"]: entry.get("jsonString") or entry.get("intValue")
        for entry in materialisations[0]["metadataEntries"]
    }


def graphql(dev: Dev, query: str, variables: dict[str, object]) -> dict[str, dict[str, dict]]:  # type: ignore[type-arg]
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(f"{dev.url}/graphql", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as response:
        answer: dict[str, dict[str, dict]] = json.load(response)  # type: ignore[type-arg]
    assert "errors" not in answer, answer
    return answer
