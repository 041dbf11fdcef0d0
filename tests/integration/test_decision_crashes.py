"""kill -9 at every step of every decision, over every store of the state: it was made, or it was not, and nothing in between.

A run of the whole matrix writes its part of the report, docs/explanation/crash-matrix.md. ``make test`` has a cell of every store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from resources.spark.engine import SparkEngine
from tests.integration.test_crash_matrix import STORES, settings, store
from tests.support.crash_report import write_part
from tests.support.decision_crash import crash_deciding
from tests.support.feed import NAME, Feed

__all__ = ["settings", "store"]

CLAIM, FILES, QUARANTINE, ENTRY = "intents", "files", "quarantine", "entries"
STEPS = {
    CLAIM: "intent stored",
    FILES: "list of files stored",
    QUARANTINE: "list of quarantine stored",
    ENTRY: "entry appended",
}
"""The folder beside the log that a step puts something into, and how the report calls the step."""

_ALL_KINDS = ("entries", "intents", "files", "schemas", "quarantine", "ingested", "notes", "floor", "leases")


@dataclass(frozen=True)
class Decision:
    """A decision, and the rows before and after.

    Attributes:
        command: the arguments of the command line; ``FILE`` is an export.
        steps: what it puts, in order.
        decided: all rows after it and a run.
        dropped: all rows after a run that finds it unfinished.
        before: makes what it is about.
        definition: keys of the dataflow.
        stop: why a run that finds it unfinished stops, if it does.
        at_once: whether it is made again before a run, which would load what it is about, too.
        restored: objects that it puts into the folder of each step before its own: of the log that it brings back.
    """

    command: tuple[str, ...]
    steps: tuple[str, ...]
    decided: list[int]
    dropped: list[int] = field(default_factory=lambda: [1, 2, 3, 4])
    before: Callable[[Feed], None] = lambda feed: None
    definition: dict[str, Any] = field(default_factory=dict)
    stop: str | None = None
    at_once: bool = False
    restored: int = 0


def _lose(feed: Feed) -> None:
    """Lose the state, wherever it is; an export of it is kept."""
    (feed.folder / "export.jsonl").write_text(feed.cli("state", "export", NAME).out)
    log = feed.platform.log
    for kind in _ALL_KINDS:
        log.delete(NAME, kind, log.names(NAME, kind, 10_000))
    assert feed.newest is None


def _set_aside(feed: Feed) -> None:
    feed.put("0.ndjson", 5)
    assert feed.cli("late", NAME).json["quarantined"] == 1


def _late(feed: Feed) -> None:
    feed.put("0.ndjson", 5)


def _redefine(feed: Feed) -> None:
    feed.define(source={"extensions": [".ndjson", ".txt"]})


_ASIDE = {"late_files": "quarantine"}

DECISIONS = {
    "set": Decision(("state", "set", NAME, '{"path": "c.ndjson"}'), (CLAIM, FILES, ENTRY), [1, 2, 3], at_once=True),
    "rewind": Decision(("state", "rewind", NAME, "--to", "1"), (CLAIM, ENTRY), [1, 2, 2, 3, 3, 4], at_once=True),
    "rewind --replace": Decision(
        ("state", "rewind", NAME, "--to", "1", "--replace"), (CLAIM, ENTRY), [1, 2, 3, 4]
    ),
    "reset": Decision(("state", "reset", NAME), (CLAIM, ENTRY), [1, 1, 2, 2, 3, 3, 4], at_once=True),
    "reset --replace": Decision(("state", "reset", NAME, "--replace"), (CLAIM, ENTRY), [1, 2, 3, 4]),
    "adopt, the state was lost": Decision(
        ("state", "adopt", NAME), (CLAIM, FILES, ENTRY), [1, 2, 3, 4], [1, 2, 3], _lose, stop="state_lost"
    ),
    "import, the state was lost": Decision(
        ("state", "import", NAME, "FILE"), (CLAIM, ENTRY), [1, 2, 3, 4], before=_lose, restored=2
    ),
    "reset, the state was lost": Decision(
        ("state", "reset", NAME, "--replace"), (CLAIM, ENTRY), [1, 2, 3, 4], [1, 2, 3], _lose, stop="state_lost"
    ),
    "accept": Decision(
        ("state", "accept", NAME), (CLAIM, ENTRY), [1, 2, 3, 4], [1, 2, 3], _redefine, stop="definition_changed"
    ),
    "release": Decision(
        ("files", "release", NAME, "0.ndjson"), (CLAIM, QUARANTINE, ENTRY), [1, 2, 3, 4, 5], [1, 2, 3, 4], _set_aside, _ASIDE
    ),
    "unprocess": Decision(
        ("files", "unprocess", NAME, "a.ndjson"),
        (CLAIM, FILES, ENTRY),
        [1, 1, 2, 3, 4],
        definition={"watermark": {"tracking": "set"}},
    ),
    "quarantine of late files": Decision(
        ("late", NAME), (CLAIM, FILES, QUARANTINE, ENTRY), [1, 2, 3, 4], [1, 2, 3, 4], _late, _ASIDE
    ),
}  # fmt: skip

CELLS = [(name, step) for name, decision in DECISIONS.items() for step in decision.steps]


@pytest.fixture
def make(
    tmp_path: Path, engine: SparkEngine, settings: tuple[dict[str, Any], dict[str, str]]
) -> Callable[[dict[str, Any]], Feed]:
    def made(definition: dict[str, Any]) -> Feed:
        watermark = {"checkpoint": {"interval_files": 1}} | definition.get("watermark", {})
        return Feed(tmp_path / "project", engine, definition | {"watermark": watermark}, *settings)

    return made


@pytest.fixture(scope="module")
def report() -> Iterator[dict[tuple[str, str, str], str]]:
    """Collects the cells; the whole matrix is written down."""
    cells: dict[tuple[str, str, str], str] = {}
    yield cells
    if len(cells) == len(CELLS) * len(STORES):
        write_part(_written(cells))


def _arguments(feed: Feed, decision: Decision) -> list[str]:
    given = [str(feed.folder / "export.jsonl") if one == "FILE" else one for one in decision.command]
    asked = ["--reason", "matrix"] if given[0] != "late" else []
    return [*given, *asked, *(["--yes"] if given[0] == "state" else [])]


def _cell(make: Callable[[dict[str, Any]], Feed], name: str, step: str) -> str:
    """Kill a decision there, run, decide again unless it was made, and look."""
    decision = DECISIONS[name]
    feed = make(decision.definition)
    feed.put("a.ndjson", 1)
    feed.put("b.ndjson", 2, 3)
    feed.load()
    decision.before(feed)
    feed.put("c.ndjson", 4)
    arguments = _arguments(feed, decision)
    crash_deciding(feed, step, *arguments, puts=decision.restored + 1)
    said = "decided" if step == ENTRY else _undecided(feed, decision, arguments)
    assert feed.run().error is None
    assert feed.ids == decision.decided
    assert (feed.load().status, feed.ids) == ("nothing", decision.decided)
    assert feed.open_intent is None
    if decision.before is _late:
        assert feed.cli("late", NAME).json["late"] == []
    return said


def _undecided(feed: Feed, decision: Decision, arguments: list[str]) -> str:
    """See that it was not made, and make it again."""
    said = "not decided"
    if not decision.at_once:
        outcome = feed.run()
        assert (outcome.error and outcome.error.code) == decision.stop
        assert feed.ids == decision.dropped
        said = f"not decided, {outcome.status}"
    feed.command(*arguments)
    return said


SOME = [
    ("adopt, the state was lost", CLAIM, "folder"),
    ("release", QUARANTINE, "folder"),
    pytest.param("rewind --replace", CLAIM, "S3", marks=pytest.mark.s3),
    pytest.param("reset, the state was lost", CLAIM, "PostgreSQL", marks=pytest.mark.postgres),
]


@pytest.mark.each_case
@pytest.mark.parametrize(("name", "step", "store"), SOME, indirect=["store"])
def test_a_killed_decision_was_made_or_was_not(
    make: Callable[[dict[str, Any]], Feed], name: str, step: str
) -> None:
    _cell(make, name, step)


@pytest.mark.full
@pytest.mark.parametrize(("name", "step"), CELLS)
def test_matrix(
    make: Callable[[dict[str, Any]], Feed],
    report: dict[tuple[str, str, str], str],
    store: str,
    name: str,
    step: str,
) -> None:
    report[name, step, store] = _cell(make, name, step)


def _written(cells: dict[tuple[str, str, str], str]) -> str:
    """The matrix as a part of the page."""
    stores = list(dict.fromkeys(store for _, _, store in cells))
    lines = [
        "# Decisions",
        "",
        "Written by the same command (tests/integration/test_decision_crashes.py). A decision is killed with SIGKILL right after the step. A cell says",
        "whether the decision counts as made, and the status of a run after it. `blocked` is the stop that was there before the decision (exit code 4).",
        "If the decision was not made it is made again; in every cell the table then holds the rows that it promises.",
    ]
    for name, decision in DECISIONS.items():
        lines += ["", f"## {name}", "", f"| killed | {' | '.join(stores)} |", f"|---|{'---|' * len(stores)}"]
        for step in decision.steps:
            row = " | ".join(cells[name, step, store] for store in stores)
            lines.append(f"| {STEPS[step]} | {row} |")
    return "\n".join(lines) + "\n"
