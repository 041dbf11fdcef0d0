"""Windows, sessions and over-windows of streams on a real engine: what leaves is what a batch query gives of the rows above the filter."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from pyspark.sql import functions as F

from resources.outcome import Step
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


def batch(stream: Stream, name: str, *, ended: bool = False) -> list[dict[str, Any]]:
    """What Spark's batch query gives of all rows above the filter, as far as the global watermark says that it is final; all of it once input has ended."""
    spark, value = stream.feed.engine.session(), stream.feed.watermark["global"]
    aside = {*stream.ids("__late"), *stream.ids("__quarantine")}
    kept = [
        (row.id, row.device, moment(row.at))
        for version in stream.written
        for row in version
        if row.id not in aside
    ]
    spark.createDataFrame(kept, "id long, device string, ts timestamp").createOrReplaceTempView("kept")
    rows = spark.sql(_QUERIES[name]).withColumn("G", F.lit(value))
    rows = rows if ended else rows.where(_FINAL[name])
    return _listed(rows.drop("G", "next_ts"))


def emitted_rows(stream: Stream) -> list[dict[str, Any]]:
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
@pytest.mark.full
def test_what_leaves_is_the_batch_query_however_cut(make_stream: MakeStream, name: str, seed: int) -> None:
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
    emitted = emitted_rows(stream)
    assert emitted
    assert emitted == batch(stream, name)


def test_a_full_buffer_says_whether_rows_wait_for_a_split_or_in_windows(make_stream: MakeStream) -> None:
    day = TUMBLE | {"window": {"type": "tumble", "size": "P1D"}}
    stream = make_stream(day, splits=["a", "b"], buffer={"max_rows": 3})
    stream.append((1, "a", 100), (2, "b", 110), (3, "a", 20), (4, "b", 30))
    error = stream.feed.fail()
    # G is 95: two rows lie below it, in a day that is not over
    assert error.code == "buffer_full"
    assert (
        "4 rows would wait after epoch 1: 2 for windows that are still open, 2 for split a, the slowest"
        in error.message
    )


@pytest.mark.full
def test_windows_of_whole_numbers_and_groups_without_a_value_are_emitted_once(make_feed: MakeFeed) -> None:
    import pyarrow as pa
    from deltalake import write_deltalake

    operator = {
        "type": "aggregate",
        "window": {"type": "hop", "size": 10, "slide": 5},
        "group_by": ["device"],
        "aggregates": VALUES,
    }
    declared = definition(operator, timeout=0, split=None, order_by=[], checkpoint={"interval_files": 1})
    stream = Stream(make_feed(**declared))
    for times in ([-3, 1, 4], [6, 12], [30]):
        columns = {"id": times, "device": pa.array([None] * len(times), pa.string()), "ts": times}
        write_deltalake(str(stream.source), pa.table(columns), mode="append")
    stream.feed.load()
    rows = [
        (row["window_start"], row["window_end"], row["device"], row["ids"], row["_epoch"])
        for row in stream.table()
    ]
    assert sorted(rows) == [
        (-10, 0, None, [-3], 1),
        (-5, 5, None, [-3, 1, 4], 2),
        (0, 10, None, [1, 4, 6], 2),
        (5, 15, None, [6, 12], 3),
        (10, 20, None, [12], 3),
    ]


@pytest.mark.full
def test_splits_removed_or_merged_close_open_windows_once(make_stream: MakeStream) -> None:
    stream = make_stream(HOP, splits=None)
    stream.append((1, "a", 0), (2, "b", 41), (3, "a", 6), (4, "c", 60), (5, "b", 33))
    stream.feed.load()
    assert stream.table() == []
    stream.feed.command("splits", "remove", "flow", "a", "--reason", "broken", "--yes")
    assert minutes(stream.feed.watermark["global"]) == 36
    stream.feed.command("splits", "merge", "flow", "b", "--into", "c", "--reason", "moved", "--yes")
    assert minutes(stream.feed.watermark["global"]) == 55
    stream.append((6, "c", 61))
    stream.feed.load()
    stream.append((7, "c", 90))
    stream.feed.load()
    assert emitted_rows(stream) == batch(stream, "hop")
    assert {row["_epoch"] for row in stream.table()} == {4, 5}


@pytest.mark.full
def test_rows_that_an_over_window_carries_and_that_are_gone_stop_the_run(make_stream: MakeStream) -> None:
    from deltalake import DeltaTable

    stream = make_stream(OVER, splits=["a"])
    stream.append((1, "a", 0), (2, "a", 10), (3, "a", 20))
    stream.feed.load()
    DeltaTable(str(stream.feed.folder / "lake" / "silver" / "readings__over")).delete("id = 1")
    stream.append((4, "a", 40))
    error = stream.feed.fail()
    assert (error.code, error.exit_code) == ("buffer_lost", 4)
    assert "readings__over" in error.message


@pytest.mark.full
def test_operators_that_fail_over_a_row_give_the_epoch_up_and_corrected_ones_go_on(
    make_feed: MakeFeed,
) -> None:
    feed = make_feed(source={"schema": "ts long, text string, day string"}, target={"origin_columns": False})
    stream = {"type": "stream", "event_time": "ts", "split": "day", "timeout": 0}
    total = {"type": "aggregate", "window": {"type": "tumble", "size": 10}}
    failing = total | {"aggregates": {"total": "sum(CAST(text AS INT))"}}
    feed.define(watermark=None).define(watermark=stream, operators=[failing])
    feed.put_text(
        "day=a/1.ndjson", '{"ts": 1, "text": "5"}\n{"ts": 12, "text": "x"}\n{"ts": 25, "text": "7"}\n'
    )
    error = feed.fail()
    assert error.code == "query"
    assert "operators fail on rows of slice 1" in error.message
    assert error.message.endswith(
        "its number was abandoned. To go on, correct the rows at the source and run again, if they came with this slice. Otherwise correct them, or operators, and read"
        " the source again from its start: `strandline state reset flow --replace --reason TEXT`"
    )
    assert feed.open_intent is None
    feed.define(operators=[total | {"aggregates": {"total": "sum(TRY_CAST(text AS INT))"}}])
    feed.load()
    assert feed.rows("window_start", "total") == [(0, 5), (10, None)]
