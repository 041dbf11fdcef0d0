"""Streams whose input ends: what waits comes out by a decision, or after a time without input (docs/reference/streams.md, When input ends)."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from dagster import DagsterInstance, SensorResult, build_sensor_context

from platform_assets.build import build_definitions
from platform_assets.project import load_project
from resources.dagster.run_options import RunOptions
from resources.outcome import Step
from tests.integration.conftest import MakeFeed
from tests.integration.test_stream_windows import OPERATORS, OVER, TUMBLE, batch, emitted_rows
from tests.support.crash_runner import WRITING, crash
from tests.support.decision_crash import crash_deciding
from tests.support.feed import NOW, Feed
from tests.support.steps import Killed, killed_at
from tests.support.streams import FILES, FileStream, Stream, definition, minutes

pytestmark = pytest.mark.usefixtures("engine")

MakeStream = Callable[..., Stream]
FLUSH = ("stream", "flush", "flow", "--reason", "ended", "--yes")


@pytest.fixture
def make_stream(make_feed: MakeFeed) -> MakeStream:
    def make(*operators: dict[str, Any], **watermark: Any) -> Stream:
        return Stream(make_feed(**definition(*operators, **watermark)))

    return make


def test_what_waits_comes_out_by_decision_and_lower_rows_are_late(make_stream: MakeStream) -> None:
    stream = make_stream(splits=["a", "b", "c"], idle="stall")
    stream.append((1, "a", 10), (2, "b", 20), (3, "a", 0))
    stream.feed.load()
    assert stream.places()["sorted"] == [], "no row of c has come"
    (listed,) = stream.feed.cli("list").json
    assert listed["buffered"] == 3
    answer = stream.feed.command(*FLUSH)
    assert "3 rows wait: all leave with the next run, after it has read the existing input" in answer.err
    assert (answer.json["entry"]["why"], answer.json["run"]["status"]) == ("flush", "committed")
    assert (answer.json["run"]["stream"]["emitted"], answer.json["run"]["rows"]) == (3, 3)
    assert stream.sorted() == [(3, 0, 3), (1, 10, 3), (2, 20, 3)]
    assert stream.feed.load().status == "nothing"
    stream.append((4, "c", 20), (5, "c", 21), (6, "a", 15))
    stream.feed.load()
    assert stream.places() == {"sorted": [1, 2, 3], "late": [4, 6], "quarantine": [], "buffer": [5]}, (
        "the watermark is just above the last row"
    )
    stream.feed.command(*FLUSH)
    assert stream.ids() == [1, 2, 3, 5]
    again = stream.feed.cli(*FLUSH)
    assert (again.code, again.json["entry"], again.json["run"]) == (0, None, None)
    assert stream.feed.cli("list").json[0]["buffered"] == 0


def test_rows_below_a_time_come_out_and_the_others_wait_on(make_stream: MakeStream) -> None:
    stream = make_stream()
    stream.append((1, "a", 10), (2, "b", 20), (3, "a", 15))
    stream.feed.load()
    before = ("--before", "2026-01-01T00:15")
    stream.feed.command(*FLUSH, *before)
    assert stream.places() == {"sorted": [1], "late": [], "quarantine": [], "buffer": [2, 3]}
    assert minutes(stream.feed.watermark["global"]) == 15
    assert stream.feed.cli(*FLUSH, *before).json["entry"] is None
    assert stream.feed.cli(*FLUSH, "--before", "soon").code == 2
    (plan,) = stream.feed.cli("plan").json
    assert (plan["due"], plan["slices"]) == (False, [])
    stream.append((4, "a", 14), (5, "a", 40), (6, "b", 40))
    stream.feed.load()
    assert stream.places() == {"sorted": [1, 2, 3], "late": [4], "quarantine": [], "buffer": [5, 6]}


@pytest.mark.full
def test_input_there_when_a_flush_is_decided_is_not_late(make_stream: MakeStream) -> None:
    stream = make_stream(checkpoint={"interval_files": 1})
    stream.append((1, "a", 10), (2, "b", 20))
    stream.feed.load()
    stream.append((3, "a", 7))
    stream.append((4, "b", 16))
    assert stream.feed.cli(*FLUSH).json["run"]["slices"] == 3
    assert stream.sorted() == [(3, 7, 5), (1, 10, 5), (4, 16, 5), (2, 20, 5)]
    stream.append((5, "a", 30))
    assert stream.feed.cli(*FLUSH).code == 0, "nothing waits yet, and there is input"
    assert stream.ids() == [1, 2, 3, 4, 5]


@pytest.mark.full
def test_what_waits_comes_out_after_so_long_without_input_by_the_runs_clock(make_stream: MakeStream) -> None:
    stream = make_stream(close_after="PT1H")
    stream.append((1, "a", 10), (2, "b", 20))
    stream.feed.load()
    assert stream.feed.run(now=NOW + timedelta(minutes=59)).status == "nothing"
    (plan,) = stream.feed.cli("plan", "--now", (NOW + timedelta(minutes=59)).isoformat()).json
    waits = next(skip for skip in plan["skips"] if skip["what"] == "2 rows")
    assert waits["why"] == "wait, and leave at 2026-06-01T01:00:00+00:00 if no input comes (close_after)"
    stream.append((3, "a", 12))
    stream.feed.run(now=NOW + timedelta(hours=1))
    assert stream.places()["buffer"] == [1, 2, 3], "input came"
    (plan,) = stream.feed.cli("plan", "--now", (NOW + timedelta(hours=2)).isoformat()).json
    assert [each["reason"] for each in plan["slices"]] == ["close_after"]
    outcome = stream.feed.run(now=NOW + timedelta(hours=2))
    assert (outcome.error, outcome.rows) == (None, 3)
    assert stream.sorted() == [(1, 10, 3), (3, 12, 3), (2, 20, 3)]
    assert stream.feed.run(now=NOW + timedelta(hours=9)).status == "nothing"


HISTORY = (
    ((1, "a", 0), (2, "b", 3), (3, "a", 2), (4, "c", 9)),
    ((5, "a", 11), (6, "b", 12), (7, "c", 25), (8, "a", 13)),
)
LATER = ((9, "a", 40), (10, "b", 41), (11, "a", 44), (12, "c", 60))


@pytest.mark.parametrize("name", sorted(OPERATORS))
@pytest.mark.parametrize("way", ["flush", pytest.param("close_after", marks=pytest.mark.full)])
@pytest.mark.full
def test_what_left_after_the_end_is_the_batch_query(make_stream: MakeStream, name: str, way: str) -> None:
    stream = make_stream(OPERATORS[name], splits=["a", "b", "c"], idle="stall", close_after="PT1H")
    for rows in HISTORY:
        stream.append(*rows)
        stream.feed.load()
    if way == "flush":
        stream.feed.command(*FLUSH)
    else:
        stream.feed.run(now=NOW + timedelta(hours=1))
    found = emitted_rows(stream)
    assert found == batch(stream, name, ended=True)
    assert stream.feed.cli("list").json[0]["buffered"] == 0
    stream.append(*LATER)
    stream.feed.load()
    stream.feed.cli(*FLUSH)
    if name == "over":
        later = [row for row in emitted_rows(stream) if row["id"] > 8]
        expected = [row for row in batch(stream, name, ended=True) if row["id"] > 8]
        assert later == expected, "what comes later still sees what lies before it"
    else:
        assert emitted_rows(stream) == batch(stream, name, ended=True)


def test_splits_removed_at_the_end_let_rows_out_next(make_stream: MakeStream) -> None:
    stream = make_stream()
    stream.append((1, "a", 0), (2, "b", 100), (3, "b", 104), (4, "a", 3))
    stream.feed.load()
    stream.feed.command("splits", "remove", "flow", "a", "--reason", "broken", "--yes")
    stream.feed.load()
    assert stream.places() == {"sorted": [1, 4], "late": [], "quarantine": [], "buffer": [2, 3]}


def test_what_waits_comes_out_although_the_source_is_gone(make_stream: MakeStream) -> None:
    stream = make_stream()
    stream.append((1, "a", 10), (2, "b", 20))
    stream.feed.load()
    shutil.rmtree(stream.source)
    answer = stream.feed.command(*FLUSH)
    assert stream.ids() == [1, 2]
    assert any("cannot look for new input" in each for each in answer.json["run"]["warnings"])
    assert stream.feed.run().error is not None


STEPS = {
    "list of splits stored": (Step.LIST_KEPT, 1),
    "intent stored": (Step.INTENT_PUT, 1),
    "while Spark writes": (WRITING, 1),
    "buffer committed": (Step.SET_ASIDE, 1),
    "rows committed": (Step.WRITTEN, 1),
    "commit looked up": (Step.VERIFIED, 1),
    "entry appended": (Step.APPENDED, 1),
}


def _waiting(feed: Feed, operator: dict[str, Any] | None = None, **target: Any) -> FileStream:
    """A stream over files of which three rows wait."""
    made = definition(
        *([operator] if operator else []),
        source=FILES,
        splits=["a", "b", "c"],
        idle="stall",
        close_after="PT1H",
    )
    made["target"] |= target
    stream = FileStream(Feed(feed.folder, feed.engine, made))
    stream.append((1, "a", 10), (2, "b", 20), (3, "a", 0))
    stream.feed.load()
    return stream


@pytest.mark.parametrize(
    "step",
    [
        "intent stored",
        "rows committed",
        *(
            pytest.param(step, marks=pytest.mark.full)
            for step in STEPS
            if step not in ("intent stored", "rows committed")
        ),
    ],
)
@pytest.mark.parametrize("operator", [None, pytest.param(OVER, marks=pytest.mark.full)], ids=["sort", "over"])
@pytest.mark.parametrize("format_", ["delta", pytest.param("iceberg", marks=pytest.mark.full)])
def test_a_run_that_is_killed_as_it_lets_rows_out_leaves_each_row_in_one_place(
    make_feed: MakeFeed, step: str, operator: dict[str, Any] | None, format_: str
) -> None:
    if step == "buffer committed" and operator is None:
        pytest.skip("nothing waits on, and no side table is written")
    stream = _waiting(make_feed(), operator, format=format_)
    platform, flow = stream.feed.platform, stream.feed.dataflow
    from resources.kinds.all_decisions import decide
    from resources.kinds.stream.flush import flush

    decide(platform, flow, flush("ended"), "ended")
    crash(stream.feed, *STEPS[step])
    stream.append((4, "a", 5), (5, "a", 30))
    assert stream.feed.run().error is None
    found = stream.ids(), stream.ids("__late"), stream.buffered()
    if step == "list of splits stored":  # nothing was begun: the input that has come goes first
        assert found == ([1, 2, 3, 4, 5], [], [])
    else:
        assert found == ([1, 2, 3], [4], [5])
    assert stream.feed.open_intent is None
    assert stream.feed.load().status == "nothing"


@pytest.mark.parametrize("step", ["intents", "entries"])
def test_a_decision_to_flush_that_is_killed_was_made_or_was_not(make_feed: MakeFeed, step: str) -> None:
    stream = _waiting(make_feed())
    crash_deciding(stream.feed, step, *FLUSH)
    stream.feed.load()
    made = step == "entries"
    assert stream.ids() == ([1, 2, 3] if made else [])
    assert stream.buffered() == ([] if made else [1, 2, 3])
    if not made:
        stream.feed.command(*FLUSH)
        assert stream.ids() == [1, 2, 3]


@pytest.mark.full
def test_a_run_that_closes_by_time_and_is_killed_is_finished(make_feed: MakeFeed) -> None:
    for step in (Step.INTENT_PUT, Step.SET_ASIDE, Step.WRITTEN):
        stream = _waiting(make_feed())
        with suppress(Killed):
            stream.feed.run(killed_at(step, 1), now=NOW + timedelta(hours=2))
        stream.append((4, "a", 5), (5, "a", 30))
        stream.feed.load()
        assert stream.places() == {"sorted": [1, 2, 3], "late": [4], "quarantine": [], "buffer": [5]}
        shutil.rmtree(stream.feed.folder)


@pytest.mark.full
def test_a_job_of_dagster_decides_and_the_sensor_asks_for_the_run(make_stream: MakeStream) -> None:
    stream = make_stream(TUMBLE)
    stream.append((1, "a", 10), (2, "b", 20))
    stream.feed.load()
    platform = stream.feed.platform
    definitions = build_definitions(load_project(stream.feed.folder), platform, RunOptions())

    def decide(**config: Any) -> bool:
        given = {"dataflow": "flow", "reason": "ended", **config}
        job = definitions.resolve_job_def("strandline_stream_flush")
        steps = {"ops": {"strandline_stream_flush_step": {"config": given}}}
        return bool(job.execute_in_process(run_config=steps, raise_on_error=False).success)

    assert decide()
    assert [entry.why for entry in stream.feed.entries] == ["run"], "without confirm it only shows the effect"
    assert not decide(before="soon", confirm=True)
    assert decide(before="2026-01-01T00:20", confirm=True)
    with DagsterInstance.ephemeral() as instance:
        asked = definitions.resolve_sensor_def("flow_upstream")(build_sensor_context(instance=instance))
    assert isinstance(asked, SensorResult)
    assert len(asked.run_requests or ()) == 1
    stream.feed.load()
    assert minutes(stream.feed.watermark["global"]) == 20
    assert [row["ids"] for row in stream.table()] == [[1]]
    assert decide(confirm=True)
    stream.feed.load()
    assert sorted(row["ids"] for row in stream.table()) == [[1], [2]]
    assert decide(confirm=True), "nothing waits"
    assert [entry.why for entry in stream.feed.entries] == ["run", "flush", "run", "flush", "run"]


def test_a_stream_on_sparks_own_engine_is_not_flushed_and_says_why(make_feed: MakeFeed) -> None:
    schema = "id long, device string, ts timestamp"
    feed = make_feed(
        layer="silver",
        source=FILES | {"schema": schema},
        watermark={"type": "stream", "engine": "structured_streaming", "event_time": "ts", "timeout": "PT5M"},
        target={"load": "append", "table": "silver/readings"},
    )
    answer = feed.cli(*FLUSH)
    assert answer.code == 2
    assert "only a later row raises Spark's watermark" in answer.error["message"]
