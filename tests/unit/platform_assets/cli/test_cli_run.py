"""What people read of a run."""

from __future__ import annotations

import pytest

from platform_assets.cli import running
from platform_assets.cli.context import Context
from resources.loop.outcome import Committed, Outcome
from resources.watermarks.entry import following


def outcome(**changes: int) -> Outcome:
    """A run of one slice."""
    counts = {"rows": 3, "files": 2} | changes
    entry = following(
        None, kind="path", app_id="a", fingerprint="", why="run", watermark='{"path": "c.ndjson"}', **counts
    )
    slice_ = Committed(entry, counts["rows"], counts["files"], 1, 0.1)
    return Outcome("flow", None, {}, 0, committed=[slice_], newest=entry)


def test_a_run_that_puts_files_in_quarantine_says_so_in_its_first_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    running.print_outcome(Context(), outcome(quarantined=1))
    first = capsys.readouterr().out.splitlines()[0]
    assert first == "flow: committed, 3 rows of 2 files in 1 slice, 1 file put in quarantine, 0.0 s; state 1"


def test_a_run_that_quarantines_no_file_does_not_mention_quarantine(
    capsys: pytest.CaptureFixture[str],
) -> None:
    running.print_outcome(Context(), outcome())
    assert "quarantine" not in capsys.readouterr().out


def test_a_warning_that_an_earlier_run_has_given_is_not_printed_again_and_stays_in_json(
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = outcome()
    made.warnings, made.repeated = ["names do not sort", "passed over b"], frozenset(["names do not sort"])
    running.print_outcome(Context(), made)
    err = capsys.readouterr().err
    assert "warning: passed over b" in err
    assert "names do not sort" not in err
    assert made.as_json()["warnings"] == ["names do not sort", "passed over b"]
