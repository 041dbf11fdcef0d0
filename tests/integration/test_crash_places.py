"""kill -9 while tables of each format lie on other stores and in other catalogs: each row once, whatever was loaded and whenever the run died.

A sample: each load of each format and store is killed at some step, and each step of each format and store in some load. docs/explanation/crash-matrix.md shows it.
Iceberg tables in folders are killed at each step of each load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from resources.tables.iceberg import jdbc_catalog
from tests.integration.test_crash_matrix import OPEN, STEPS, WAYS, Way, crash_cell, definition_of, in_bucket
from tests.support.crash_report import write_part
from tests.support.crash_runner import WRITING
from tests.support.feed import NAME, Feed

PLACES = (
    "Delta, S3",
    "Parquet, folder",
    "Parquet, S3",
    "Iceberg, S3, PostgreSQL",
    "Iceberg, folder, PostgreSQL",
    "Iceberg, folder, REST",
)
_WHOLE_FILES = ("append", "late ingest", "set tracking", "rewind")
_BY_KEYS = ("upsert", "replace by keys", "scd2")
_STEPS = (WRITING, Step.WRITTEN, Step.INTENT_PUT, Step.VERIFIED, Step.APPENDED)


def _sample() -> list[tuple[str, str, str]]:
    """Each load of each place, at steps that go round."""
    turn = count()
    cells = []
    for place in PLACES:
        ways = _WHOLE_FILES if place.startswith("Parquet") else (*_WHOLE_FILES, *_BY_KEYS)
        cells += [(place, way, _STEPS[next(turn) % len(_STEPS)]) for way in ways]
    return cells


SAMPLE = _sample()
QUICK = {
    ("Parquet, folder", "append"),
    ("Iceberg, folder, PostgreSQL", "append"),
    ("Iceberg, folder, REST", "append"),
}
"""Cells that `make test` has: one of each format and catalog."""

QUICK_OF_ICEBERG = {
    ("append", WRITING),
    ("append", Step.WRITTEN),
    ("upsert", WRITING),
    ("windows", Step.WRITTEN),
}


class FeedElsewhere(Feed):
    """A dataflow whose table is not in the project's folder, or known to a catalog: the table's own reader tells its rows."""

    def rows(self, *columns: str) -> list[tuple[Any, ...]]:
        """These columns of all rows of the table, sorted."""
        return self.rows_by_spark(*columns)


@pytest.fixture
def make(
    place: str,
    tmp_path: Path,
    engine: SparkEngine,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[[Way, str], Feed]]:
    """A dataflow whose table lies there."""
    # The sessions of these tests are more than those of a run a minute, and PostgreSQL has few connections.
    monkeypatch.setattr(jdbc_catalog, "IDLE_SECONDS", 0)
    settings: dict[str, Any] = {"connections": {}}
    variables: dict[str, str] = {}
    with ExitStack() as stack:
        if "S3" in place:
            seaweed = request.getfixturevalue("seaweed")
            bucket = stack.enter_context(seaweed.bucket())
            settings["lake"] = {"path": f"{bucket.url}/lake", "connection": "land"}
            settings["connections"]["land"] = in_bucket(bucket)
            variables |= {"K": seaweed.access_key_id, "S": seaweed.secret_access_key}
        if "PostgreSQL" in place:
            postgres = request.getfixturevalue("postgres")
            known = {
                "type": "jdbc",
                "url": {"env": "URL"},
                "user": "postgres",
                "password": {"env": "PASSWORD"},
            }
            url = f"jdbc:{postgres.url().replace(f'postgres:{postgres.password}@', '')}"
            settings |= {"iceberg": {"catalog": "jdbc", "connection": "known"}}
            settings["connections"]["known"] = known
            variables |= {"URL": url, "PASSWORD": postgres.password}
        if "REST" in place:
            known = {
                "type": "iceberg_rest", "uri": request.getfixturevalue("rest").uri, "token": {"env": "TOKEN"},
            }  # fmt: skip
            settings |= {"iceberg": {"catalog": "rest", "connection": "known"}}
            settings["connections"]["known"] = known
            variables |= {"TOKEN": "any"}

        def made(way: Way, step: str) -> Feed:
            feed = FeedElsewhere(tmp_path / "project", engine, definition_of(way, step), settings, variables)
            # A server knows the tables of all tests.
            table = f"l{uuid4().hex[:8]}/{NAME}"
            return feed.define(target={"format": place.partition(",")[0].lower(), "table": table})

        yield made


@pytest.fixture(scope="module")
def report() -> Iterator[dict[tuple[str, str], tuple[str, str]]]:
    """Collects the cells; the whole sample is written down."""
    cells: dict[tuple[str, str], tuple[str, str]] = {}
    yield cells
    if len(cells) == len(SAMPLE):
        write_part(_written(cells))


def _marked(*cell: str, quick: bool) -> Any:
    return pytest.param(*cell, marks=() if quick else pytest.mark.full)


@pytest.mark.each_case
@pytest.mark.parametrize("place", ["Iceberg, folder"])
@pytest.mark.parametrize(
    ("name", "step"),
    [_marked(way, step, quick=(way, step) in QUICK_OF_ICEBERG) for way in WAYS for step in STEPS],
)
def test_a_killed_run_into_iceberg_is_finished_by_the_next(
    make: Callable[[Way, str], Feed], name: str, step: str
) -> None:
    crash_cell(make, name, step)


@pytest.mark.each_case
@pytest.mark.s3
@pytest.mark.postgres
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("place", "name", "step"), [_marked(*cell, quick=cell[:2] in QUICK) for cell in SAMPLE]
)
def test_a_killed_run_is_finished_by_the_next_wherever_its_table_lies(
    make: Callable[[Way, str], Feed],
    report: dict[tuple[str, str], tuple[str, str]],
    place: str,
    name: str,
    step: str,
) -> None:
    report[place, name] = (STEPS[step], crash_cell(make, name, step))


def test_the_sample_has_each_load_and_each_step_in_which_a_run_may_leave_work() -> None:
    assert {name for _, name, _ in SAMPLE} == {*_WHOLE_FILES, *_BY_KEYS} <= set(WAYS)
    for format_ in ("Delta", "Parquet", "Iceberg"):
        assert {step for place, _, step in SAMPLE if place.startswith(format_)} >= set(OPEN)


def _written(cells: dict[tuple[str, str], tuple[str, str]]) -> str:
    """The sample as a part of the page."""
    lines = [
        "# Formats and stores of tables",
        "",
        "Written by the same command (tests/integration/test_crash_places.py). It is a sample of the same kills beside tables of other formats, stores and catalogs.",
        "Each cell says after which step the run was killed, and the status of the next one. Iceberg tables in folders are killed at each step of each load too.",
        "",
        f"| load | {' | '.join(PLACES)} |",
        f"|---|{'---|' * len(PLACES)}",
    ]
    for name in (*_WHOLE_FILES, *_BY_KEYS):
        row = [": ".join(cells[place, name]) if (place, name) in cells else "" for place in PLACES]
        lines.append(f"| {name} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"
