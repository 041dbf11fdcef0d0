"""A project that an older version has loaded: what it has stored (tests/support/older, written on 2026-11-24) is read as it is.

If this fails, states of users stop with exit code 4, or are read in another way: give what is stored a new ``SCHEMA_VERSION``, or keep its form.
"""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from platform_assets.cli.main import strandline

OLDER = Path(__file__).parents[3] / "support/older"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLDER, tmp_path / "shop"))


def answer(project: Path, *words: str) -> Any:
    result = CliRunner().invoke(strandline, ["--project", str(project), "--json", *words])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_plan_goes_on_from_where_an_older_version_has_loaded_each_kind(project: Path) -> None:
    plans = {plan["dataflow"]: plan for plan in answer(project, "plan")}
    assert {name: (plan["state_number"], plan["slices"]) for name, plan in plans.items()} == {
        "days": (1, []),
        "ex": (1, [{"files": ["2.ndjson"]}]),
        "rows": (1, []),
    }
    assert [plan.get("error") for plan in plans.values()] == [None] * 3


def test_the_states_and_the_files_that_an_older_version_has_ingested_are_shown(project: Path) -> None:
    shown = {name: answer(project, "state", "show", name)["watermark"] for name in ("ex", "rows")}
    assert shown == {"ex": {"path": "1.ndjson"}, "rows": {"id": 1}}
    (ledger,) = answer(project, "ledger", "days")
    assert [unit["covered"] for unit in ledger["units"]] == [
        [{"start": "2026-01-01T00:00:00+00:00", "end": "2026-01-03T00:00:00+00:00"}]
    ]
    assert [entry["rows"] for entry in answer(project, "state", "history", "days")] == [2]


def test_a_ledger_of_each_kind_has_a_csv_and_only_windows_and_files_have_parts(project: Path) -> None:
    (cut,) = answer(project, "ledger", "days", "--from", "2026-01-02", "--to", "2026-02-01")
    assert [unit["covered"] for unit in cut["units"]] == [
        [{"start": "2026-01-02T00:00:00+00:00", "end": "2026-01-03T00:00:00+00:00"}]
    ]
    call = ["--project", str(project), "ledger", "days", "rows", "ex", "--format", "csv"]
    rows = list(csv.DictReader(CliRunner().invoke(strandline, call).stdout.splitlines()))
    assert {(row["dataflow"], row["row"]) for row in rows} >= {
        ("days", "total"), ("days", "unit"), ("days", "covered"), ("rows", "total"), ("ex", "total"), ("ex", "partition"),
    }  # fmt: skip
    for options, told in {
        ("days", "--from", "x"): "expected instants",
        (
            "days",
            "--compare",
        ): "--compare lists files: expected a watermark of type path, found window. `strandline run days --force WINDOW` reads"
        " a corrected window again, such as --force 2026-01-31; a `grace` does so by itself for windows that have just ended",
        (
            "rows",
            "--compare",
        ): "`strandline replay rows --start A --end B --replace` reads corrected rows again",
        ("rows", "--from", "2026-01-01"): "whose ledger is one range",
    }.items():
        refused = CliRunner().invoke(strandline, ["--project", str(project), "ledger", *options])
        assert (refused.exit_code, told in refused.output) == (2, True), refused.output
