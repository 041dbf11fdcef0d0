"""Makes Delta tables of many commits cheaply: a log of its own over links to one data file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

SCHEMA = pa.schema([("id", pa.int64()), ("at", pa.timestamp("us", "UTC")), ("note", pa.string())])
TAIL = 5
"""Commits behind the newest checkpoint."""
_START = 1_577_836_800_000
"""Time of the first commit, in epoch milliseconds; each next one is a minute later."""
_FILES_PER_FOLDER = 1000


def some_rows(first: int, count: int) -> pa.Table:
    """Return rows with consecutive ids."""
    numbers = range(first, first + count)
    times = pa.array([(_START + number) * 1000 for number in numbers], pa.timestamp("us", "UTC"))
    notes = [f"order number {number}" for number in numbers]
    return pa.table([pa.array(numbers, pa.int64()), times, notes], schema=SCHEMA)


def write_long_log(folder: Path, commits: int, rows: int) -> None:
    """Write a table of many commits that each append one file of the same rows.

    A checkpoint lies ``TAIL`` commits before the newest one, and every commit is still in the log.

    Args:
        folder: folder of the table.
        commits: number of commits.
        rows: number of all rows; each commit appends an equal part.
    """
    write_deltalake(str(folder), some_rows(0, rows // commits))
    log = folder / "_delta_log"
    actions = [json.loads(line) for line in (log / _name(0)).read_text().splitlines()]
    (add,) = (action["add"] for action in actions if "add" in action)
    for version in range(1, commits - TAIL):
        _append(folder, version, add)
    DeltaTable(str(folder)).create_checkpoint()
    for version in range(commits - TAIL, commits):
        _append(folder, version, add)


def _append(folder: Path, version: int, add: dict[str, Any]) -> None:
    path = f"part-{version // _FILES_PER_FOLDER:05d}/{version:010d}.parquet"
    (folder / path).parent.mkdir(exist_ok=True)
    os.link(folder / add["path"], folder / path)
    time = _START + version * 60_000
    info = {
        "timestamp": time,
        "operation": "WRITE",
        "operationParameters": {"mode": "Append", "partitionBy": "[]"},
        "engineInfo": "benchmark",
        "txnId": f"{version:032x}",
    }
    actions = ({"commitInfo": info}, {"add": add | {"path": path, "modificationTime": time}})
    text = "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)
    (folder / "_delta_log" / _name(version)).write_text(text)


def _name(version: int) -> str:
    return f"{version:020d}.json"
