"""What ``strandline state`` prints for people."""

from __future__ import annotations

import json
from typing import Any

import pytest

from platform_assets.cli.state import print_entries
from resources.watermarks.entry import Entry, following

WINDOWS = {"grid": "daily UTC", "units": {"{}": [[1711584000000, 1711670400000]]}}


def _entry(**changes: Any) -> Entry:
    first = {
        "why": "run",
        "fingerprint": "f",
        "kind": "window",
        "app_id": "a",
        "watermark": json.dumps(WINDOWS),
    }
    return following(None, **{**first, **changes})


def test_an_entry_of_windows_shows_its_work_units_and_how_far_they_are_loaded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    print_entries([_entry(rows=5, work_units=2, failed_units=1)])
    line = capsys.readouterr().out
    assert line.endswith("run  5 rows, 2 work units, 1 failed work unit  up to 2024-03-29T00:00:00+00:00\n")


def test_full_shows_a_watermark_of_windows_as_it_is_stored(capsys: pytest.CaptureFixture[str]) -> None:
    print_entries([_entry()], full=True)
    assert capsys.readouterr().out.endswith(f"{json.dumps(WINDOWS)}\n")


def test_an_entry_of_files_shows_its_files_and_its_path(capsys: pytest.CaptureFixture[str]) -> None:
    print_entries([_entry(kind="path", watermark='{"path": "a.csv"}', rows=1, files=1)])
    assert capsys.readouterr().out.endswith('run  1 row, 1 file  {"path": "a.csv"}\n')
