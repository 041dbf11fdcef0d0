"""A delete that is killed after each step, on each format, with the state in a folder, on S3 and in PostgreSQL.

A run of the whole matrix writes its part of the report, docs/explanation/crash-matrix.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.integration.test_crash_matrix import STEPS, STORES, settings, store
from tests.support.crash_report import write_part
from tests.support.delete_crash import crash_deleting
from tests.support.feed import Feed

__all__ = ["settings", "store"]

FORMATS = ("delta", "iceberg", "parquet")
DELETE_STEPS = (Step.LIST_KEPT, Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED, Step.APPENDED)
QUICK = {("delta", Step.WRITTEN), ("iceberg", Step.INTENT_PUT)}
"""The cells of each store in `make test`."""
BOB = "who = 'bob'"


@pytest.fixture(scope="module")
def report() -> Iterator[dict[tuple[str, Step, str], str]]:
    """Collects the cells; the whole matrix is written down."""
    cells: dict[tuple[str, Step, str], str] = {}
    yield cells
    if len(cells) == len(FORMATS) * len(DELETE_STEPS) * len(STORES):
        write_part(_written(cells))


@pytest.mark.each_case
@pytest.mark.parametrize(
    ("form", "step"),
    [
        pytest.param(form, step, marks=() if (form, step) in QUICK else pytest.mark.full)
        for form in FORMATS
        for step in DELETE_STEPS
    ],
)
def test_a_killed_delete_is_finished_by_the_next_run_or_was_not_begun(
    tmp_path: Path,
    engine: SparkEngine,
    settings: tuple[dict[str, Any], dict[str, str]],
    store: str,
    report: dict[tuple[str, Step, str], str],
    form: str,
    step: Step,
) -> None:
    definition = {"source": {"schema": "id long, who string"}, "target": {"format": form}}
    feed = Feed(tmp_path / "project", engine, definition, *settings)
    feed.put("1.ndjson", {"id": 1, "who": "ann"}, {"id": 2, "who": "bob"}, {"id": 3, "who": None})
    feed.load()
    crash_deleting(feed, step, BOB)
    feed.put("2.ndjson", {"id": 4, "who": "bob"})
    feed.load()
    is_begun = step != Step.LIST_KEPT
    assert feed.ids == ([1, 3] if is_begun else [1, 2, 3, 4])
    if not is_begun:
        assert feed.command("delete", feed.name, "--where", BOB, "--reason", "asked for", "--yes").json
        assert feed.ids == [1, 3]
    assert feed.open_intent is None
    assert [entry.why for entry in feed.entries].count("delete") == 1
    feed.decide("rewind", "--to", "0", "--replace")
    feed.load()
    assert feed.ids == [1, 3]
    report[form, step, store] = "deleted" if is_begun else "not deleted"


def _written(cells: dict[tuple[str, Step, str], str]) -> str:
    """The matrix as a part of the page."""
    stores = list(dict.fromkeys(store_name for _, _, store_name in cells))
    lines = [
        "# Deletes",
        "",
        "Written by the same command (tests/integration/test_delete_crashes.py). `strandline delete` is killed with SIGKILL right after the step. A cell says",
        "whether the next run has the rows deleted. If not, the same command deletes them. No later rewind brings them back.",
    ]
    for form in FORMATS:
        lines += [
            "",
            f"## {form.capitalize()}",
            "",
            f"| killed | {' | '.join(stores)} |",
            f"|---|{'---|' * len(stores)}",
        ]
        for step in DELETE_STEPS:
            row = " | ".join(cells[form, step, store_name] for store_name in stores)
            name = "condition stored" if step == Step.LIST_KEPT else STEPS[step]
            lines.append(f"| {name} | {row} |")
    return "\n".join(lines) + "\n"
