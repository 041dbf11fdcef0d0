"""Any schedule of arrivals, corrections, live runs, replays in place and aside, promotes, drops, care of the table and deaths: each key once, and in the end the source's rows."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from partitions.errors import NeedsDecision
from resources.outcome import Step
from resources.replay.in_place import replay_in_place
from resources.replay.isolated.dropping import drop_replay
from resources.replay.isolated.promoting import promote_replay
from resources.replay.isolated.standing import stored_replays
from resources.replay.options import ReplayOptions
from resources.spark.engine import SparkEngine
from tests.support.asides import care_for, stand_aside
from tests.support.columns import Columns, at, on_lake
from tests.support.feed import dies_after
from tests.support.window_feed import LakeTable, instant

NOW = instant("2026-06-01")
LOADS: dict[str, dict[str, Any]] = {
    "append": {"load": "append"},
    "upsert": {"load": "merge_upsert", "merge_keys": ["id"]},
}
STEPS = (Step.INTENT_PUT, Step.WRITTEN, Step.VERIFIED, Step.APPENDED, Step.TABLE_REMOVED, None)
TABLES = ("aside/one", "aside/two")
LENGTH = 14


class Schedule:
    """A source that changes, and what is done to the dataflow meanwhile. A row's time never changes; the day of a new one may lie below the watermark."""

    def __init__(self, flow: Columns, source: LakeTable, random: Random) -> None:
        self.flow, self.source, self.random = flow, source, random
        self.numbers, self.told = 0, list[str]()
        self.arrive(3)
        flow.run()

    def arrive(self, count: int = 1) -> None:
        """New rows, some of them late."""
        for _ in range(count):
            self.numbers += 1
            day = self.random.randint(1, 27)
            self.source.put({"id": self.numbers, "at": at(day, self.numbers), "value": 0})

    def correct(self) -> None:
        """A row of another value at the same time, or one that is gone."""
        if not self.source.rows:
            return
        number = self.random.choice(list(self.source.rows))
        if self.random.random() < 0.3 and len(self.source.rows) > 1:
            self.source.drop(number)
        else:
            row = self.source.rows[number]
            self.source.put({**row, "value": row["value"] + 1})

    def live(self) -> None:
        """A run of what is due. That the newest rows are gone at the source is accepted."""
        feed = self.flow.feed
        error = feed.run(now=NOW).error
        if error is not None and error.code == "source_behind":
            feed.decide("accept")
            error = feed.run(now=NOW).error
        assert error is None, (self.told, error)

    def replay(self) -> None:
        """A replay of some days, if a table is free."""
        feed = self.flow.feed
        taken = [aside.table for aside in stored_replays(feed.platform.log, feed.name)]
        free = [table for table in TABLES if table not in taken]
        if free:
            first = self.random.randint(1, 20)
            last = self.random.randint(first + 1, 28)
            stand_aside(feed, at(first), at(last), now=NOW, table=free[0])

    def again(self) -> None:
        """A replay of some days in place, by a process that may die; the same days go on where they have stopped."""
        first = self.random.choice((1, 8, 15))
        self.in_place(first, first + self.random.choice((7, 14)), self.random.choice(STEPS))

    def in_place(self, first: int, last: int, step: Step | None = None) -> None:
        """A replay of days in place."""
        feed = self.flow.feed
        asked = ReplayOptions(f"2026-01-{first:02}", f"2026-01-{last:02}", every="3 days", replace=True)
        how: dict[str, Any] = {"observer": dies_after(step)} if step else {}
        with suppress(KeyboardInterrupt):
            done = replay_in_place(feed.platform, feed.dataflow, asked, NOW, **how)
            assert done.outcome.error is None, self.told

    def end(self) -> None:
        """One of the replays is promoted or dropped, by a process that may die."""
        feed = self.flow.feed
        asides = stored_replays(feed.platform.log, feed.name)
        if not asides:
            return
        table, step = self.random.choice(asides).table, self.random.choice(STEPS)
        end: Any = promote_replay if self.random.random() < 0.8 else drop_replay
        how = {"observer": dies_after(step)} if step else {}
        with suppress(NeedsDecision, KeyboardInterrupt):
            end(feed.platform, feed.dataflow, table, "r", NOW, **how)

    def care(self) -> None:
        """The table is cared for."""
        care_for(self.flow.feed)

    def go(self) -> None:
        """Something happens."""
        words = (
            "arrive",
            "arrive",
            "correct",
            "live",
            "live",
            "again",
            "again",
            "replay",
            "end",
            "end",
            "care",
        )
        word = self.random.choice(words)
        self.told.append(word)
        getattr(self, word)()
        ids = self.flow.ids
        assert len(ids) == len(set(ids)), self.told

    def settle(self) -> None:
        """What is left aside goes, and all is read again and promoted."""
        feed = self.flow.feed
        for aside in stored_replays(feed.platform.log, feed.name):
            with suppress(NeedsDecision):
                promote_replay(feed.platform, feed.dataflow, aside.table, "r", NOW)
        for aside in stored_replays(feed.platform.log, feed.name):
            drop_replay(feed.platform, feed.dataflow, aside.table, "r", NOW)
        self.live()
        if self.random.random() < 0.5:
            self.in_place(1, 30)
        else:
            stand_aside(feed, at(1), at(29), now=NOW, table=TABLES[0])
            promote_replay(feed.platform, feed.dataflow, TABLES[0], "r", NOW)
        self.live()
        wanted = sorted((row["id"], row["value"]) for row in self.source.rows.values())
        assert feed.rows("id", "value") == wanted, self.told
        assert not list((feed.folder / "lake").glob("aside/*"))


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 9))])
def test_any_schedule_ends_with_all_rows(tmp_path: Path, engine: SparkEngine, load: str, seed: int) -> None:
    flow, source = on_lake(tmp_path, engine, target=LOADS[load])
    schedule = Schedule(flow, source, Random(f"{load} {seed}"))
    for _ in range(LENGTH):
        schedule.go()
    schedule.settle()
