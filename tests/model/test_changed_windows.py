"""Windows that are loaded again if rows change in their table: each is as the table was at the version that the state names.

What is modelled: a table of readings that grows, with late rows, and is updated, merged, overwritten, compacted and set back; windows
over it, by units or without, that grow or not, under a cap; decisions; and runs that die. All is real: Spark, the tables, the log.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from partitions.instants import milliseconds
from partitions.window.state import WindowState
from partitions.window.units import unit_of
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.feed import Feed
from tests.support.readings import (
    COLUMNS,
    READINGS,
    START,
    Reading,
    Readings,
    days_of_readings,
    reading,
    without_units,
)
from tests.support.steps import Killed, killed_at

_STEPS = (Step.PLANNED, Step.LIST_KEPT, Step.WRITTEN)
_ACTS = (
    "append",
    "append",
    "late",
    "update",
    "delete",
    "merge",
    "compact",
    "overwrite",
    "restore",
    "run",
    "run",
    "die",
    "force",
)
_LENGTH = 12


class World:
    """A table of readings, and windows over it."""

    def __init__(self, folder: Path, engine: SparkEngine, kind: str, seed: int) -> None:
        """Write the project, and the table's first rows."""
        self.random = Random(f"{kind} {seed}")
        choose = self.random.choice
        watermark: dict[str, Any] = {
            "window": choose(
                ["daily", {"daily": ["2026-01-01", "2026-01-03"], "hourly": ["2026-01-03", "-"]}]
            )
        }
        watermark |= choose([{}, {"parallelism": 3}, {"grace": "PT10H"}])
        target: dict[str, Any] = {"format": choose(["delta", kind])}
        if "grace" not in watermark:
            target |= choose([{}, {"load": "append", "replace_by_watermark": False}])
        definition = choose([days_of_readings, without_units])(watermark=watermark, target=target)
        self.feed = Feed(folder / "project", engine, definition, name="days")
        self.upstream = READINGS[kind](folder / "project/lake", engine)
        self.now, self._next = START + timedelta(hours=30), 0
        self.upstream.append(*self._new_rows(0))
        self.upstream.append(*self._new_rows(0))

    def _new_rows(self, since: float) -> list[Reading]:
        rows = []
        for _ in range(self.random.randint(1, 4)):
            self._next += 1
            hours = (self.now - START) / timedelta(hours=1)
            at = (self.random.uniform(since, hours) // 0.25) / 4 / 24
            rows.append(reading(self._next, at, self.random.choice(["EWR", "JFK"]), f"v{self._next}"))
        return rows

    def act(self) -> str:
        """Change the table, or run the dataflow, which may die; return what was done."""
        what = self.random.choice(_ACTS)
        self.now += timedelta(minutes=self.random.choice([0, 0, 15, 240]))
        ids = [row[0] for row in self.upstream.rows()]
        if not ids and what in ("update", "delete", "merge"):
            what = "append"
        match what:
            case "run":
                self._run()
            case "die":
                with suppress(Killed):
                    self.feed.run(killed_at(self.random.choice(_STEPS), self.random.randint(1, 2)), self.now)
            case "force":
                days = ("--force", "2026-01-01..2026-01-02", "--now", self.now.isoformat(), "--yes")
                self.feed.command("run", "days", *days)
            case "append":
                self.upstream.append(*self._new_rows((self.now - START) / timedelta(hours=1) - 3))
            case "late":
                self.upstream.append(*self._new_rows(0))
            case "update":
                self.upstream.update(self.random.choice(ids), f"u{self._next}")
            case "delete":
                self.upstream.delete(self.random.choice(ids))
            case "merge":
                (row,) = self._new_rows(0)[:1]
                self.upstream.merge((self.random.choice(ids), *row[1:]), *self._new_rows(0))
            case "compact":
                self.upstream.compact()
            case "overwrite":
                kept = [row for row in self.upstream.rows() if self.random.random() < 0.7]
                self.upstream.overwrite(*kept, *self._new_rows(0))
            case "restore":
                self.upstream.restore(self.random.randint(1, 2))
        return what

    def _run(self) -> None:
        outcome = self.feed.run(now=self.now)
        if outcome.error is not None:
            raise outcome.error
        if isinstance(self.upstream, Readings):
            assert self.feed.rows(*COLUMNS) == self.expected()

    def expected(self) -> list[Reading]:
        """Return the rows that the state promises: of each loaded window those of the version that it was read at."""
        state = WindowState.of(self.feed.watermark)
        base = state.position.version if state.position else 0
        rows = []
        for unit, intervals in state.units.items():
            airport = unit_of(unit).get("airport")
            pending = [(part[0], part[1], int(part[2].split()[1])) for part in state.changed.get(unit, ())]
            for version in {base, *(version for *_, version in pending)}:
                for row in self.upstream.rows(version):
                    at = milliseconds(row[1])
                    named = next((named for start, end, named in pending if start <= at < end), base)
                    is_loaded = any(interval[0] <= at < interval[1] for interval in intervals)
                    if named == version and is_loaded and airport in (None, row[2]):
                        rows.append(row)
        return sorted(rows)

    def check(self) -> None:
        """Load all that is due, and compare the windows with the table above."""
        self.now += timedelta(hours=1)
        for _ in range(40):
            self._run()
            (plan,) = self.feed.command("plan", "days", "--now", self.now.isoformat()).json
            if not plan["due"] or all(work["reason"] == "grace" for work in plan["slices"]):
                break
        floor = self.now.replace(second=0, microsecond=0)
        assert self.feed.rows(*COLUMNS) == [row for row in self.upstream.rows() if _is_before(row, floor)]


def _is_before(row: Reading, now: datetime) -> bool:
    return row[1] < now


def play(folder: Path, engine: SparkEngine, kind: str, seed: int) -> None:
    """Play a random history; an assertion names what was done."""
    world, done = World(folder, engine, kind, seed), list[str]()
    try:
        for _ in range(_LENGTH):
            done.append(world.act())
        world.check()
    except BaseException as error:
        error.add_note(f"readings ({kind}, seed {seed}): {', '.join(done)}")
        raise


@pytest.mark.parametrize(("kind", "seed"), [("delta", 1)])
def test_each_window_is_as_the_table_was_at_the_version_that_the_state_names(
    tmp_path: Path, engine: SparkEngine, kind: str, seed: int
) -> None:
    play(tmp_path, engine, kind, seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(2, 12))
@pytest.mark.parametrize("kind", READINGS)
def test_each_window_is_as_its_table_in_longer_histories(
    tmp_path: Path, engine: SparkEngine, kind: str, seed: int
) -> None:
    play(tmp_path, engine, kind, seed)
