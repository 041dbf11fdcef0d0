"""``strandline validate``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from platform_assets.cli.main import strandline
from tests.support.environment import clean_environment
from tests.support.projects import FILES, project_of

ROOT = Path(__file__).resolve().parents[4]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two mistakes in one of its files."""
    return project_of(tmp_path, good=FILES, bad=FILES.replace("ndjson", "ndjsn") + "layr: x\n")


def test_people_read_a_line_for_each_mistake_and_a_summary(project: Path) -> None:
    answer = CliRunner().invoke(strandline, ["validate", "--project", str(project)])
    assert (answer.exit_code, answer.stderr) == (2, "")
    assert answer.stdout.splitlines() == [
        "dataflows/bad.yaml:1: source.format: found ndjsn, expected ndjson, json, csv, parquet, avro, xml, excel or debezium (did you mean ndjson?)",
        (
            "dataflows/bad.yaml:3: layr: found an unknown key, expected one of automation_condition, checks, description, empty_load, freshness, inputs, late_files, layer,"
            " maintenance, max_bad_files, max_bad_records, on_bad_file, op_tags, operators, owners, reconcile, retry, rules, run_after_upstream, run_tags, schedule, show_bad_records, source, sql, tags, target, transform, unknown_fields,"
            " watermark (did you mean layer?)"
        ),
        f"{project}: 2 errors in 1 file; 1 dataflow without errors",
    ]


def test_json_is_a_list_of_errors_with_the_six_fields(project: Path) -> None:
    answer = CliRunner().invoke(strandline, ["--json", "validate", "--project", str(project)])
    assert (answer.exit_code, answer.stderr) == (2, "")
    document = json.loads(answer.stdout)
    assert list(document) == ["errors", "warnings"]
    assert document["errors"][0] == {
        "file": "dataflows/bad.yaml",
        "line": 1,
        "key": "source.format",
        "found": "ndjsn",
        "expected": "ndjson, json, csv, parquet, avro, xml, excel or debezium",
        "nearest": "ndjson",
    }


def test_a_good_project_is_exit_0(project: Path) -> None:
    (project / "dataflows/bad.yaml").unlink()
    people = CliRunner().invoke(strandline, ["validate", "--project", str(project)])
    assert (people.exit_code, people.stdout) == (0, f"{project}: 1 dataflow, no errors\n")
    machine = CliRunner().invoke(strandline, ["validate", "--project", str(project), "--json"])
    assert (machine.exit_code, json.loads(machine.stdout)) == (0, {"errors": [], "warnings": []})


def test_a_folder_that_is_no_project_is_exit_2_with_an_error(tmp_path: Path) -> None:
    answer = CliRunner().invoke(strandline, ["--json", "validate", "--project", str(tmp_path / "nope")])
    assert answer.exit_code == 2
    assert json.loads(answer.stdout)["error"]["code"] == "configuration"


def test_validate_opens_nothing_that_the_files_name(project: Path) -> None:
    (project / "dataflows/bad.yaml").unlink()
    CliRunner().invoke(strandline, ["validate", "--project", str(project)])
    assert sorted(path.name for path in project.iterdir()) == ["dataflows", "landing", "platform.yaml"]


def test_the_real_command_prints_one_json_document_and_imports_nothing_heavy() -> None:
    code = (
        "import sys, runpy, atexit; sys.argv[1:] = ['validate', '--json']\n"
        "heavy = ('dagster', 'pyspark', 'obstore', 'deltalake', 'pandas', 'rich')\n"
        "atexit.register(lambda: print([name for name in heavy if name in sys.modules], file=sys.stderr))\n"
        "runpy.run_module('platform_assets.cli', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=clean_environment(),
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)) == (0, {"errors": [], "warnings": []})
    assert done.stderr.strip() == "[]"


def test_files_of_tests_are_checked_too(project: Path) -> None:
    """By the same rules as `strandline test`; those of a broken dataflow repeat none of its errors."""
    for name, text in {
        "good/a.yaml": "input: [{id: 1}]\nexpct: []\n",
        "goood/a.yaml": "input: []\nexpect: []\n",
        "bad/a.yaml": "input: []\nexpect: []\n",
    }.items():
        path = project / "tests" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    answer = CliRunner().invoke(strandline, ["--json", "validate", "--project", str(project)])
    assert answer.exit_code == 2
    errors = [
        (error["file"], error["found"], error["nearest"]) for error in json.loads(answer.stdout)["errors"]
    ]
    assert [error for error in errors if error[0].startswith("tests/")] == [
        ("tests/good/a.yaml", "an unknown key", "expect"),
        ("tests/goood/a.yaml", "a test in the folder goood", "good"),
    ]
    assert len([error for error in errors if error[0] == "dataflows/bad.yaml"]) == 2
