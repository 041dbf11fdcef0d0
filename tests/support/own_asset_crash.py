"""Runs an asset of a user's own in a process that kills itself: before its write, in it, or right after its commit.

A write on a Connect server goes on when its client is killed.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from resources.dagster import own_tables
from resources.spark.engine import SparkEngine
from tests.support.environment import clean_environment
from tests.support.forks import forked
from tests.support.own_assets import OwnProject, own_asset

POINTS = ("before", "writing", "after")


def crash(project: OwnProject, engine: SparkEngine, point: str, *numbers: int) -> None:
    """Run ``silver/totals``, which returns these numbers, in a process that dies at a point."""
    environment = clean_environment() | {"STRANDLINE_SPARK_REMOTE": str(engine.remote)}
    ended = forked(__name__, [str(project.folder), point, ",".join(map(str, numbers))], environment)
    assert ended.code == -signal.SIGKILL, ended.output


def main(folder: str, point: str, numbers: str) -> None:
    """Run until the point."""

    def die(*_: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)

    def die_while_writing() -> None:
        lake = Path(folder) / "lake"
        known = set(lake.rglob("*.parquet"))
        while not {file for file in lake.rglob("*.parquet") if "_staging/silver" not in str(file)} - known:
            time.sleep(0.01)
        die()

    if point == "before":
        vars(own_tables)["new_id"] = die
    elif point == "after":
        setattr(own_tables.OwnTable, "_commit_of", die)  # noqa: B010 - mypy would compare the two
    else:
        threading.Thread(target=die_while_writing, daemon=True).start()
    rows = pa.table({"id": [int(number) for number in numbers.split(",")]})
    OwnProject.at(Path(folder)).run(own_asset(lambda _: rows))
