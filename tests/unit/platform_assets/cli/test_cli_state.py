"""What ``strandline state`` prints for people."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from partitions.errors import ConfigurationError
from platform_assets.cli.deciding import confirm
from platform_assets.cli.entry_lines import print_diff, print_entries
from platform_assets.cli.main import strandline
from platform_assets.platform import build_platform
from platform_assets.project import load_project
from resources.watermarks.entry import Entry, next_entry

WINDOWS = {"grid": "daily UTC", "units": {"{}": [[1711584000000, 1711670400000]]}}


def _entry(**changes: Any) -> Entry:
    first = {
        "why": "run",
        "fingerprint": "f",
        "kind": "window",
        "app_id": "a",
        "watermark": json.dumps(WINDOWS),
    }
    return next_entry(None, **{**first, **changes})


def test_an_entry_of_windows_shows_its_units_and_how_far(capsys: pytest.CaptureFixture[str]) -> None:
    print_entries([_entry(rows=5, work_units=2, failed_units=1)])
    line = capsys.readouterr().out
    assert line.endswith("run  5 rows, 2 work units, 1 failed work unit  up to 2024-03-29T00:00:00+00:00\n")


@pytest.mark.parametrize("writer", ["Strandline (deltalake)", "Spark: the table is partitioned"])
def test_an_entry_says_if_the_engine_has_committed_and_why(
    capsys: pytest.CaptureFixture[str], writer: str
) -> None:
    print_entries([_entry(committed_by=writer)])
    shown = f"  (by {writer})\n" if writer.startswith("Spark") else "up to 2024-03-29T00:00:00+00:00\n"
    assert capsys.readouterr().out.endswith(shown)
    assert _entry(committed_by=writer).as_json()["committed_by"] == writer


def test_full_shows_a_watermark_of_windows_as_it_is_stored(capsys: pytest.CaptureFixture[str]) -> None:
    print_entries([_entry()], full=True)
    assert capsys.readouterr().out.endswith(f"{json.dumps(WINDOWS)}\n")


def test_an_entry_of_files_shows_its_time_files_and_path(capsys: pytest.CaptureFixture[str]) -> None:
    loaded = _entry(kind="path", watermark='{"path": "a.csv"}', rows=1, files=1)
    loaded = loaded.model_copy(update={"time": "2026-01-28T06:00:03.041+00:00"})
    print_entries([loaded])
    assert (
        capsys.readouterr().out == f"{loaded.number:>6}  2026-01-28 06:00:03 UTC  run  1 row, 1 file  a.csv\n"
    )


def test_an_empty_watermark_of_files_is_none(capsys: pytest.CaptureFixture[str]) -> None:
    print_entries([_entry(kind="path", watermark="{}")])
    assert capsys.readouterr().out.endswith("0 files  none\n")


@pytest.mark.parametrize(("typed", "code"), [("", 1), ("n\n", 1), ("y\n", 0)])
def test_a_question_that_nobody_can_answer_names_the_option_that_answers_it(typed: str, code: int) -> None:
    @click.command()
    def ask() -> None:
        try:
            confirm("Append this entry?")
        except ConfigurationError as error:
            raise click.ClickException(str(error)) from None

    answer = CliRunner().invoke(ask, [], input=typed)
    assert (
        answer.exit_code,
        "found no terminal. Run again with --yes, which skips the question" in answer.output,
    ) == (
        code,
        not typed,
    )


def test_a_diff_shows_times_and_windows_as_people_read_them(capsys: pytest.CaptureFixture[str]) -> None:
    later = {"__datetime__": "2024-03-30T00:00:00+00:00"}
    changed = {
        "watermark.units.{}": {"before": None, "after": [[1711584000000, 1711670400000]]},
        "watermark.open.{}": {"before": [1], "after": None},
        "watermark.at": {"before": None, "after": later},
        "watermark.path": {"before": "größe.csv", "after": "z.csv"},
        "rows": {"before": 0, "after": 3},
        "pinned": {"before": "", "after": True},
        "inputs": {"before": [], "after": [{"path": "a", "size": 1}, {"__date__": "2024-03-30"}]},
    }
    print_diff({"from": 1, "to": 2, "changed": changed}, "none", "up to 2024-03-29T00:00:00+00:00")
    assert capsys.readouterr().out.splitlines() == [
        "entry 1 -> entry 2",
        "  watermark: none -> up to 2024-03-29T00:00:00+00:00",
        "  watermark.at: none -> 2024-03-30T00:00:00+00:00",
        "  watermark.path: größe.csv -> z.csv",
        "  rows: 0 -> 3",
        "  pinned: an empty text -> yes",
        "  inputs: none -> path a, size 1, 2024-03-30",
    ]


def test_a_watermark_that_own_code_saved_shows_how(tmp_path: Path) -> None:
    (tmp_path / "platform.yaml").write_text("{state: ./state, lake: ./lake}")
    manager = build_platform(load_project(tmp_path)).manager()
    manager.save_watermark("report", {"id": 5})
    call = ["--project", str(tmp_path), "state"]
    for command in ("history", "show"):
        answer = CliRunner().invoke(strandline, [*call, command, "report"])
        assert "run (saved by save_watermark, apart from any rows)" in answer.output
        assert answer.output.endswith('{"id": 5}\n')
    shown = json.loads(CliRunner().invoke(strandline, ["--json", *call, "show", "report"]).stdout)
    assert (shown["dataflow"], shown["number"], shown["watermark"]) == ("report", 1, {"id": 5})
    assert (
        "expected the name of a dataflow, found 'other'"
        in CliRunner().invoke(strandline, [*call, "show", "other"]).output
    )
