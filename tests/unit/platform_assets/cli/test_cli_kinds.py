"""A command that only some kinds have refuses the others, names the kind that has it, and exits with 2."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from platform_assets.cli.main import strandline
from tests.support.projects import project_of
from tests.support.ticks import WINDOWS

FILES = {
    "source": {"type": "files", "path": "./landing", "format": "ndjson"},
    "watermark": {"type": "path"},
    "target": {"load": "append"},
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return project_of(tmp_path, files=yaml.safe_dump(FILES), windows=yaml.safe_dump(WINDOWS))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("late", "windows"), "dataflow windows: expected a watermark of type path, found window"),
        (("simulate", "files"), "dataflow files: expected a watermark of type window, found path"),
        (
            ("run", "files", "--force", "2024-01-01..2024-01-02"),
            "dataflow files: expected a watermark of type window, found path",
        ),
    ],
)
def test_a_kinds_missing_command_is_refused(project: Path, arguments: tuple[str, ...], message: str) -> None:
    answer = CliRunner().invoke(strandline, ["--project", str(project), "--json", *arguments])
    assert (answer.exit_code, json.loads(answer.stdout)["error"]["message"]) == (2, message)


def test_late_files_of_windows_are_refused_with_the_command_that_reads_them(project: Path) -> None:
    answer = CliRunner().invoke(strandline, ["--project", str(project), "--json", "late", "windows"])
    (choice,) = json.loads(answer.stdout)["error"]["choices"]
    assert choice == "strandline run windows --force WINDOWS"


def test_a_run_with_a_clock_ahead_of_time_asks_for_windows_and_not_for_files(project: Path) -> None:
    answer = CliRunner().invoke(
        strandline, ["--project", str(project), "--now", "2999-01-01", "run", "--all"], input="n\n"
    )
    assert answer.exit_code == 130
    assert answer.stderr.startswith(
        "--now 2999-01-01T00:00:00+00:00 lies beyond this machine's clock: future windows of windows would count as loaded,"
        " and be read again only after they end\n"
    )
