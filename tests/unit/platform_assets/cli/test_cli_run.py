"""What people read of a run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from dagster import EventLogEntry
from dagster._core.storage.event_log.sqlite import SqliteEventLogStorage
from sqlalchemy.exc import OperationalError

from partitions.errors import SourceError
from platform_assets.cli import running
from platform_assets.cli.context import Context
from platform_assets.cli.main import strandline
from platform_assets.cli.plan import print_plans
from resources.outcome import Committed, Outcome
from resources.watermarks.entry import next_entry


def outcome(**changes: int) -> Outcome:
    """A run of one slice."""
    counts = {"rows": 3, "files": 2} | changes
    entry = next_entry(
        None, kind="path", app_id="a", fingerprint="", why="run", watermark='{"path": "c.ndjson"}', **counts
    )
    slice_ = Committed(entry, counts["rows"], counts["files"], 1, 0.1)
    return Outcome("flow", None, {}, 0, committed=[slice_], newest=entry)


def test_a_run_with_quarantine_says_so_in_its_first_line(capsys: pytest.CaptureFixture[str]) -> None:
    running.print_outcome(Context(), outcome(quarantined=1))
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "flow: committed, 3 rows of 2 files in 1 slice, 1 file put in quarantine, 0.0 s; state 1"


def test_a_run_without_quarantine_does_not_mention_it(capsys: pytest.CaptureFixture[str]) -> None:
    running.print_outcome(Context(), outcome())
    assert "quarantine" not in capsys.readouterr().out


def test_a_repeated_warning_stays_in_json_alone(capsys: pytest.CaptureFixture[str]) -> None:
    made = outcome()
    made.warnings, made.repeated = ["names do not sort", "skipped b"], frozenset(["names do not sort"])
    running.print_outcome(Context(), made)
    out = capsys.readouterr().out
    assert "warning: skipped b" in out
    assert "names do not sort" not in out
    assert made.as_json()["warnings"] == ["names do not sort", "skipped b"]


def test_plan_numbers_slices_as_the_run_does_that_loads_them(capsys: pytest.CaptureFixture[str]) -> None:
    slices = [{"files": ["e.ndjson"]}, {"files": ["f.ndjson", "g.ndjson"]}]
    plan = {"dataflow": "flow", "kind": "path", "state_number": 4, "why": "new", "slices": slices}
    print_plans(Context(), [plan | {"skips": [], "warnings": []}])
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  slice 5: 1 file, e.ndjson",
        "  slice 6: 2 files, f.ndjson … g.ndjson",
    ]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a dataflow that has nothing to load, and a folder for Dagster's runs."""
    folder = tmp_path / "shop"
    (folder / "dataflows").mkdir(parents=True)
    (folder / "landing").mkdir()
    (folder / "dataflows/orders.yaml").write_text(
        "source: {type: files, path: ./landing, format: ndjson}\nwatermark: {type: path}\ntarget: {load: append}\n"
    )
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    return folder


def run(project: Path) -> Result:
    return CliRunner().invoke(strandline, ["--project", str(project), "run", "orders", "--json"])


