"""Windows, sessions and over-windows of streams on a real engine: what leaves is what a batch query gives of the rows above the filter."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from pyspark.sql import functions as F

from resources.loop.outcome import Step
from tests.integration.conftest import MakeFeed
from tests.support.steps import Killed, killed_at
from tests.support.streams import Stream, definition, minutes, moment, plainly

pytestmark = pytest.mark.usefixtures("engine")

MakeStream = Callable[..., Stream]

VALUES = {"n": "count(*)", "ids": "sort_array(collect_list(id))"}
TUMBLE = {"type": "aggregate", "window": {"type": "tumble", "size": "PT10M"}, "aggregates": VALUES}
HOP = {
    "type": "aggregate",
    "window": {"type": "hop", "size": "PT10M", "slide": "PT4M"},
    "group_by": ["device"],
    "aggregates": VALUES,
}
SESSION = {
    "type": "aggregate",
    "window": {"type": "session", "gap": "PT3M"},
    "group_by": ["device"],
    "aggregates": VALUES,
}
OVER = {
    "type": "over",
    "partition_by": ["device"],
    "columns": {
        "number": {"fn": "row_number"},
        "place": {"fn": "rank"},
        "dense": {"fn": "dense_rank"},
        "before": {"fn": "lag", "column": "id", "offset": 2},
        "after": {"fn": "lead", "column": "id"},
        "top": {"fn": "max", "column": "id", "frame": [-2, 1]},
        "total": {"fn": "sum", "column": "id", "frame": [-1, 0]},
    },
}
OPERATORS = {"tumble": TUMBLE, "hop": HOP, "session": SESSION, "over": OVER}

_ENDS = "window.start AS window_start, window.end AS window_end"
_LISTED = "count(*) AS n, sort_array(collect_list(id)) AS ids"
_OVER = "OVER (PARTITION BY device ORDER BY ts, id{})"
_BY_TIME = "OVER (PARTITION BY device ORDER BY ts)"
_QUERIES = {
    "tumble": f"SELECT {_ENDS}, {_LISTED} FROM kept GROUP BY window(ts, '10 minutes')",
    "hop": f"SELECT {_ENDS}, device, {_LISTED} FROM kept GROUP BY window(ts, '10 minutes', '4 minutes'), device",
    "session": f"SELECT {_ENDS.replace('window.', 'session_window.')}, device, {_LISTED} FROM kept GROUP BY session_window(ts, '3 minutes'), device",
    "over": f"SELECT id, device, ts, rank() {_BY_TIME} AS place, dense_rank() {_BY_TIME} AS dense"
    + "".join(
        f", {call} {_OVER.format(frame)} AS {name}"
        for name, call, frame in (
            ("number", "row_number()", ""),
            ("before", "lag(id, 2)", ""),
            ("after", "lead(id)", ""),
            ("top", "max(id)", " ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING"),
            ("total", "sum(id)", " ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"),
            ("next_ts", "lead(ts)", ""),
        )
    )
    + " FROM kept",
}
"""The batch query of each."""
_FINAL = {
    "tumble": "window_end <= G",
    "hop": "window_end <= G",
    "session": "window_end < G",
    "over": "next_ts < G",
}
"""Which of its rows are final: a window has ended, a session can take no more, the row that a value looks ahead to is known."""


@pytest.fixture
def make_stream(make_feed: MakeFeed) -> MakeStream:
    def make(operator: dict[str, Any], **watermark: Any) -> Stream:
        declared = {"splits": ["a", "b", "c"], "idle": "stall"} | watermark
        return Stream(make_feed(**definition(operator, **declared)))

    return make


def _batch(stream: Stream, name: str) -> list[dict[str, Any]]:
    """What Spark's batch query gives of all rows above the filter, as far as the global watermark says that it is final."""
    spark, value = stream.feed.engine.session(), stream.feed.watermark["global"]
    aside = {*stream.ids("__late"), *stream.ids("__quarantine")}
    kept = [
        (row.id, row.device, moment(row.at))
        for version in stream.written
        for row in version
        if row.id not in aside
    ]
    spark.createDataFrame(kept, "id long, device string, ts timestamp").createOrReplaceTempView("kept")
    rows = spark.sql(_QUERIES[name]).withColumn("G", F.lit(value)).where(_FINAL[name])
    return _listed(rows.drop("G", "next_ts"))


def _emitted(stream: Stream) -> list[dict[str, Any]]:
    spark = stream.feed.engine.session()
    table = spark.read.format("delta").load(f"file:{stream.feed.folder / 'lake' / 'silver' / 'readings'}")
    return _listed(table.drop("_epoch", "_ingested_at", "_run_id"))


def _listed(rows: Any) -> list[dict[str, Any]]:
    return sorted((row.asDict() for row in rows.collect()), key=lambda row: repr(sorted(row.items())))


def _history(chance: random.Random) -> list[list[tuple[int, str | None, int | None]]]:
    number, versions = 0, []
    for step in range(chance.randint(4, 6)):
        rows: list[tuple[int, str | None, int | None]] = []
        for _ in range(chance.randint(3, 14)):
            number += 1
            device = chance.choice(["a", "b", "c"])
            rows.append((number, device, 12 * step + chance.randint(0, 20)))
        versions.append(rows)
    versions.append([(number + 1 + at, "abc"[at], 90 + at) for at in range(3)])
    return versions


@pytest.mark.parametrize("name", sorted(OPERATORS))
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2, 3))])
def test_what_leaves_equals_the_batch_query_however_epochs_are_cut_and_whoever_dies(
    make_stream: MakeStream, name: str, seed: int
) -> None:
    chance = random.Random(f"{name} {seed}")
    stream = make_stream(OPERATORS[name], checkpoint={"interval_files": chance.choice([1, 2])})
    steps = [Step.INTENT_PUT, Step.SET_ASIDE, Step.SET_ASIDE, Step.WRITTEN, Step.APPENDED]
    for rows in _history(chance):
        stream.append(*rows)
        if chance.random() < 0.5:
            for _ in range(2):
                with suppress(Killed):
                    stream.feed.run(killed_at(chance.choice(steps), chance.randint(1, 3)))
    stream.feed.load()
    expected = plainly(stream.written, 5, ["a", "b", "c"])
    assert stream.ids("__late") == expected.late
    assert minutes(stream.feed.watermark["global"]) == expected.value
    emitted = _emitted(stream)
    assert emitted
    assert emitted == _batch(stream, name)
