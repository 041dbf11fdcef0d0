"""Streams on Spark's own engine as dataflows: each row once whatever dies, and a checkpoint that belongs to the watermark log."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from resources.kinds.structured import SparkStreamKind
from resources.loop.outcome import Step
from resources.spark import SparkEngine
from tests.support.crash_runner import crash
from tests.support.feed import Feed, answer_of
from tests.support.steps import Killed, killed_at

_SCHEMA = "ts timestamp, device string, id string"


SILENCES = """
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor


class Silences(StatefulProcessor):
    def init(self, handle):
        self.handle = handle
        self.seen = handle.getValueState("seen", "n long, last long")

    def handleInputRows(self, key, rows, timerValues):
        n, last = self.seen.get() if self.seen.exists() else (0, 0)
        for timer in self.handle.listTimers():
            self.handle.deleteTimer(timer)
        for row in rows:
            n, last = n + 1, max(last, int(row.ts.timestamp() * 1000))
        self.seen.update((n, last))
        self.handle.registerTimer(last + 5000)
        return iter(())

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo):
        yield Row(device=key[0], n=self.seen.get()[0])

    def close(self):
        pass
"""


class Stream(Feed):
    """Readings whose windows of five seconds are counted."""

    @classmethod
    def of(cls, folder: Path, engine: SparkEngine, **changes: Any) -> Stream:
        windows = {
            "type": "aggregate",
            "window": {"type": "tumble", "size": "PT5S"},
            "aggregates": {"n": "count(*)"},
        }
        return cls(
            folder,
            engine,
            {
                "source": {"schema": _SCHEMA},
                "watermark": {
                    "type": "stream",
                    "engine": "structured_streaming",
                    "event_time": "ts",
                    "timeout": "PT10S",
                },
                "operators": [{"type": "drop_duplicates", "keys": ["id", "ts"]}, windows],
                "target": {"origin_columns": False},
            }
            | changes,
        )

    def add(self, name: str, *seconds: int) -> None:
        rows = [{"ts": f"2026-01-01T00:00:{at:02d}", "device": "a", "id": str(at)} for at in seconds]
        self.put(name, *rows)

    @property
    def streams(self) -> Path:
        return self.folder / "lake" / "_streams" / "bronze" / self.name / self.name

    def counts(self) -> list[tuple[int, int]]:
        return sorted((start.second, count) for start, count in self.rows("window_start", "n"))


@pytest.fixture
def stream(tmp_path: Path, spark_engine: SparkEngine) -> Stream:
    made = Stream.of(tmp_path, spark_engine)
    made.add("1.ndjson", 10, 11, 12, 13, 14, 15, 10, 25)
    return made


@pytest.mark.full
def test_windows_are_emitted_once_and_each_batch_of_spark_is_told(stream: Stream) -> None:
    first = stream.run()
    assert first.error is None
    assert stream.counts() == [(10, 5)]
    told = json.loads(json.dumps(first.as_json()))["stream"]
    assert told["engine"] == "structured_streaming"
    assert [(batch["batch_id"], batch["rows_in"]) for batch in told["batches"]] == [(0, 8), (1, 0)]
    stream.add("2.ndjson", 40)
    assert stream.run().error is None
    stream.add("3.ndjson", 10)
    late = stream.run()
    assert stream.counts() == [(10, 5), (15, 1), (25, 1)]
    assert sum(batch.dropped_by_watermark for batch in late.batches or ()) == 1
    again = stream.run()
    assert (again.error, again.committed, again.batches) == (None, [], None)


@pytest.mark.parametrize("step", [Step.INTENT_PUT, Step.WRITTEN])
def test_each_row_is_there_once_after_a_kill_between_outbox_and_table(stream: Stream, step: Step) -> None:
    crash(stream, step)
    assert stream.run().error is None
    assert stream.counts() == [(10, 5)]


def test_a_header_of_csv_is_no_row_and_one_of_other_columns_stops_the_batch(
    tmp_path: Path, spark_engine: SparkEngine
) -> None:
    source = {"schema": _SCHEMA, "format": "csv"}
    stream = Stream.of(tmp_path, spark_engine, source=source, operators=[])
    stream.put_text("1.csv", 'ts,device,id\n2026-01-01T00:00:10,"a ""b""",1\n')
    stream.load()
    assert stream.rows("device", "id") == [('a "b"', "1")]
    stream.put_text("2.csv", "ts,id,device\n2026-01-01T00:00:11,2,a\n")
    assert stream.run().error is not None
    assert stream.rows("device", "id") == [('a "b"', "1")]


def test_a_record_that_does_not_parse_stops_a_batch_of_spark_and_becomes_no_row_of_nulls(
    stream: Stream,
) -> None:
    stream.define(operators=[])
    stream.put_text("2.ndjson", '{"ts": "2026-01-01T00:00:26", "device": "a", "id": 1}\n{"ts": "soon"}\n')
    assert stream.run().error is not None
    assert stream.rows("id") == []


