"""Sums of a window that grows: they are those of the whole window, and an error over a part names what cures it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from partitions.errors import TargetError
from resources.spark.engine import SparkEngine
from tests.support.window_feed import Windows, event, on_lake, watermark

REPLACED = {"load": "merge_overwrite", "replace_by_watermark": True}


def sums(folder: Path, engine: SparkEngine, target: dict[str, Any], **how: Any) -> Windows:
    """Sums by day, of two rows of one day."""
    made = on_lake(
        folder,
        engine,
        watermark=watermark("2020-01-01", units=None, **how),
        source={"window_column": "at"},
        target=target,
        sql="SELECT date_trunc('day', at) AS at, count(*) AS id, sum(value) AS value FROM input GROUP BY 1",
    )
    made.table.put(event(1, "2020-01-01T01:00", value=10), event(2, "2020-01-01T11:00", value=20))
    made.run("2020-01-01T10:00")
    assert made.rows == [(1, 10)]
    return made


@pytest.mark.parametrize("load", [{"load": "append"}, pytest.param(REPLACED, marks=pytest.mark.full)])
def test_sums_of_a_growing_window_are_those_of_the_whole_window(
    tmp_path: Path, engine: SparkEngine, load: dict[str, Any]
) -> None:
    made = sums(tmp_path, engine, load, reread="whole")
    made.table.put(event(3, "2020-01-02T01:00", value=40))
    made.run("2020-01-02T02:00")
    assert made.rows == [(1, 40), (2, 30)]
    made.run("2020-01-03T01:00")
    assert made.rows == [(1, 40), (2, 30)]


@pytest.mark.parametrize(
    "remedy", [{"partial": False}, pytest.param({"reread": "whole"}, marks=pytest.mark.full)]
)
def test_the_remedy_for_rows_outside_of_a_part_cures_it(
    tmp_path: Path, engine: SparkEngine, remedy: dict[str, Any]
) -> None:
    made = sums(tmp_path, engine, REPLACED, reread="rest")
    error = made.fail("2020-01-01T12:00")
    assert isinstance(error, TargetError)
    assert (
        "If they are sums of a window that was read in parts, set watermark.reread: whole, or watermark.partial: false,"
        " and run again."
    ) in error.message
    made.feed.define(watermark=remedy)
    made.run("2020-01-02T01:00")
    assert made.rows == [(2, 30)]
