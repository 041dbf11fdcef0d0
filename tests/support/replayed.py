"""Dataflows whose source changes after the load, for tests of replays.

They are files of five days, and windows of five days.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resources.spark.engine import SparkEngine
from tests.support.feed import Answer, Feed
from tests.support.window_feed import Windows, event, on_lake, watermark

UPSERT: Mapping[str, Any] = {"load": "merge_upsert", "merge_keys": ["id"]}
OVERWRITE = {"load": "merge_overwrite", "merge_keys": ["id"]}
DAYS = ("--start", "2026-01-02", "--end", "2026-01-04")
BEFORE = [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)]
AFTER = [(1, 0), (2, 1), (3, 0), (4, 0), (5, 0), (20, 0)]
"""Of the files of ``DAYS`` the newest: of the others what was loaded first, also of one that is gone."""

WINDOWS = ("--start", "2020-01-02", "--end", "2020-01-04", "--now", "2020-01-08")
SWAPPED = [(1, 0), (2, 1), (3, 1), (4, 0), (5, 0), (11, 0), (12, 0), (14, 0), (15, 0)]
"""Of the windows of ``WINDOWS`` the newest rows, of the others what was loaded first."""


def put(feed: Feed, day: int, number: int, value: int = 0, key: int | None = None) -> str:
    """Put a file of one row into the folder of a day; by default its number is the row's key."""
    return feed.put(f"2026-01-0{day}/{number}.ndjson", {"id": key or number, "value": value})


Settings = tuple[dict[str, Any], dict[str, str]]
"""Keys of platform.yaml, and the variables that they name."""


def changed_files(folder: Path, engine: SparkEngine, settings: Settings = ({}, {}), **target: Any) -> Feed:
    """Load a file of each of five days, one a slice; then change some."""
    watermark = {"type": "path", "checkpoint": {"interval_files": 1}}
    definition = {"source": {"schema": "id long, value long"}, "watermark": watermark}
    late = {"late_files": "alert"} if target.get("load") == "merge_overwrite" else {}
    feed = Feed(folder, engine, {**definition, "target": {"load": "append", **target}, **late}, *settings)
    for day in range(1, 6):
        put(feed, day, day)
    feed.load()
    put(feed, 1, 1, 1)  # out of the range
    put(feed, 2, 2, 1)
    put(feed, 2, 20)  # late
    (feed.landing / "2026-01-03" / "3.ndjson").unlink()
    put(feed, 4, 4, 1)  # the end is no part of it
    return feed


def changed_windows(
    folder: Path, engine: SparkEngine, target: dict[str, Any], settings: Settings = ({}, {}), **more: Any
) -> Windows:
    """Load five days of two units; then change each value of one unit and drop a row of the other."""
    windows = on_lake(folder / "project", engine, watermark=watermark(**more), target=target)
    if settings[0]:
        windows = Windows(
            Feed(windows.feed.folder, engine, windows.feed.definition, *settings), windows.table
        )
    for day in range(1, 6):
        windows.table.put(event(day, f"2020-01-0{day}", "a"), event(10 + day, f"2020-01-0{day}", "b"))
    for _ in range(3):
        windows.run("2020-01-08")
    windows.table.put(*(event(day, f"2020-01-0{day}", "a", value=1) for day in range(1, 6)))
    windows.table.drop(13)
    return windows


def statuses(answer: Answer) -> list[tuple[str, int]]:
    """Return status and rows of each chunk."""
    return [(chunk["status"], chunk["rows"]) for chunk in answer.json[0]["chunks"]]