def none(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", str(home / "none"))


def relative(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DAGSTER_HOME", home.name)


def settings(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "dagster.yaml").write_text("storage: {x: 1}\n")


def no_database(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "history").mkdir()
    (home / "history/runs.db").write_bytes(b"no database" * 1000)


@pytest.mark.parametrize("broken", [none, relative, settings, no_database])
def test_an_unusable_dagster_home_is_named_and_the_state_shown(
    project: Path, monkeypatch: pytest.MonkeyPatch, broken: Callable[[Path, pytest.MonkeyPatch], None]
) -> None:
    broken(project.parent / "home", monkeypatch)
    answer = run(project)
    error = json.loads(answer.stdout)["error"]
    assert (answer.exit_code, error["code"]) == (1, "dagster")
    assert error["message"].startswith(f"DAGSTER_HOME={os.environ['DAGSTER_HOME']}: expected ")
    shown = CliRunner().invoke(strandline, ["--project", str(project), "list", "--json"])
    assert (shown.exit_code, [each["dataflow"] for each in json.loads(shown.stdout)]) == (0, ["orders"])
    assert "Dagster's runs cannot be read: DAGSTER_HOME=" in shown.stderr


@pytest.mark.parametrize(("event", "status"), [("RUN_START", "failed"), ("RUN_SUCCESS", "nothing")])
def test_a_storage_that_fails_meanwhile_is_told_and_what_the_run_has_done_counts(
    project: Path, monkeypatch: pytest.MonkeyPatch, event: str, status: str
) -> None:
    """Its disk is full, say, from this event on."""
    stores = SqliteEventLogStorage.store_event

    def full(storage: SqliteEventLogStorage, entry: EventLogEntry) -> None:
        if (
            entry.dagster_event
            and entry.dagster_event.event_type_value == f"PIPELINE_{event.removeprefix('RUN_')}"
        ):
            raise OperationalError("INSERT", {}, Exception("database or disk is full"))
        stores(storage, entry)

    monkeypatch.setattr(SqliteEventLogStorage, "store_event", full)
    answer = run(project)
    (outcome,) = json.loads(answer.stdout)
    assert (outcome["status"], answer.exit_code) == (status, int(status == "failed"))
    told = outcome["error"]["message"] if outcome["error"] else answer.stderr
    assert "database or disk is full" in told


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_log_that_cannot_be_written_keeps_no_dataflow_from_being_loaded(project: Path, stream: str) -> None:
    (project / "dataflows/visits.yaml").write_text((project / "dataflows/orders.yaml").read_text())
    environment = {name: value for name, value in os.environ.items() if name != "DAGSTER_HOME"}
    with Path("/dev/full").open("w") as full:
        subprocess.run(
            [sys.executable, "-m", "platform_assets.cli", "run", "--all", "--project", str(project)],
            check=False,
            env=environment,
            stdout=full if stream == "stdout" else subprocess.DEVNULL,
            stderr=full if stream == "stderr" else subprocess.DEVNULL,
        )
    shown = CliRunner().invoke(strandline, ["--project", str(project), "list", "--json"])
    assert [each["last_attempt"]["status"] for each in json.loads(shown.stdout)] == ["nothing"] * 2


def test_the_version_is_that_of_the_package() -> None:
    answer = CliRunner().invoke(strandline, ["--version"])
    assert answer.exit_code == 0
    assert answer.output == "strandline 0.1.0 (checkout)\n"


def test_the_table_says_what_is_wrong_of_an_error_and_leaves_out_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All of it was printed when its run ended."""
    problem = "file 2026-01-01.ndjson, line 3: field id: expected bigint, found 'two'"
    error = SourceError(
        f"dataflow orders: {problem}. Fix or remove it; or set max_bad_records, which sets such records aside"
    )
    running.print_summary(Context(), [outcome(), Outcome("orders", None, {}, 0, error=error)])
    shown = " ".join(word for word in capsys.readouterr().out.split() if word != "│")
    assert f"orders failed 0 {problem}" in shown
    assert "Fix or remove" not in shown


def test_a_long_problem_in_the_table_keeps_its_beginning_and_its_cause(
    capsys: pytest.CaptureFixture[str],
) -> None:
    error = SourceError(f"dataflow orders: file a.ndjson is bad: {'x' * 500}: the cause")
    running.print_summary(Context(), [outcome(), Outcome("orders", None, {}, 0, error=error)])
    shown = "".join(capsys.readouterr().out.split()).replace("│", "")
    assert "filea.ndjsonisbad:xxx" in shown
    assert "x:thecause" in shown


def test_several_runs_end_with_a_table_of_what_became_of_each(capsys: pytest.CaptureFixture[str]) -> None:
    failed = Outcome(
        "orders", None, {}, 0, error=SourceError("dataflow orders: no such bucket\nsee its name")
    )
    running.print_summary(Context(), [outcome(), failed])
    lines = [
        [cell.strip() for cell in line.strip("│ \n").split("│")]
        for line in capsys.readouterr().out.splitlines()
        if "│" in line
    ]
    assert lines == [
        ["flow", "committed", "3", "watermark c.ndjson"],
        ["orders", "failed", "0", "no such bucket; see its name"],
    ]


def test_a_quiet_run_prints_only_what_fails(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DAGSTER_HOME")
    call = ["--project", str(project), "run", "--all", "--quiet"]
    answer = CliRunner().invoke(strandline, call)
    assert (answer.exit_code, answer.output) == (0, "")
    visits = (project / "dataflows/orders.yaml").read_text().replace("./landing", "./missing")
    (project / "dataflows/visits.yaml").write_text(visits)
    answer = CliRunner().invoke(strandline, call)
    assert answer.exit_code == 1
    first, *rest = answer.stdout.splitlines()
    assert first.startswith("visits: failed, ")
    assert "orders" not in answer.stdout
    assert any("missing" in line for line in rest)
