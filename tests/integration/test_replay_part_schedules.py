"""Any schedule of arrivals, corrections, live runs, replays of files or windows in place and aside, promotes, drops, care of the table and deaths: each row once, and in the end the source's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from partitions.errors import NeedsDecision
from resources.outcome import Step
from resources.replay.in_place import replay_in_place
from resources.replay.isolated.dropping import drop_replay
from resources.replay.isolated.promoting import promote_replay
from resources.replay.isolated.replaying import replay_isolated
from resources.replay.isolated.standing import stored_replays
from resources.replay.options import ReplayOptions
from resources.spark.engine import SparkEngine
from tests.support.asides import care_for
from tests.support.feed import NOW, Feed, dies_after
from tests.support.window_feed import event, instant, on_lake, watermark

STEPS = (Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED, Step.APPENDED, Step.TABLE_REMOVED, None)
TABLES = ("aside/one", "aside/two")
WORDS = ("arrive", "arrive", "correct", "correct", "live", "in_place", "aside", "aside", "end", "end", "care")
LENGTH = 12
DAYS = 9


class Schedule(ABC):
    """A source that changes, and what is done to the dataflow meanwhile."""

    def __init__(self, feed: Feed, random: Random) -> None:
        self.feed, self.random, self.told = feed, random, list[str]()

    @property
    @abstractmethod
    def wanted(self) -> list[tuple[int, int]]:
        """Id and value of all rows of the source that are due, sorted."""

    @property
    @abstractmethod
    def now(self) -> datetime:
        """The clock."""

    @abstractmethod
    def arrive(self) -> None:
        """Something new."""

    @abstractmethod
    def correct(self) -> None:
        """A value changes that may be loaded."""

    @abstractmethod
    def live(self) -> None:
        """A run of what is due."""

    @abstractmethod
    def asked(self, first: int, last: int, table: str | None = None) -> ReplayOptions:
        """Some days."""

    def some_days(self, table: str | None = None) -> ReplayOptions:
        first = self.random.randint(1, DAYS - 1)
        return self.asked(first, self.random.randint(first + 1, DAYS), table)

    def dying(self) -> dict[str, Any]:
        """A process that may die at a step."""
        step = self.random.choice(STEPS)
        return {"observer": dies_after(step)} if step else {}

    def in_place(self) -> None:
        """A replay of some days in place, by a process that may die; the same days go on where they have stopped."""
        self.replay(self.some_days(), self.dying())

    def replay(self, asked: ReplayOptions, how: dict[str, Any]) -> None:
        begin = replay_in_place if asked.table is None else replay_isolated
        with suppress(KeyboardInterrupt):
            done = begin(self.feed.platform, self.feed.dataflow, asked, self.now, **how)
            assert done.outcome.error is None, (self.told, done.outcome.error)

    def aside(self) -> None:
        """A replay into a table that is free, or one that goes on; by a process that may die."""
        table = self.random.choice(TABLES)
        standing = {each.table: each for each in stored_replays(self.feed.platform.log, self.feed.name)}
        asked = self.some_days(table)
        if table in standing:
            asked = ReplayOptions(standing[table].request["start"], standing[table].request["end"], table)
        with suppress(NeedsDecision):  # a promote, or a drop, of it was begun
            self.replay(asked, self.dying())

    def end(self) -> None:
        """One of the replays is promoted or dropped, by a process that may die."""
        asides = stored_replays(self.feed.platform.log, self.feed.name)
        if asides:
            act: Any = promote_replay if self.random.random() < 0.8 else drop_replay
            self.act(act, self.random.choice(asides).table, self.dying())

    def act(self, act: Any, table: str, how: dict[str, Any]) -> None:
        with suppress(NeedsDecision, KeyboardInterrupt):
            act(self.feed.platform, self.feed.dataflow, table, "r", self.now, **how)

    def care(self) -> None:
        """The table is cared for."""
        care_for(self.feed)

    def go(self) -> None:
        """Something happens."""
        word = self.random.choice(WORDS)
        self.told.append(word)
        getattr(self, word)()
        ids = self.feed.ids
        assert len(ids) == len(set(ids)), self.told

    def settle(self) -> None:
        """What is left aside goes, and all is read again."""
        for act in (promote_replay, drop_replay):
            for aside in stored_replays(self.feed.platform.log, self.feed.name):
                self.act(act, aside.table, {})
        self.live()
        if self.random.random() < 0.5:
            self.replay(self.asked(0, DAYS + 1), {})
            self.replay(self.asked(0, DAYS + 1), {})  # the first may have gone on with one that had died
        else:
            self.replay(self.asked(0, DAYS + 1, TABLES[0]), {})
            promote_replay(self.feed.platform, self.feed.dataflow, TABLES[0], "r", self.now)
        self.live()
        assert self.feed.rows("id", "value") == self.wanted, self.told
        assert not list((self.feed.folder / "lake").glob("aside/*"))


class Files(Schedule):
    """A file of two rows comes to any day's folder, and its values change."""

    now = NOW

    def __init__(self, folder: Path, engine: SparkEngine, target: dict[str, Any], random: Random) -> None:
        definition = {
            "source": {"schema": "id long, value long"},
            "watermark": {"type": "path", "tracking": "set", "checkpoint": {"interval_files": 2}},
            "target": target,
        }
        super().__init__(Feed(folder, engine, definition), random)
        self.files: dict[str, list[tuple[int, int]]] = {}
        self.arrive()
        self.arrive()
        self.live()

    @property
    def wanted(self) -> list[tuple[int, int]]:
        return sorted(row for rows in self.files.values() for row in rows)

    def arrive(self) -> None:
        number = 2 * len(self.files)
        path = f"2026-01-0{self.random.randint(1, DAYS)}/{number}.ndjson"
        self.put(path, [(number, 0), (number + 1, 0)])

    def correct(self) -> None:
        path = self.random.choice(list(self.files))
        self.put(path, [(number, value + 1) for number, value in self.files[path]])

    def put(self, path: str, rows: list[tuple[int, int]]) -> None:
        self.files[path] = rows
        self.feed.put(path, *({"id": number, "value": value} for number, value in rows))

    def live(self) -> None:
        self.feed.load()

    def asked(self, first: int, last: int, table: str | None = None) -> ReplayOptions:
        return ReplayOptions(f"2026-01-{first:02}", f"2026-01-{last:02}", table, replace=table is None)


