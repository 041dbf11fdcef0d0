"""Random histories of a table, sent as change events in any order and more than once, end in the table."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from resources.spark.engine import SparkEngine
from tests.support.debezium import LOST, Row, event, lines
from tests.support.feed import Feed

KEYED = {"merge_keys": ["id"]}
each_format = pytest.mark.parametrize("table_format", ["delta", "iceberg"])


class History:
    """A table of a database and the events of its changes, in the order of its log."""

    def __init__(self, seed: int, *, loses: bool = False) -> None:
        """Start with an empty table; ``loses``: updates may leave out a value that did not change."""
        self._draw, self._loses = random.Random(seed), loses
        self._values, self._lsn = count(), 100
        self.rows: dict[int, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []

    def change(self) -> None:
        """Change a row in one of the ways of a database, or start the connector again."""
        self._lsn += self._draw.randrange(1, 40)
        free = [key for key in range(8) if key not in self.rows]
        key = self._draw.choice([*self.rows]) if self.rows else None
        match self._draw.choice(
            ["insert", "insert", "update", "update", "delete", "key", "again", "snapshot"]
        ):
            case "insert" if free:
                self._create(self._draw.choice(free), {"name": f"n{next(self._values)}", "note": f"t{key}"})
            case "update" if key is not None:
                self.rows[key] |= {"name": f"n{next(self._values)}"}
                shown = {"note": LOST} if self._loses else {}
                self.events.append(event("u", self._lsn, {**self.rows[key], **shown}))
            case "delete" if key is not None:
                self._delete(key)
            case "key" if key is not None and free:
                row = self._delete(key)
                self._create(self._draw.choice(free), row | {"name": f"n{next(self._values)}"})
            case "again":
                self.events += self.events[-self._draw.randrange(1, 6) :]
            case "snapshot":
                self.events += [event("r", self._lsn, dict(row)) for row in self.rows.values()]

    def _create(self, key: int, row: dict[str, Any]) -> None:
        self.rows[key] = {"id": key, "name": row["name"], "note": row["note"]}
        self.events.append(event("c", self._lsn, dict(self.rows[key])))

    def _delete(self, key: int) -> dict[str, Any]:
        self.events.append(event("d", self._lsn, before={"id": key, "name": None, "note": None}))
        return self.rows.pop(key)

    def files(self, *, shuffled: bool) -> Iterator[list[Any]]:
        """Yield the events in files of a few lines, with tombstones; ``shuffled``: files in any order."""
        parts, rest = [], list(self.events)
        while rest:
            size = self._draw.randrange(1, 9)
            parts.append(rest[:size])
            rest = rest[size:]
        if shuffled:
            self._draw.shuffle(parts)
        parts += self._draw.sample(parts, 2)  # delivered twice, under another name
        for part in parts:
            yield [line for each in part for line in ([each, None] if each["op"] == "d" else [each])]


def load(feed: Feed, history: History, seed: int, *, shuffled: bool) -> None:
    draw = random.Random(seed)
    for number, part in enumerate(history.files(shuffled=shuffled)):
        feed.put_text(f"{number:03}.json", lines(part))
        if draw.random() < 0.4:
            feed.load()
    feed.load()


def feed_of(folder: Path, engine: SparkEngine, table_format: str, target: Row) -> Feed:
    files = {"format": "debezium", "schema": "id long, name string, note string"}
    return Feed(folder, engine, {"source": files, "target": {**target, "format": table_format}})


def history_of(seed: int, **options: Any) -> History:
    history = History(seed, **options)
    for _ in range(25):
        history.change()
    return history


seeds = pytest.mark.parametrize(
    "seed", [1, *(pytest.param(seed, marks=pytest.mark.full) for seed in (2, 3, 4, 5, 6))]
)


@seeds
@each_format
def test_an_upsert_ends_in_the_rows_of_the_source(
    tmp_path: Path, engine: SparkEngine, table_format: str, seed: int
) -> None:
    history = history_of(seed)
    feed = feed_of(tmp_path, engine, table_format, {"load": "merge_upsert", **KEYED})
    load(feed, history, seed, shuffled=True)
    assert feed.rows("id", "name", "note") == sorted(tuple(row.values()) for row in history.rows.values())


@pytest.mark.full
@seeds
def test_values_that_were_not_logged_stay(tmp_path: Path, engine: SparkEngine, seed: int) -> None:
    history = history_of(seed, loses=True)
    feed = feed_of(tmp_path, engine, "delta", {"load": "merge_upsert", **KEYED})
    load(feed, history, seed, shuffled=False)
    assert feed.rows("id", "name", "note") == sorted(tuple(row.values()) for row in history.rows.values())


@seeds
@each_format
def test_current_versions_are_the_rows_of_the_source(
    tmp_path: Path, engine: SparkEngine, table_format: str, seed: int
) -> None:
    history = history_of(seed)
    feed = feed_of(tmp_path, engine, table_format, {"load": "scd2", **KEYED})
    load(feed, history, seed, shuffled=True)
    versions = feed.rows("id", "name", "note", "_is_current")
    assert [row[:3] for row in versions if row[3]] == sorted(
        tuple(row.values()) for row in history.rows.values()
    )


@seeds
def test_each_event_is_kept_once(tmp_path: Path, engine: SparkEngine, seed: int) -> None:
    history = history_of(seed)
    feed = feed_of(tmp_path, engine, "delta", {"load": "append"})
    load(feed, history, seed, shuffled=True)
    sent = {json.dumps(each) for each in history.events}
    assert len(feed.rows("id")) == len(sent)
