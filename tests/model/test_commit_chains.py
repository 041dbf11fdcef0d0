"""Chains by commits: after each run each hop equals what its load makes of the table above, whatever happened there.

What is modelled: a table that others write (deltalake, Spark, pyiceberg: append, update, delete, merge, overwrite, compact, restore, vacuum,
expiry), or a dataflow of its own (appends, late files, loads by keys with deletes, scd2, overwrites, replays in place, promotes, deletes for
good, maintenance, deaths); a hop by keys, a second hop behind it, a hop of versions (scd2), and a table that keeps every change. Each run may die at
any of its steps. After each run its table is compared with the rows of the version that its state names. All is real: Spark, the tables, the log.
"""

from __future__ import annotations

import shutil
from collections import Counter
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from partitions.errors import StrandlineError
from resources.spark.engine import SparkEngine
from tests.support.commit_worlds import ABOVE, STEPS, Rows, TableOfDataflow, TableOfOthers, Versions
from tests.support.commits import TABLE, copying, replayed
from tests.support.feed import Feed
from tests.support.steps import Killed, killed_at

_SHORT, _LONG = 5, 16
_CHANGES = ("_change_type", "_commit_version", "_commit_timestamp")


class Chain:
    """A table, and the dataflows behind it."""

    def __init__(self, folder: Path, engine: SparkEngine, kind: str, writer: str, seed: int) -> None:
        """Write the project, and the table's first rows."""
        self.random = random = Random(f"{kind} {writer} {seed}")
        project = folder / "project"
        self.above = ABOVE[writer](project, engine, kind, random)
        keyed = {"load": "merge_upsert", "merge_keys": list(self.above.keys), "format": kind}
        limits: dict[str, Any] = {"checkpoint": {"commits": random.choice([1, 2, 50])}}
        if random.random() < 0.3:
            limits = {"checkpoint": {"commits": 2, "files": 1}, "max_slices": 2}
        start = {"from": random.choice(["snapshot", "snapshot", "earliest"])}
        second = copying(source={"table": "silver/copy"}, target=keyed | {"table": "gold/copy"})
        kept = copying(
            source=start | {"on_change": "keep"},
            target={"table": "silver/kept", "format": kind},
            watermark=limits,
        )
        self.copy = Feed(project, engine, copying(source=start, target=keyed, watermark=limits), name="copy")
        self.second = Feed(project, engine, second, name="second")
        self.kept = Feed(project, engine, kept, name="kept")
        self.versions = (
            self._versions_of(project, engine, kind, limits)
            if isinstance(self.above, TableOfOthers)
            else None
        )
        columns = self.above.columns
        self.rows_above = Versions(project / "lake" / TABLE, columns)
        self.rows_of_copy = Versions(self.copy.table, columns)
        self.above.begin()
        if isinstance(self.above, TableOfDataflow):
            self.above.forget_soon()
        self.note()

    def _versions_of(self, project: Path, engine: SparkEngine, kind: str, limits: dict[str, Any]) -> Feed:
        assert isinstance(self.above, TableOfOthers)
        if kind == "iceberg":
            self.above.never_restores()
        target = {
            "load": "scd2",
            "merge_keys": ["id"],
            "effective_column": "at",
            "table": "silver/versions",
            "format": kind,
        }
        sql = "SELECT *, _commit_timestamp AS at FROM input"
        return Feed(project, engine, copying(target=target, watermark=limits, sql=sql), name="versions")

    @property
    def feeds(self) -> list[Feed]:
        """All dataflows, in their order."""
        return [self.copy, self.second, self.kept, *([self.versions] if self.versions else [])]

    def note(self) -> None:
        """Note the rows of new versions, before anybody removes their files."""
        self.rows_above.note()
        self.rows_of_copy.note()

    def act(self) -> str:
        """Change the table, or run a dataflow that may die; return what was done."""
        what = self.random.choice(["act", "act", "act", "run", "run", "die"])
        if what == "act":
            acts = self.above.acts()
            name = self.random.choice(list(acts))
            acts[name]()
            self.note()
            return name
        feed = self.random.choice(self.feeds)
        if feed is self.second and not self.copy.entries:
            return "nothing"
        if what == "run":
            self.run(feed)
            return f"run {feed.name}"
        step = self.random.choice(STEPS)
        with suppress(Killed):
            error = feed.run(killed_at(step, self.random.randint(1, 2))).error
            assert error is None or self._is_of_cleaning(feed, error), error
        self.note()
        return f"die {feed.name} {step}"

    def _is_of_cleaning(self, feed: Feed, error: StrandlineError) -> bool:
        """Whether files are gone: others removed some, or a vacuum that waits for no dataflow that has never run."""
        return error.code == "versions_gone" and (self.above.is_cleaned or not feed.entries)

    def run(self, feed: Feed) -> None:
        """Load a hop, and compare it with the table above. What others have removed is loaded anew."""
        error = feed.run().error
        if error is not None:
            if not self._is_of_cleaning(feed, error):
                raise error
            feed.define(source={"from": "snapshot"})
            feed.decide("reset", "--replace")
            feed.load()
        self.note()
        self.check(feed)

    def check(self, feed: Feed) -> None:
        """Compare a hop with the rows of the version that its state names, unless its first read goes on."""
        watermark = feed.watermark
        if "snapshot" in watermark:
            return
        position = watermark["offset"]
        expected = (self.rows_of_copy if feed is self.second else self.rows_above).at(position)
        if feed is self.kept:
            assert replayed(feed.rows(*self.above.columns, *_CHANGES)) == expected, feed.name
        elif feed is self.versions:
            self._check_versions(feed, position, expected)
        else:
            assert feed.rows(*self.above.columns) == expected, feed.name

    def _check_versions(self, feed: Feed, position: dict[str, Any], expected: Rows) -> None:
        """Compare versions with those that each commit since the first read makes."""
        rows = feed.rows("id", "v", "_is_current")
        assert [row[:2] for row in rows if row[2]] == expected
        states = [entry.state() for entry in feed.entries]
        resets = [number for number, state in enumerate(states) if "offset" not in state]
        first = states[resets[-1] + 1 if resets else 0]["offset"]
        versions: Counter[tuple[Any, ...]] = Counter((*row, True) for row in expected)
        of_commits = self.rows_above.between(first, position)
        for before, after in pairwise(of_commits):
            versions.update((*row, False) for row in before if row not in after)
        assert Counter(rows) == versions

    def finish(self) -> None:
        """Load all hops to the end; each has what the table has."""
        if not isinstance(self.above, TableOfOthers):
            self.above.acts()["load"]()
            self.note()
        for feed in self.feeds:
            for _ in range(30):
                before = feed.watermark
                self.run(feed)
                if feed.watermark == before:
                    break
            assert "snapshot" not in feed.watermark
        for feed in (self.copy, self.second):
            assert feed.rows(*self.above.columns) == self.rows_above.newest()