@pytest.mark.full
def test_a_file_that_comes_later_and_is_modified_weeks_before_the_newest_is_loaded(stream: Stream) -> None:
    stream.define(operators=[])
    stream.load()
    stream.add("0.ndjson", 40)
    os.utime(stream.landing / "0.ndjson", (1_600_000_000,) * 2)
    assert stream.load().rows == 1
    assert ("40",) in stream.rows("id")


def die_behind_spark(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run until Spark's batches are in the outbox, and no further."""

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SparkStreamKind, "_after", killed)
    with pytest.raises(KeyboardInterrupt):
        stream.run()
    monkeypatch.undo()


def test_a_batch_whose_end_the_checkpoint_does_not_know_is_written_again_and_loaded_once(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_behind_spark(stream, monkeypatch)
    commits = stream.streams / "first" / "checkpoint" / "commits"
    for file in commits.iterdir():
        file.unlink()  # as a kill between the sink and the checkpoint leaves it
    assert list((stream.streams / "first" / "outbox").iterdir())
    assert stream.run().error is None
    assert stream.counts() == [(10, 5)]


def test_an_outbox_that_is_lost_before_its_rows_are_in_the_table_stops_with_exit_code_4(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_behind_spark(stream, monkeypatch)
    shutil.rmtree(stream.streams / "first" / "outbox")
    error = stream.run().error
    assert error is not None
    assert (error.exit_code, error.code) == (4, "outbox_lost")
    assert error.choices == ("strandline state reset flow --replace --reason TEXT",)


@pytest.mark.parametrize(
    ("damage", "code"),
    [("deleted", "checkpoint_lost"), ("foreign", "checkpoint_foreign"), ("old", "checkpoint_behind")],
)
def test_a_checkpoint_that_is_not_the_state_s_stops_with_exit_code_4_and_choices(
    stream: Stream, damage: str, code: str
) -> None:
    stream.run()
    checkpoint = next(stream.streams.iterdir()) / "checkpoint"
    if damage == "deleted":
        shutil.rmtree(checkpoint)
    elif damage == "foreign":
        (checkpoint / "metadata").write_text('{"id":"another"}')
    else:
        shutil.rmtree(checkpoint / "commits")
    stream.add("2.ndjson", 40)
    error = stream.run().error
    assert error is not None
    assert (error.exit_code, error.code) == (4, code)
    assert error.choices == ("strandline state reset flow --replace --reason TEXT",)
    assert stream.counts() == [(10, 5)]


@pytest.mark.full
def test_two_runs_at_the_same_moment_leave_each_row_once(tmp_path: Path, spark_engine: SparkEngine) -> None:
    stream = Stream.of(tmp_path, spark_engine, operators=[])
    stream.define(watermark={"checkpoint": {"interval_files": 1}}, target={"load": "append"})
    for number in range(6):
        stream.add(f"{number}.ndjson", 10 * number, 10 * number + 1)
    both = [stream.start("run", "flow") for _ in range(2)]
    codes = {answer_of(process).code for process in both}
    # the one that Spark stops, or that finds numbers taken, fails or is held back
    assert codes <= {0, 1, 3}
    assert stream.run().error is None
    expected = [str(10 * number + more) for number in range(6) for more in range(2)]
    assert sorted(row[0] for row in stream.rows("id")) == sorted(expected)


def keeping_state(function: str) -> dict[str, Any]:
    """The operator of a class of the user."""
    return {
        "type": "transform_with_state",
        "function": function,
        "group_by": ["device"],
        "output": "device string, n long",
    }


@pytest.mark.full
def test_a_class_of_the_user_keeps_state_and_is_woken_by_the_watermark(stream: Stream) -> None:
    (stream.folder / "silences.py").write_text(SILENCES)
    stream.define(operators=[keeping_state("silences:Silences")])
    assert stream.run().error is None
    assert stream.rows("device", "n") == []
    # another device moves the watermark to 35 s, past the timer of the first at 25 + 5 s
    stream.put("2.ndjson", {"ts": "2026-01-01T00:00:45", "device": "b", "id": "45"})
    assert stream.run().error is None
    assert stream.rows("device", "n") == [("a", 8)]
    # the state outlasts the process: the second device's row is counted, and its timer goes off once
    stream.put("3.ndjson", {"ts": "2026-01-01T00:01:59", "device": "c", "id": "119"})
    assert stream.run().error is None
    assert stream.rows("device", "n") == [("a", 8), ("b", 1)]


@pytest.mark.full
def test_an_error_of_a_class_of_the_user_is_told_in_its_own_words(stream: Stream) -> None:
    broken = SILENCES.replace("n, last = self.seen.get()", "n, last = self.missing.get()")
    (stream.folder / "silences_broken.py").write_text(broken.replace("if self.seen.exists()", "if True"))
    stream.define(operators=[keeping_state("silences_broken:Silences")])
    error = stream.run().error
    assert error is not None
    assert error.code == "query"
    assert "AttributeError: 'Silences' object has no attribute 'missing'" in error.message


@pytest.mark.full
def test_a_changed_policy_stops_with_exit_code_4(stream: Stream) -> None:
    stream.run()
    stream.define(watermark={"policy": "max"})
    error = stream.run().error
    assert error is not None
    assert (error.exit_code, error.code) == (4, "definition_changed")
    assert (
        "policy was min, is max (Spark's checkpoint keeps the policy that it was begun with)" in error.message
    )
    # without --replace it would append all rows to those that are there
    assert error.choices == ("strandline state reset flow --replace --reason TEXT",)
    preview = stream.cli("state", "reset", "flow", "--reason", "again").err  # nobody agrees
    assert "2 of these batches were loaded before; load: append adds their rows a second time" in preview
    assert stream.cli("state", "accept", "flow", "--reason", "it fits", "--yes").code == 4


@pytest.mark.full
def test_columns_that_change_after_the_first_batch_stop_the_run_before_spark_reads_anything(
    stream: Stream,
) -> None:
    stream.define(operators=[], source={"schema": "ts timestamp, device string"})
    assert stream.run().error is None
    stream.define(source={"schema": _SCHEMA})
    stream.add("2.ndjson", 40)
    error = stream.run().error
    assert error is not None
    assert error.code == "schema"
    assert "id is new (string)" in error.message
    stream.define(source={"schema": "ts timestamp, device string"})
    assert stream.run().error is None
    assert len(stream.rows("ts", "device")) == 9


@pytest.mark.full
def test_a_state_that_is_lost_or_older_than_the_table_is_adopted_from_it_with_its_checkpoint(
    stream: Stream,
) -> None:
    stream.run()
    shutil.copytree(stream.state, stream.folder / "older")
    stream.add("2.ndjson", 40)
    assert stream.run().error is None
    loaded = stream.counts()
    for restored in (True, False):
        shutil.rmtree(stream.state)
        if restored:
            shutil.copytree(stream.folder / "older", stream.state)
        assert stream.run().status == "blocked"
        adopted = stream.cli("state", "adopt", "flow", "--reason", "restored", "--yes")
        assert adopted.code == 0, adopted.err
        assert stream.run().error is None
        assert stream.counts() == loaded
    stream.add("3.ndjson", 59)
    assert stream.run().error is None
    assert stream.counts() == [(10, 5), (15, 1), (25, 1), (40, 1)]


@pytest.mark.full
def test_a_slice_that_was_begun_with_other_options_of_the_source_is_given_up_by_accept_and_loaded_once(
    stream: Stream,
) -> None:
    stream.define(operators=[])
    stream.load()
    stream.add("2.ndjson", 40)
    with pytest.raises(Killed):
        stream.run(killed_at(Step.INTENT_PUT, 1))
    stream.define(source={"options": {"multiLine": False}})
    error = stream.run().error
    assert error is not None
    assert error.code == "intent_changed"
    assert error.choices[0] == "strandline state accept flow --reason TEXT"
    accepted = stream.cli("state", "accept", "flow", "--reason", "it fits", "--yes")
    assert accepted.code == 0, accepted.out
    stream.load()
    assert sorted(row[0] for row in stream.rows("id")) == [
        "10",
        "10",
        "11",
        "12",
        "13",
        "14",
        "15",
        "25",
        "40",
    ]


def test_a_table_that_tells_no_state_is_not_answered_with_a_set_which_a_stream_on_spark_s_engine_refuses(
    stream: Stream,
) -> None:
    write_deltalake(str(stream.table), pa.table({"n": [1]}))
    lost = stream.run().error
    assert lost is not None
    assert lost.code == "state_lost"
    assert "strandline state reset flow --reason TEXT" not in lost.choices
    adopted = stream.cli("state", "adopt", "flow", "--reason", "mine", "--yes")
    assert (adopted.code, adopted.error["code"]) == (4, "nothing_to_adopt")
    assert adopted.error["choices"] == ["strandline state reset flow --reason TEXT"]


@pytest.mark.full
def test_a_reset_that_replaces_reads_the_source_again_with_a_checkpoint_of_its_own(stream: Stream) -> None:
    stream.run()
    shutil.rmtree(next(stream.streams.iterdir()) / "checkpoint")
    assert stream.cli("state", "reset", "flow", "--replace", "--reason", "lost", "--yes").code == 0
    assert stream.run().error is None
    assert stream.counts() == [(10, 5)]
