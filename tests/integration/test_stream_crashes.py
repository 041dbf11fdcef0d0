"""kill -9 of a stream's runs between any two commits of an epoch, twice in a row: each row in exactly one of sorted, late, quarantine, buffer.

A run of the whole matrix writes its part of docs/explanation/crash-matrix.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.integration.test_crash_matrix import STORES, settings, store
from tests.support.crash_report import write_part
from tests.support.crash_runner import WRITING, crash
from tests.support.feed import Feed
from tests.support.streams import FILES, FileStream, definition, minutes, plainly

__all__ = ["settings", "store"]

CHUNKS = (
    ((1, "a", 100), (2, "b", 200), (3, "a", 110), (4, None, 5)),
    ((5, "a", 90), (6, "a", 300), (7, "b", 201), (8, "b", None)),
    ((9, "a", 310), (10, "b", 400), (11, "b", 150), (12, None, 1)),
)
"""Each an epoch with rows that leave (but the first), wait, are late (but the first), and are quarantined."""

STEPS: dict[tuple[str, int], str] = {
    (Step.PLANNED, 1): "planned",
    (Step.LIST_KEPT, 1): "list of splits stored",
    (Step.INTENT_PUT, 1): "intent stored",
    (WRITING, 1): "while Spark writes",
    (Step.SET_ASIDE, 1): "buffer committed",
    (Step.SET_ASIDE, 2): "late rows committed",
    (Step.SET_ASIDE, 3): "quarantine committed",
    (Step.WRITTEN, 1): "rows committed",
    (Step.VERIFIED, 1): "commit looked up",
    (Step.APPENDED, 1): "entry appended",
}
"""Where the second epoch's run is killed."""

PAIRS = list(zip(list(STEPS)[::2], list(STEPS)[1::2], strict=True))
"""Each step once: a run is killed at the first, the one that goes on with its work at the second."""


def made(folder: Path, engine: SparkEngine, settings: Any = ({}, {}), format_: str = "delta") -> FileStream:
    """A stream that has loaded its first epoch, and has two more to load."""
    declared = definition(source=FILES, splits=["a", "b"], checkpoint={"interval_files": 1})
    declared["target"]["format"] = format_
    stream = FileStream(Feed(folder, engine, declared, *settings))
    for number, rows in enumerate(CHUNKS):
        stream.append(*rows)
        if not number:
            stream.feed.load()
    return stream


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory, engine: SparkEngine) -> FileStream:
    """Copied for each cell with its state in a folder."""
    return made(tmp_path_factory.mktemp("begun") / "project", engine)


def crash_cell(
    stream: FileStream, first: tuple[str, int], second: tuple[str, int] = (Step.SET_ASIDE, 1)
) -> str:
    """Kill a run there, kill the next as it sets its first rows aside or at another step, run again, and look."""
    crash(stream.feed, *first)
    crash(stream.feed, *second)
    outcome = stream.feed.load()
    expected = plainly(stream.written, 5, ["a", "b"])
    assert tuple(stream.places().values()) == expected[:4]
    assert sorted(chain.from_iterable(expected[:4])) == list(range(1, 13))
    state = stream.feed.watermark
    assert minutes(state["global"]) == expected.value
    assert (state["late"], state["quarantined"]) == (len(expected.late), len(expected.quarantine))
    ordered = stream.sorted()
    assert ordered == sorted(ordered, key=lambda row: (row[1], row[0]))
    assert [entry.number for entry in stream.feed.entries] == [1, 2, 3]
    assert stream.feed.open_intent is None
    assert stream.feed.load().status == "nothing"
    assert tuple(stream.places().values()) == expected[:4]
    return str(outcome.status)


def _shown(steps: tuple[tuple[str, int], ...]) -> str:
    return " then ".join(STEPS[step] for step in steps)


@pytest.mark.parametrize("steps", PAIRS, ids=_shown)
def test_runs_killed_twice_leave_each_row_in_one_place(
    begun: FileStream, tmp_path: Path, steps: tuple[tuple[str, int], tuple[str, int]]
) -> None:
    stream = FileStream(begun.feed.copy(tmp_path / "project"), list(begun.written))
    crash_cell(stream, *steps)


@pytest.mark.parametrize(
    ("store", "step"),
    [
        pytest.param("S3", (Step.SET_ASIDE, 2), marks=[pytest.mark.s3, pytest.mark.full]),
        pytest.param("PostgreSQL", (Step.WRITTEN, 1), marks=[pytest.mark.postgres, pytest.mark.full]),
    ],
    indirect=["store"],
)
def test_runs_killed_twice_leave_each_row_in_one_place_wherever_the_state_is(
    tmp_path: Path,
    engine: SparkEngine,
    settings: tuple[dict[str, Any], dict[str, str]],
    step: tuple[str, int],
) -> None:
    crash_cell(made(tmp_path / "project", engine, settings), step)


@pytest.fixture(scope="module")
def report() -> Iterator[dict[tuple[str, int, str], str]]:
    """Collects the cells; the whole matrix is written down."""
    cells: dict[tuple[str, int, str], str] = {}
    yield cells
    if len(cells) == len(STORES) * len(STEPS):
        write_part(_written(cells))


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize(("step", "occurrence"), STEPS)
def test_matrix_of_streams(
    tmp_path: Path,
    engine: SparkEngine,
    settings: tuple[dict[str, Any], dict[str, str]],
    report: dict[tuple[str, int, str], str],
    store: str,
    step: str,
    occurrence: int,
) -> None:
    stream = made(tmp_path / "project", engine, settings)
    report[step, occurrence, store] = crash_cell(stream, (step, occurrence))


@pytest.mark.full
@pytest.mark.timeout(300)
@pytest.mark.parametrize("steps", PAIRS, ids=_shown)
def test_matrix_of_streams_into_iceberg(
    tmp_path: Path, engine: SparkEngine, steps: tuple[tuple[str, int], tuple[str, int]]
) -> None:
    crash_cell(made(tmp_path / "project", engine, format_="iceberg"), *steps)


def _written(cells: dict[tuple[str, int, str], str]) -> str:
    """The matrix as a part of the page."""
    stores = list(dict.fromkeys(store for _, _, store in cells))
    lines = [
        "# Streams",
        "",
        "Written by `make test-full` (tests/integration/test_stream_crashes.py). The run of an epoch is killed with SIGKILL right after the step, and the",
        "next run as soon as it has written late rows. Each cell shows the status of the third. In every cell each row is in exactly one of four places: sorted or late,",
        "quarantine or buffer. The global watermark is right, the numbers have no gap, and a further run has nothing to do.",
        "",
        f"| killed | {' | '.join(stores)} |",
        f"|---|{'---|' * len(stores)}",
    ]
    for (step, occurrence), shown in STEPS.items():
        row = " | ".join(cells[step, occurrence, store] for store in stores)
        lines.append(f"| {shown} | {row} |")
    return "\n".join(lines) + "\n"
