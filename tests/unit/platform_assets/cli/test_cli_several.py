from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from platform_assets.cli import main
from platform_assets.cli.several import worst_exit_code
from tests.support.projects import FILES, project_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two dataflows that are not of kind window."""
    return project_of(tmp_path, one=FILES, two=FILES)


@pytest.mark.parametrize("command", ["simulate"])
def test_a_dataflow_of_another_kind_is_wrong_usage_that_names_the_kind(project: Path, command: str) -> None:
    answer = CliRunner().invoke(main.strandline, [command, "one", "--json", "--project", str(project)])
    assert (answer.exit_code, json.loads(answer.stdout)["error"]["code"]) == (2, "configuration")
    assert "expected a watermark of type window, found path" in answer.stdout


@pytest.mark.parametrize("command", ["simulate"])
def test_each_dataflow_reports_its_error_and_the_command_fails(project: Path, command: str) -> None:
    answer = CliRunner().invoke(main.strandline, [command, "one", "two", "--json", "--project", str(project)])
    assert answer.exit_code == 1
    assert [document["error"]["code"] for document in json.loads(answer.stdout)] == [
        "configuration",
        "configuration",
    ]


@pytest.mark.parametrize(
    ("codes", "code"),
    [([0], 0), ([0, 3], 3), ([0, 3, 1], 1), ([0, 1, 4, 3], 4), ([0, 2], 1), ([0, 2, 3], 1), ([2, 4], 4)],
)
def test_the_exit_code_of_many_is_the_first_of_4_1_3_0(codes: list[int], code: int) -> None:
    assert worst_exit_code(codes) == code
