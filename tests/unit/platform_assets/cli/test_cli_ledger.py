"""``strandline ledger`` of files: the covered range, and what is missing below it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result

from platform_assets.cli.main import strandline
from resources.watermarks.lists import QUARANTINED_FILES, StoredList
from tests.support.arrivals import Arrivals

Ask = Callable[..., Result]


@pytest.fixture
def arrivals(tmp_path: Path) -> Arrivals:
    """Two files are loaded, one is in quarantine, and one has come late."""
    made = Arrivals(tmp_path, late_files="alert")
    made.put("d=1/a.ndjson", "d=2/b.ndjson", "d=2/a.ndjson")
    aside = StoredList(QUARANTINED_FILES, [["d=2/a.ndjson", 1, "v", 0, "torn", False]])
    held = made.platform.log.put_list("arrivals", "x", aside, "quarantine")
    made.commit(
        ["d=2/a.ndjson", "d=2/b.ndjson"], quarantine=held, total_files=1, total_rows=7, fingerprint=""
    )
    return made


@pytest.fixture
def ask(tmp_path: Path, arrivals: Arrivals) -> Ask:
    (tmp_path / "dataflows").mkdir()
    (tmp_path / "platform.yaml").write_text("state: ./state\nlake: ./lake\n")
    definition: dict[str, Any] = {
        "source": {"type": "files", "path": "./landing", "format": "ndjson"},
        "watermark": {"type": "path"},
        "target": {"load": "append"},
        "late_files": "alert",
    }
    (tmp_path / "dataflows" / "arrivals.yaml").write_text(yaml.safe_dump(definition))

    def ask(*arguments: str) -> Result:
        return CliRunner().invoke(strandline, ["--project", str(tmp_path), *arguments, "ledger", "arrivals"])

    return ask


def test_it_shows_the_covered_range_and_late_and_quarantined_files(ask: Ask, arrivals: Arrivals) -> None:
    arrivals.sweep()
    answer = ask("--json")
    assert answer.exit_code == 0, answer.output
    (document,) = json.loads(answer.stdout)
    assert {key: document[key] for key in document if key not in ("now", "verified_at")} == {
        "dataflow": "arrivals",
        "complete_up_to": None,
        "units": None,
        "covered": {"after": None, "up_to": {"path": "d=2/b.ndjson"}, "files": 1, "rows": 7},
        "late": {"count": 1, "paths": ["d=1/a.ndjson"]},
        "quarantined": {"count": 1, "files": [{"path": "d=2/a.ndjson", "reason": "torn"}]},
        "verified_up_to": "d=2/b.ndjson",
    }
    lines = ask().stdout.splitlines()
    assert lines[0] == "arrivals: covered from the beginning up to d=2/b.ndjson: 1 file, 7 rows"
    assert lines[2:] == ["  late: d=1/a.ndjson", "  quarantined: d=2/a.ndjson: torn"]


def test_the_ledger_awaits_no_sweep_with_tracking_set(ask: Ask, tmp_path: Path) -> None:
    file = tmp_path / "dataflows" / "arrivals.yaml"
    definition = yaml.safe_load(file.read_text()) | {"watermark": {"type": "path", "tracking": "set"}}
    file.write_text(yaml.safe_dump(definition))
    text = ask().stdout
    assert ("each run looks at all files" in text, "sweep" in text) == (True, False)


def test_before_the_first_run_nothing_is_covered(ask: Ask, tmp_path: Path) -> None:
    for file in sorted((tmp_path / "state").rglob("*.json")):
        file.unlink()
    answer = ask()
    assert answer.exit_code == 0
    assert answer.stdout.startswith("arrivals: nothing is covered: 0 files, 0 rows\n  not verified yet")
