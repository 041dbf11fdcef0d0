"""``strandline doctor`` blames each part for what is wrong with it, and for nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from partitions.errors import ConfigurationError
from platform_assets.cli import main
from resources.connections.places import Place
from resources.spark.engine import SparkEngine
from tests.support.projects import FILES, project_of

FOLDERS = (
    "source: {type: files, path: './landing/{start:%Y-%m-%d}', format: ndjson}\n"
    "watermark: {type: window, definition: [{name: day, type: datetime, range: {from: '2026-01-01', to: '-'}}], window: daily}\n"
    "target: {load: merge_overwrite, replace_by_watermark: true}\n"
)
BUCKET = FILES.replace("./landing", "s3://bucket/landing").replace("format:", "connection: land, format:")
LAND = "connections: {land: {type: s3, endpoint: 'http://127.0.0.1:1', region: us-east-1, access_key_id: {env: NO_SUCH_KEY}}}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    return project_of(tmp_path, good=FILES)


def checks(project: Path, *arguments: str) -> dict[str, dict[str, Any]]:
    answer = CliRunner().invoke(
        main.strandline, ["--project", str(project), "--json", "doctor", *(arguments or ["--no-spark"])]
    )
    return {check["check"]: check for check in json.loads(answer.stdout)["checks"]}


def test_a_command_to_run_names_the_project(project: Path) -> None:
    (project / "dataflows/bad.yaml").write_text(FILES + "lyer: x\n")
    answer = CliRunner().invoke(main.strandline, ["--project", str(project), "doctor", "--no-spark"])
    assert f"     strandline validate --project {project}\n" in answer.stdout


def test_an_unset_variable_is_a_sources_fault(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "platform.yaml").write_text("state: ./state\nlake: ./lake\n" + LAND)
    (project / "dataflows/cloud.yaml").write_text(BUCKET)
    asked: list[Any] = []

    class Started:
        version = "4"

    def session(engine: SparkEngine) -> Started:
        asked.append(engine.places)
        return Started()

    monkeypatch.setattr(SparkEngine, "session", session)
    results = checks(project, "--json")
    assert results["spark"]["ok"]
    assert asked == [(Place(str(project / "lake")), Place(str(project / "landing")))]
    source = results["source cloud"]
    assert not source["ok"]
    assert source["found"] == (
        "platform.yaml: connections.land.access_key_id: expected the environment variable NO_SUCH_KEY to be set, found it unset or empty: set it, or correct {env: NO_SUCH_KEY} there"
    )
    assert source["todo"] == "set the variable, or correct the key, that the message names"


def test_a_state_that_cannot_be_read_is_not_the_sources_fault(project: Path) -> None:
    (project / "state").write_text("a file, not a folder")
    (project / "landing/a.ndjson").touch()
    results = checks(project)
    assert not results["state"]["ok"]
    assert results["source good"] == {
        "check": "source good",
        "ok": True,
        "found": f"{project}/landing: readable, 1 file",
        "todo": None,
    }


def test_a_variable_of_the_state_that_is_not_set_stops_no_other_check(project: Path) -> None:
    (project / "platform.yaml").write_text(
        "state: {path: s3://bucket/state, connection: land}\nlake: ./lake\n" + LAND
    )
    results = checks(project)
    assert "NO_SUCH_KEY" in results["state"]["found"]
    assert [name for name, result in results.items() if not result["ok"] and name != "java"] == ["state"]


def test_windows_over_folders_are_listed(project: Path) -> None:
    (project / "dataflows/good.yaml").write_text(FOLDERS)
    (project / "landing/2026-01-01").mkdir()
    (project / "landing/2026-01-01/a.ndjson").touch()
    result = checks(project)["source good"]
    assert (result["ok"], result["found"]) == (True, f"{project}/landing: readable, 1 file")


def test_a_lake_that_cannot_be_written_is_called_a_lake(project: Path) -> None:
    (project / "lake").write_text("a file, not a folder")
    result = checks(project)["lake"]
    assert (result["ok"], result["found"].startswith(f"lake {project}/lake: cannot write ")) == (False, True)


def test_doctor_shows_the_whole_error_of_a_check(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(engine: SparkEngine) -> Any:
        raise ConfigurationError("x" * 1000 + " the cause")

    monkeypatch.setattr(SparkEngine, "session", refuse)
    assert checks(project, "--json")["spark"]["found"].endswith(" the cause")


@pytest.mark.parametrize(
    ("settings", "warned"),
    [("", True), ("concurrency: {pools: {default_limit: 1, granularity: run}}\n", False)],
)
def test_a_dagster_whose_pools_have_no_limit_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: str, warned: bool
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "dagster.yaml").write_text(settings)
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    (tmp_path / "shop/dataflows").mkdir(parents=True)
    arguments = ["--project", str(tmp_path / "shop"), "--json", "doctor", "--no-spark"]
    checks = json.loads(CliRunner().invoke(main.strandline, arguments).stdout)["checks"]
    (found,) = [each["found"] for each in checks if each["check"] == "dagster"]
    assert ("default_limit: 1" in found) is warned


@pytest.mark.parametrize(
    ("address", "ok", "says"),
    [
        ("https://hooks.slack.com/services/T0/secretpath", True, "go to hooks.slack.com"),
        (None, False, "expected the environment variable HOOK to be set"),
        ("hooks.slack.com/secretpath", False, "found something else"),
        ("https://hooks.slack.com:99999/secretpath", False, "found something else"),
    ],
)
def test_the_address_of_alerts_is_looked_at_and_not_shown(
    project: Path, monkeypatch: pytest.MonkeyPatch, address: str | None, ok: bool, says: str
) -> None:
    (project / "platform.yaml").write_text("state: ./state\nlake: ./lake\nalerts: {webhook: {env: HOOK}}\n")
    monkeypatch.delenv("HOOK", raising=False)
    if address is not None:
        monkeypatch.setenv("HOOK", address)
    check = checks(project)["alerts"]
    assert check["ok"] is ok
    assert says in str(check)
    assert "secretpath" not in str(check)


def test_the_host_of_the_lineage_catalog_is_shown_and_a_missing_variable_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OL_KEY", raising=False)
    settings = "state: ./state\nlake: ./lake\nlineage: {openlineage: {url: 'http://marquez:5000'%s}}\n"
    (project / "platform.yaml").write_text(settings % "")
    assert checks(project)["lineage"]["found"] == "events go to marquez:5000"
    (project / "platform.yaml").write_text(settings % ", api_key: {env: OL_KEY}")
    check = checks(project)["lineage"]
    assert (check["ok"], "lineage.openlineage.api_key" in str(check)) == (False, True)


def test_the_address_of_each_route_of_alerts_is_looked_at(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    route = "{on: [failed], webhook: {env: PAGER}}"
    (project / "platform.yaml").write_text(
        f"state: ./state\nlake: ./lake\nalerts: {{webhook: {{env: HOOK}}, routes: [{route}]}}\n"
    )
    monkeypatch.setenv("HOOK", "https://hooks.slack.com/services/T0/secretpath")
    monkeypatch.delenv("PAGER", raising=False)
    made = checks(project)
    assert (made["alerts"]["ok"], made["alerts.routes.0"]["ok"]) == (True, False)
    assert "alerts.routes.0.webhook: expected the environment variable PAGER to be set" in str(
        made["alerts.routes.0"]
    )


def test_a_table_that_nothing_has_loaded_yet_is_a_note(project: Path) -> None:
    (project / "dataflows/clean.yaml").write_text(
        "source: {type: table, table: bronze/good}\nwatermark: {type: column, columns: [id]}\ntarget: {load: append}\n"
    )
    (project / "dataflows/foreign.yaml").write_text(
        "source: {type: table, table: bronze/others}\nwatermark: {type: column, columns: [id]}\ntarget: {load: append}\n"
    )
    results = checks(project)
    assert results["source clean"] == {
        "check": "source clean",
        "ok": True,
        "found": "bronze/good: not loaded yet, which is no failure: `strandline run good` loads it",
        "todo": None,
    }
    assert not results["source foreign"]["ok"], "no dataflow makes this table"


def test_a_connection_that_no_dataflow_uses_is_tried(project: Path) -> None:
    (project / "platform.yaml").write_text(
        "state: ./state\nlake: ./lake\nconnections:\n"
        "  erp: {type: jdbc, url: 'jdbc:postgresql://127.0.0.1:1/d', user: u}\n"
        "  shop: {type: api, base_url: 'https://shop.example', token: {env: NO_SUCH_KEY}}\n"
        "  land: {type: s3, region: eu-west-1}\n"
    )
    results = checks(project)
    assert (results["connection erp"]["ok"], results["connection erp"]["todo"]) == (
        False,
        "correct connections.erp in platform.yaml",
    )
    assert "NO_SUCH_KEY to be set" in results["connection shop"]["found"]
    assert (results["connection land"]["ok"], results["connection land"]["found"]) == (
        True,
        "its variables are set; no dataflow uses it, so nothing was requested",
    )


def test_a_connection_that_a_dataflow_uses_is_tried_once(project: Path) -> None:
    (project / "platform.yaml").write_text("state: ./state\nlake: ./lake\n" + LAND)
    (project / "dataflows/cloud.yaml").write_text(BUCKET)
    assert [name for name in checks(project) if name.startswith("connection")] == []


def test_settings_with_errors_stop_no_other_check(project: Path) -> None:
    (project / "platform.yaml").write_text("state: ./state\nlake: ./lake\nlyer: x\n")
    results = checks(project)
    assert not results["state"]["ok"]
    assert results["source good"]["ok"]
    assert "dagster" in results