class Windows(Schedule):
    """Rows of two units come to any day that has begun, and change, or go; each run is on the next day."""

    def __init__(self, folder: Path, engine: SparkEngine, target: dict[str, Any], random: Random) -> None:
        definition = watermark(partial=False, checkpoint={"interval_windows": 2})
        self.made = on_lake(folder, engine, watermark=definition, target=target)
        super().__init__(self.made.feed, random)
        self.day, self.number = 3, 0
        self.arrive()
        self.arrive()
        self.live()

    @property
    def now(self) -> datetime:
        return instant("2020-01-01") + timedelta(days=self.day - 1)

    @property
    def wanted(self) -> list[tuple[int, int]]:
        return sorted((row["id"], row["value"]) for row in self.made.table.rows.values())

    def arrive(self) -> None:
        self.number += 1
        day = self.random.randint(1, min(self.day, DAYS) - 1)
        self.made.table.put(event(self.number, f"2020-01-0{day}T01:00", self.random.choice("ab")))

    def correct(self) -> None:
        rows = self.made.table.rows
        number = self.random.choice(list(rows))
        if self.random.random() < 0.3 and len(rows) > 1:
            self.made.table.drop(number)
        else:
            self.made.table.put({**rows[number], "value": rows[number]["value"] + 1})

    def live(self) -> None:
        self.day = min(self.day + 1, DAYS + 1)
        self.made.run(self.now.isoformat())

    def asked(self, first: int, last: int, table: str | None = None) -> ReplayOptions:
        return ReplayOptions(
            f"2020-01-{max(first, 1):02}", f"2020-01-{last:02}", table, replace=table is None
        )


@pytest.mark.parametrize("form", ["delta", *(pytest.param(form, marks=pytest.mark.full) for form in ("iceberg", "parquet"))])  # fmt: skip
@pytest.mark.parametrize("kind", [Files, Windows])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 7))])
def test_after_any_schedule_the_table_holds_the_rows_of_the_source(
    tmp_path: Path, engine: SparkEngine, kind: type[Files | Windows], form: str, seed: int
) -> None:
    target = {"load": "append"} if kind is Files else {"load": "merge_overwrite", "replace_by_watermark": True}  # fmt: skip
    schedule = kind(tmp_path, engine, {"format": form, **target}, Random(f"{kind.__name__} {seed}"))
    for _ in range(LENGTH):
        schedule.go()
    schedule.settle()
