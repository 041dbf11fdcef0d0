"""kill -9 of a replay, a promote and a drop, over every store of the state and format: a live run goes on, and the same command ends it.

docs/explanation/crash-matrix.md shows what a live run makes of the number.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from resources.spark.engine import SparkEngine
from tests.integration.test_crash_matrix import STORES, settings, store
from tests.integration.test_promote import AFTER, BEFORE, NOW, loaded, row, rows
from tests.support.asides import TABLE, stand_aside
from tests.support.columns import at
from tests.support.crash_report import PAGE
from tests.support.decision_crash import crash_deciding
from tests.support.replayed import AFTER as FILES_AFTER
from tests.support.replayed import BEFORE as FILES_BEFORE
from tests.support.replayed import DAYS, SWAPPED, WINDOWS, Settings, changed_files, changed_windows, put
from tests.support.window_feed import event

__all__ = ["settings", "store"]

STEPS = {
    "replaying": "what was asked for stored",
    "replays": "what was asked for stored",
    "chunks": "files, or windows, of each chunk stored",
    "chunks_done": "chunk noted as done",
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

PART_CELLS = {
    "replay": dict.fromkeys(
        ("replays", "chunks", "files", "intents", "entries", "chunks_done", "marks"), BEGUN
    ),
    "promote": CELLS["promote"],
    "drop": CELLS["drop"],
}
"""The same of files and windows, whose replay is one aside: it takes no number of the live flow."""

_EVERY = [(command, folder) for command, cells in CELLS.items() for folder in cells]
_PARTS = [(command, folder) for command, cells in PART_CELLS.items() for folder in cells]


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
    flow.feed.command(*words)
    assert rows(flow) == [*(BEFORE if command == "drop" else AFTER), (8, 8)]
    assert (flow.run().status, flow.feed.open_intent) == ("nothing", None)


def _part_cells() -> list[Any]:
    """Each step of files and of windows in one half of the places: of two neighbouring steps, and of files and windows, one half each."""
    places = [("delta", store) for store in STORES] + [("iceberg", "folder"), ("parquet", "folder")]
    return [
        pytest.param(
            *step, kind, form, *getattr(store, "values", (store,)), marks=getattr(store, "marks", ())
        )
        for number, step in enumerate(_PARTS)
        for second, kind in enumerate(("files", "windows"))
        for third, (form, store) in enumerate(places)
        if (number + second + third) % 2 == 0
    ]


@pytest.mark.full
@pytest.mark.parametrize(("command", "folder", "kind", "form", "store"), _part_cells(), indirect=["store"])
def test_matrix_of_replays_aside_of_files_and_windows(
    tmp_path: Path,
    engine: SparkEngine,
    settings: tuple[dict[str, Any], dict[str, str]],
    command: str,
    folder: str,
    kind: str,
    form: str,
) -> None:
    parts = Files(tmp_path, engine, form, settings) if kind == "files" else Days(tmp_path, engine, form, settings)  # fmt: skip
    feed = parts.feed
    aside = ("replay", feed.name, *parts.range, "--into", TABLE)
    words = aside if command == "replay" else (command, feed.name, TABLE, "--reason", "r", "--yes")
    if command != "replay":
        feed.command(*aside)
    known = len(feed.entries)
    crash_deciding(feed, folder, *words)
    parts.more()
    whys = [entry.why for entry in feed.entries[known:]]
    became = UP if "abandon" in whys else DONE if "promote" in whys else BEGUN
    assert became == PART_CELLS[command][folder], whys
    feed.command(*words)
    if command == "replay":
        assert feed.rows("id", "value") == sorted([*parts.before, parts.new])
        feed.command("promote", feed.name, TABLE, "--reason", "r", "--yes")
    assert feed.rows("id", "value") == sorted([*(parts.before if command == "drop" else parts.after), parts.new])  # fmt: skip
    parts.run()
    assert feed.open_intent is None
    assert feed.rows("id", "value") == sorted([*(parts.before if command == "drop" else parts.after), parts.new])  # fmt: skip
    assert not list((feed.folder / "lake" / "aside").glob("*"))


class Files:
    """Files of five days, of which those of two are read again."""

    range, before, after, new = DAYS, FILES_BEFORE, FILES_AFTER, (6, 0)

    def __init__(self, folder: Path, engine: SparkEngine, form: str, settings: Settings) -> None:
        self.feed = changed_files(folder, engine, settings, format=form)

    def more(self) -> None:
        put(self.feed, 6, 6)
        self.run()

    def run(self) -> None:
        self.feed.load()


class Days:
    """Windows of five days of two units, of which two days are read again."""

    range, after, new = WINDOWS, SWAPPED, (9, 0)
    before = tuple((number, 0) for number in (1, 2, 3, 4, 5, 11, 12, 13, 14, 15))

    def __init__(self, folder: Path, engine: SparkEngine, form: str, settings: Settings) -> None:
        target = {"format": form, "load": "merge_overwrite", "replace_by_watermark": True}
        self._made = changed_windows(folder, engine, target, settings)
        self.feed = self._made.feed

    def more(self) -> None:
        self._made.table.put(event(9, "2020-01-09", "a"))
        self.run()

    def run(self) -> None:
        self._made.run("2020-01-10")


def test_the_page_shows_what_is_tried() -> None:
    assert _written() in PAGE.read_text()


def _written() -> str:
    lines = [
        "# Replays",
        "",
        "Tried by the same command (tests/integration/test_replay_crashes.py) on Delta and on Iceberg, with the state in a folder, on S3 and in PostgreSQL. The",
        "process is killed with SIGKILL right after the step. A cell says what a live run that comes next makes of its number; it loads what is new all the same.",
        "The same command then ends what was begun, and the table holds the rows that it promises, each once.",
    ]
    for command, cells in CELLS.items():
        lines += _table(command, cells)
    lines += [
        "",
        "The same for isolated replays of files and windows. On Delta all stores were tried, on Iceberg and Parquet tables the state in a folder, each step in half of these places. Promote and drop: as above.",
    ]
    lines += _table("replay into a table aside", PART_CELLS["replay"])
    return "\n".join(lines) + "\n"


def _table(title: str, cells: dict[str, str]) -> list[str]:
    head = ["", f"## {title}", "", "| killed | the number |", "|---|---|"]
    return [*head, *(f"| {STEPS[folder]} | {became} |" for folder, became in cells.items())]