def play(folder: Path, engine: SparkEngine, kind: str, writer: str, seed: int, length: int) -> None:
    """Play a random history; an assertion names what was done."""
    done: list[str] = []
    try:
        chain = Chain(folder, engine, kind, writer, seed)
        done.extend(chain.act() for _ in range(length))
        chain.finish()
    except BaseException as error:
        error.add_note(f"{kind}, {writer}, seed {seed}: {', '.join(done)}")
        raise


@pytest.mark.parametrize(
    ("kind", "writer", "seed"), [("delta", "others", 1), ("delta", "keyed", 1), ("iceberg", "others", 1)]
)
def test_each_hop_equals_the_table_above_it(
    tmp_path: Path, engine: SparkEngine, kind: str, writer: str, seed: int
) -> None:
    play(tmp_path, engine, kind, writer, seed, _SHORT)


@pytest.mark.full
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("writer", ABOVE)
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
@given(seed=st.integers(0, 2**32))
@settings(max_examples=3, phases=[Phase.generate], suppress_health_check=list(HealthCheck), deadline=None)
def test_each_hop_equals_the_table_above_it_in_longer_histories(
    engine: SparkEngine, kind: str, writer: str, seed: int
) -> None:
    folder = Path(mkdtemp())
    try:
        play(folder, engine, kind, writer, seed, _LONG)
    finally:
        shutil.rmtree(folder)
