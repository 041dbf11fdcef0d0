"""``strandline ledger`` of files: the covered range, and what is missing below it."""

from __future__ import annotations

import csv
import json
import re
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

    def ask(*arguments: str, options: tuple[str, ...] = ()) -> Result:
        call = ["--project", str(tmp_path), *arguments, "ledger", "arrivals", *options]
        return CliRunner().invoke(strandline, call)

    return ask


def test_it_shows_the_covered_range_and_late_and_quarantined_files(ask: Ask, arrivals: Arrivals) -> None:
    arrivals.sweep()
    answer = ask("--json")
    assert answer.exit_code == 0, answer.output
    (document,) = json.loads(answer.stdout)
    no_counts: dict[str, Any] = dict.fromkeys(
        ("files", "bytes", "rows", "late", "quarantined", "skipped", "duplicates"), 0
    )
    no_counts |= dict.fromkeys(("waiting", "gone", "changed"))
    first = {"partition": "d=1", "by": "folder", "start": None, **no_counts, "late": 1}
    second = {
        "partition": "d=2",
        "by": "folder",
        "start": None,
        **no_counts,
        "files": 2,
        "bytes": 2,
        "quarantined": 1,
    }
    assert {key: document[key] for key in document if key not in ("now", "verified_at")} == {
        "dataflow": "arrivals",
        "state_number": 1,
        "expected": None,
        "partitions": [first, second],
        "totals": {**no_counts, "files": 2, "bytes": 2, "late": 1, "quarantined": 1},
        "missing": [],
        "compared_at": None,
        "gone": None,
        "changed": None,
        "rows_unknown": None,
        "retention": None,
        "compared": [],
        "complete_up_to": None,
        "units": None,
        "covered": {"after": None, "up_to": {"path": "d=2/b.ndjson"}, "files": 2, "rows": 0, "withheld": 0},
        "late": {"count": 1, "paths": ["d=1/a.ndjson"]},
        "quarantined": {"count": 1, "files": [{"path": "d=2/a.ndjson", "reason": "torn"}]},
        "verified_up_to": "d=2/b.ndjson",
    }
    lines = ask().stdout.splitlines()
    assert lines[0] == "arrivals: covered from the beginning up to d=2/b.ndjson: 2 files, 0 rows"
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert rows == [["d=1", "0", "0", "1", "0"], ["d=2", "2", "0", "0", "1"], ["in all", "2", "0", "1", "1"]]
    assert lines[-3:] == [
        "  not compared with the source (--compare lists it, and shows gone and changed files)",
        "  late: d=1/a.ndjson",
        "  quarantined: d=2/a.ndjson: torn",
    ]


def test_a_comparison_names_gone_and_changed_files_and_its_time(ask: Ask, arrivals: Arrivals) -> None:
    (arrivals.landing / "d=2/b.ndjson").unlink()
    (document,) = json.loads(ask("--json", options=("--compare",)).stdout)
    assert (document["gone"], document["changed"]) == (["d=2/b.ndjson"], ["d=2/a.ndjson"])
    totals = document["totals"]
    assert (totals["waiting"], totals["gone"], totals["changed"]) == (1, 1, 1)
    text = ask(options=("--compare",)).stdout
    assert "  compared with the source at " in text
    assert "  gone: d=2/b.ndjson\n  changed: d=2/a.ndjson\n" in text


def test_expected_partitions_without_a_file_are_missing(ask: Ask, tmp_path: Path, arrivals: Arrivals) -> None:
    arrivals.commit(["date=2026-05-28/a.ndjson", "date=2026-05-30/a.ndjson"], fingerprint="")
    file = tmp_path / "dataflows" / "arrivals.yaml"
    definition = yaml.safe_load(file.read_text()) | {"watermark": {"type": "path", "expected": "daily"}}
    file.write_text(yaml.safe_dump(definition))
    text = ask("--now", "2026-06-01").stdout
    assert "missing: from 2026-05-29T00:00:00+00:00 to before 2026-05-30T00:00:00+00:00 (1 period)" in text
    bounded = ask("--json", "--now", "2026-06-01", options=("--from", "2026-05-30", "--to", "2026-06-01"))
    (document,) = json.loads(bounded.stdout)
    assert [partition["partition"] for partition in document["partitions"]] == ["date=2026-05-30"]
    assert [missing["start"] for missing in document["missing"]] == ["2026-05-31T00:00:00+00:00"]


def test_the_csv_has_the_documented_columns_and_no_formula(ask: Ask, arrivals: Arrivals) -> None:
    arrivals.commit(["=cmd/a.ndjson"], fingerprint="")
    rows = list(csv.DictReader(ask(options=("--format", "csv")).stdout.splitlines()))
    page = (Path(__file__).resolve().parents[4] / "docs/reference/cli.md").read_text()
    table = page.partition("| column | value |")[2].partition("\n\n")[0]
    assert list(rows[0]) == [
        name for line in table.splitlines()[2:] for name in re.findall("`(\\w+)`", line.split("|")[1])
    ]
    assert [(row["row"], row["partition"], row["files"], row["late"], row["gone"]) for row in rows] == [
        ("total", "", "3", "0", ""),
        ("partition", "'=cmd", "1", "0", ""),
        ("partition", "d=2", "2", "0", ""),
    ]


def test_the_html_page_needs_nothing_else_and_escapes_every_name(ask: Ask, arrivals: Arrivals) -> None:
    arrivals.commit(["<script>alert(1)</script>&x/a.ndjson"], fingerprint="")
    page = ask(options=("--format", "html")).stdout
    assert page.startswith("<!doctype html>")
    assert not re.search("<script|src=|href=|url\\(", page)
    assert "&lt;script&gt;alert(1)&lt;" in page
    for told in (
        "Project",
        "As of",
        "Strandline",
        "bronze/arrivals",
        "not verified yet",
        '<tr class="total">',
    ):
        assert told in page


def test_formats_and_bounds_that_do_not_go_together_are_refused(ask: Ask) -> None:
    assert ask("--json", options=("--format", "csv")).exit_code == 2
    answer = ask("--json", options=("--from", "2026-01-01", "--to", "d=2"))
    assert (answer.exit_code, "two instants, or two names" in answer.stdout) == (2, True)


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


def test_people_see_the_last_partitions_and_files_have_all(ask: Ask, arrivals: Arrivals) -> None:
    arrivals.commit([f"e={number:03}/a.ndjson" for number in range(60)], fingerprint="")
    text, page = ask().stdout, ask(options=("--format", "html")).stdout
    assert "the last 50 partitions; 11 before them (--format csv shows all)" in text
    assert ("e=000" in text, "e=000" in page, "before them" in page) == (False, True, False)
    assert page.count('<tr class="partition">') == 61
