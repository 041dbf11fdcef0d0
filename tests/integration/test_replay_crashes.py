"""kill -9 of a replay in place, a promote and a drop, over every store of the state and on both formats: a live run goes on, and the same command ends it.

docs/crash-matrix.md shows what a live run makes of the number.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.spark import SparkEngine
from tests.integration.test_crash_matrix import settings, store
from tests.integration.test_promote import AFTER, BEFORE, NOW, loaded, row, rows
from tests.support.asides import TABLE, stand_aside
from tests.support.columns import at
from tests.support.crash_report import PAGE
from tests.support.decision_crash import crash_deciding

__all__ = ["settings", "store"]

STEPS = {
    "replaying": "what was asked for stored",
    "marks": "mark stored",
    "files": "list of its rows stored",
    "intents": "intent stored",
    "entries": "entry appended",
}
BEGUN, UP, DONE = "nothing begun", "given up", "kept"
CELLS = {
    "replay": {"replaying": BEGUN, "files": BEGUN, "intents": UP, "entries": DONE},
    "promote": {"marks": BEGUN, "files": BEGUN, "intents": UP, "entries": DONE},
    "drop": {"marks": BEGUN},
}
"""By command and step: what a live run makes of the number that the killed process was at."""

_EVERY = [(command, folder) for command, cells in CELLS.items() for folder in cells]


@pytest.mark.full
@pytest.mark.parametrize("form", ["delta", "iceberg"])
@pytest.mark.parametrize(("command", "folder"), _EVERY)
def test_matrix_of_replays(
    tmp_path: Path,
    engine: SparkEngine,
    settings: tuple[dict[str, Any], dict[str, str]],
    command: str,
    folder: str,
    form: str,
) -> None:
    flow, source = loaded(tmp_path, engine, "append", form, project=settings[0], variables=settings[1])
    words: tuple[str, ...] = (command, flow.feed.name, TABLE, "--reason", "r", "--yes")
    if command == "replay":
        days = ("--start", "2026-01-01", "--end", "2026-01-04", "--every", "1 day")
        words = (command, flow.feed.name, *days, "--replace")
    else:
        stand_aside(flow.feed, at(1), at(4), now=NOW)
    known = len(flow.feed.entries)
    crash_deciding(flow.feed, folder, *words)
    source.put(row(8, 8))
    flow.run()
    whys = [entry.why for entry in flow.feed.entries[known:]]
    became = UP if "abandon" in whys else DONE if command in whys else BEGUN
    assert became == CELLS[command][folder], whys
    answer = flow.feed.cli(*words)
    assert answer.code == 0, answer.out
    assert rows(flow) == [*(BEFORE if command == "drop" else AFTER), (8, 8)]
    assert (flow.run().status, flow.feed.open_intent) == ("nothing", None)


def test_the_page_shows_what_is_tried() -> None:
    assert _written() in PAGE.read_text()


def _written() -> str:
    lines = [
        "# Replays",
        "",
        "Tried by the same command (tests/integration/test_replay_crashes.py), with the state in a folder, on S3 and in PostgreSQL, on Delta and on Iceberg alike. The",
        "process is killed with SIGKILL right after the step. A cell says what a live run that comes next makes of its number; it loads what is new all the same.",
        "The same command then ends what was begun, and the table holds the rows that it promises, each once.",
    ]
    for command, cells in CELLS.items():
        lines += ["", f"## {command}", "", "| killed | the number |", "|---|---|"]
        lines += [f"| {STEPS[folder]} | {became} |" for folder, became in cells.items()]
    return "\n".join(lines) + "\n"
