"""After a delete nothing brings a row back: random histories, and each kind of watermark (docs/how-to/deleting-and-keeping.md)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.integration.test_shared_tables import OTHER, _pair
from tests.integration.test_structured_streams import Stream
from tests.support.columns import on_lake as columns_on_lake
from tests.support.crash_runner import crash
from tests.support.feed import Feed
from tests.support.window_feed import event, instant, watermark
from tests.support.window_feed import on_lake as windows_on_lake


def delete(feed: Feed, where: str) -> None:
    feed.command("delete", feed.name, "--where", where, "--reason", "asked for", "--yes")


class History:
    """A dataflow whose every file is there, and the ids that were deleted."""

    def __init__(self, feed: Feed, seed: int) -> None:
        self.feed, self.random = feed, Random(seed)
        self.ids: list[int] = []
        self.deleted: set[int] = set()
        self.actions: list[str] = []
        self.arrive()
        self.settle()

    def arrive(self, prefix: str = "m") -> None:
        """A file comes with a new id, and with one that may be deleted."""
        new = len(self.ids) + 1
        again = self.random.choice([*self.deleted, new + 1000])
        self.feed.put(f"{prefix}{new:03}.ndjson", new, again)
        self.ids += [new, again]

    def late(self) -> None:
        self.arrive("a")

    def delete(self) -> None:
        id_ = self.random.choice(self.ids)
        self.deleted.add(id_)
        delete(self.feed, f"id = {id_}")

    def rewind(self) -> None:
        numbers = [0, *(entry.number for entry in self.feed.entries if entry.why == "run")]
        self.feed.decide("rewind", "--to", str(self.random.choice(numbers)), "--replace")

    def reset(self) -> None:
        self.feed.decide("reset", "--replace")

    def adopt(self) -> None:
        shutil.rmtree(self.feed.state)
        self.feed.decide("adopt")

    def restore(self) -> None:
        export = self.feed.folder / "export.jsonl"
        export.write_text(self.feed.cli("state", "export", self.feed.name).out)
        shutil.rmtree(self.feed.state)
        self.feed.decide("import", str(export))

    def die(self) -> None:
        self.arrive()
        crash(self.feed, self.random.choice([Step.INTENT_PUT, Step.WRITTEN]))

    def settle(self) -> None:
        """Run and sweep until nothing is left to do."""
        self.feed.load()
        self.feed.command("late", self.feed.name)
        self.feed.load()

    def step(self) -> None:
        act: Callable[[], None] = self.random.choice(
            [self.arrive, self.late, self.delete, self.rewind, self.reset, self.adopt, self.restore, self.die]
        )
        self.actions.append(act.__name__)
        act()
        if self.random.random() < 0.7:
            self.settle()

    def check(self) -> None:
        self.settle()
        expected = sorted(id_ for id_ in self.ids if id_ not in self.deleted)
        assert self.feed.ids == expected, self.actions
        assert self.feed.entries[-1].total_rows == len(expected), self.actions


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=() if seed == 1 else pytest.mark.full) for seed in range(1, 13)]
)
def test_a_random_history_brings_no_row_back(tmp_path: Path, engine: SparkEngine, seed: int) -> None:
    feed = Feed(tmp_path / "project", engine, {"watermark": {"checkpoint": {"interval_files": 2}}})
    history = History(feed, seed)
    history.delete()
    for _ in range(3 if seed == 1 else 10):
        history.step()
    history.check()


@pytest.mark.full
def test_a_forced_window_withholds_what_was_deleted(tmp_path: Path, engine: SparkEngine) -> None:
    made = windows_on_lake(
        tmp_path / "project",
        engine,
        watermark=watermark("2026-05-31", "2026-06-02"),
        target={"load": "append"},
    )
    made.table.add(event(1, "2026-05-31", "a", 7), event(2, "2026-05-31", "b", 8))
    made.run("2026-06-02")
    delete(made.feed, "value = 7")
    forced = ("run", made.feed.name, "--force", "2026-05-31..2026-06-01", "--now", "2026-06-02T00:00:00Z")
    answer = made.feed.command(*forced)
    assert (made.rows, answer.json[0]["withheld"]) == ([(2, 8)], 1)


@pytest.mark.full
def test_a_replay_in_place_withholds_what_was_deleted(tmp_path: Path, engine: SparkEngine) -> None:
    flow, source = columns_on_lake(tmp_path / "project", engine)
    source.put(*({"id": day, "at": instant(f"2026-05-0{day}"), "value": day} for day in (1, 2, 3)))
    flow.run()
    delete(flow.feed, "value = 2")
    flow.feed.command("replay", flow.feed.name, "--start", "2026-05-01", "--end", "2026-05-05", "--replace")
    assert flow.feed.rows("id") == [(1,), (3,)]


@pytest.mark.full
def test_only_rows_of_the_dataflow_go_from_a_shared_table(tmp_path: Path, engine: SparkEngine) -> None:
    flow, other = _pair(tmp_path, engine)
    for feed in (flow, other):
        feed.put("1.ndjson", 1, 2)
        feed.load()
    delete(flow, "id = 2")
    assert flow.rows("_dataflow", "id") == [("flow", 1), (OTHER, 1), (OTHER, 2)]
    other.put("2.ndjson", 2)
    other.load()
    assert [feed.load().status for feed in (flow, other)] == ["nothing", "nothing"]
    assert flow.rows("_dataflow", "id") == [("flow", 1), (OTHER, 1), (OTHER, 2), (OTHER, 2)]


@pytest.mark.full
def test_rows_that_lack_the_column_are_tested_all_the_same(tmp_path: Path, engine: SparkEngine) -> None:
    feed = Feed(
        tmp_path / "project",
        engine,
        {"source": {"schema": "id long, who long"}, "target": {"schema_mode": "merge"}},
    )
    feed.put("1.ndjson", {"id": 1, "who": 7}, {"id": 2, "who": 8})
    feed.load()
    delete(feed, "who = 7")
    feed.define(source={"schema": "id long"})
    feed.put("2.ndjson", 3)
    feed.load()
    assert feed.rows("id", "who") == [(2, 8), (3, None)]


@pytest.mark.full
def test_a_stream_on_sparks_engine_withholds_what_was_deleted(
    tmp_path: Path, spark_engine: SparkEngine
) -> None:
    stream = Stream.of(tmp_path / "project", spark_engine)
    stream.add("1.ndjson", 10, 11, 12, 13, 14, 15, 10, 25)
    stream.load()
    assert stream.counts() == [(10, 5)]
    delete(stream, "n = 5")
    delete(stream, "window_start = timestamp '2026-01-01 00:00:15'")
    stream.add("2.ndjson", 40)
    assert stream.load().withheld == 1
    assert stream.counts() == [(25, 1)]
