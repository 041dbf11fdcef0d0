"""Streams on Spark's own engine as dataflows: each row once whatever dies, and a checkpoint that belongs to the watermark log."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from resources.connections.places import Place
from resources.kinds.spark_stream.inbox import InboxBatch
from resources.kinds.spark_stream.outbox import Outbox
from resources.outcome import Step
from resources.spark.engine import SparkEngine
from tests.support.crash_runner import crash
from tests.support.feed import Feed, answer_of
from tests.support.steps import Killed, killed_at

_SCHEMA = "ts timestamp, device string, id string"
_ONE_FILE_A_BATCH = {"checkpoint": {"interval_files": 1}}


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
    def of(
        cls,
        folder: Path,
        engine: SparkEngine,
        settings: dict[str, Any] | None = None,
        environment: dict[str, str] | None = None,
        **changes: Any,
    ) -> Stream:
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
            settings or {},
            environment or {},
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


@pytest.mark.full
def test_a_bad_file_stops_a_stream_of_spark_before_its_micro_batch(stream: Stream) -> None:
    stream.define(operators=[], source={"schema": f"{_SCHEMA}, n int"}, watermark=_ONE_FILE_A_BATCH)
    wrong = '{"ts": "2026-01-01T00:00:27", "id": "3", "n": 5.0}\n'
    stream.put_text("2.ndjson", f'{{"ts": "2026-01-01T00:00:26", "id": "2", "n": 5}}\n{wrong}')
    stream.add("3.ndjson", 28)
    for number in (1, 2, 3):
        os.utime(stream.landing / f"{number}.ndjson", (1_700_000_000 + number,) * 2)
    for rows in (8, 0):
        outcome = stream.run()
        assert outcome.rows == rows
        assert outcome.error is not None
        assert outcome.error.code == "bad_record"
        assert "file 2.ndjson, line 2: field n" in outcome.error.message
        assert "'5.0'" in outcome.error.message
        assert len(stream.rows("id")) == 8
    stream.put_text("2.ndjson", '{"ts": "2026-01-01T00:00:26", "id": "2", "n": 5}\n')
    assert [batch.rows_in for batch in stream.load().batches or ()] == [1, 1]
    assert stream.rows("id", "n")[-3:] == [("2", 5), ("25", None), ("28", None)]
    # Spark keeps of its input what it may look at again, and nothing of the bad one
    assert len(list((stream.streams / "first/inbox/0").glob("*.parquet"))) == 3
    assert not list((stream.streams / "first/drafts").iterdir())


@pytest.mark.full
def test_csv_is_read_by_spark_streams_and_headers_named(tmp_path: Path, spark_engine: SparkEngine) -> None:
    source = {"schema": f"{_SCHEMA}, day date", "format": "csv"}
    stream = Stream.of(tmp_path, spark_engine, source=source, operators=[])
    stream.put_text("day=2026-01-02/kept=1/1.csv", 'ts,device,id\n\n2026-01-01T00:00:10,"a ""b""",1\n')
    stream.put_text("day=2026-01-02/2.csv", "ts,device,id\n")
    stream.load()
    assert stream.rows("device", "id", "day") == [('a "b"', "1", date(2026, 1, 2))]
    stream.put_text("day=2026-01-02/3.csv", "ts,id,device\n2026-01-01T00:00:11,2,a\n")
    error = stream.fail()
    assert error.code == "bad_header"
    assert "3.csv: expected the header ts,device,id, found ts,id,device" in error.message
    assert len(stream.rows("id")) == 1


def test_a_run_that_dies_at_the_inbox_has_rows_once(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    stream.define(operators=[])
    stream.add("2.ndjson", 40)

    def killed(draft: InboxBatch) -> None:
        publish(replace(draft, files=draft.files[:1]))
        raise Killed

    publish = InboxBatch.publish
    monkeypatch.setattr(InboxBatch, "publish", killed)
    with pytest.raises(Killed):
        stream.run()
    monkeypatch.undo()
    assert len(list((stream.streams / "first/inbox/0").glob("*.parquet"))) == 1
    stream.load()
    assert len(stream.rows("id")) == 9


@pytest.mark.full
def test_copies_that_spark_has_read_leave_the_inbox_for_good(stream: Stream) -> None:
    stream.define(operators=[], watermark=_ONE_FILE_A_BATCH)
    stream.add("2.ndjson", 22)
    stream.add("3.ndjson", 23)
    stream.load()
    stream.add("4.ndjson", 24)
    stream.load()
    # those of the newest batch, and of the one before it
    assert len(list((stream.streams / "first/inbox/0").glob("*.parquet"))) == 2
    assert len(stream.rows("id")) == 8 + 3


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

    monkeypatch.setattr(Outbox, "_after", killed)
    with pytest.raises(KeyboardInterrupt):
        stream.load()  # an error says why no batch came
    monkeypatch.undo()


@pytest.mark.full
def test_a_batch_beyond_its_checkpoint_lands_once(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    die_behind_spark(stream, monkeypatch)
    commits = stream.streams / "first" / "checkpoint" / "commits"
    for file in commits.iterdir():
        file.unlink()  # as a kill between the sink and the checkpoint leaves it
    assert list((stream.streams / "first" / "outbox").iterdir())
    assert stream.run().error is None
    assert stream.counts() == [(10, 5)]


@pytest.mark.remedy("outbox_lost", "state reset --replace")
def test_a_lost_outbox_with_open_rows_stops_with_4(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    die_behind_spark(stream, monkeypatch)
    shutil.rmtree(stream.streams / "first" / "outbox")
    error = stream.fail()
    assert (error.exit_code, error.code) == (4, "outbox_lost")
    assert error.choices == ("strandline state reset flow --replace --reason TEXT",)
    stream.decide("reset", "--replace")
    stream.load()
    assert stream.counts() == [(10, 5)]


@pytest.mark.full
@pytest.mark.parametrize(
    ("damage", "code"),
    [("deleted", "checkpoint_lost"), ("foreign", "checkpoint_foreign"), ("old", "checkpoint_behind")],
)
@pytest.mark.remedy("checkpoint_lost", "state reset --replace")
@pytest.mark.remedy("checkpoint_foreign", "state reset --replace")
@pytest.mark.remedy("checkpoint_behind", "state reset --replace")
def test_a_foreign_checkpoint_stops_with_4_and_choices(stream: Stream, damage: str, code: str) -> None:
    stream.run()
    checkpoint = next(stream.streams.iterdir()) / "checkpoint"
    if damage == "deleted":
        shutil.rmtree(checkpoint)
    elif damage == "foreign":
        (checkpoint / "metadata").write_text('{"id":"another"}')
    else:
        shutil.rmtree(checkpoint / "commits")
    stream.add("2.ndjson", 40)
    error = stream.fail()
    assert (error.exit_code, error.code) == (4, code)
    assert error.choices == ("strandline state reset flow --replace --reason TEXT",)
    assert stream.counts() == [(10, 5)]
    stream.decide("reset", "--replace")
    stream.load()
    assert stream.counts()[0] == (10, 5)
    assert stream.load().status == "nothing"


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
    error = stream.fail()
    assert error.code == "query"
    assert "AttributeError: 'Silences' object has no attribute 'missing'" in error.message


@pytest.mark.full
def test_a_row_that_fails_the_query_is_mended_and_read_anew_by_the_named_command(
    stream: Stream,
) -> None:
    tumble = {"type": "aggregate", "window": {"type": "tumble", "size": "PT1S"}}
    stream.define(operators=[tumble | {"aggregates": {"total": "sum(CAST(id AS INT))"}}])
    stream.put("0.ndjson", {"ts": "2026-01-01T00:00:00", "device": "a", "id": "x"})
    error = stream.fail()
    assert error.code == "query"
    assert "try_cast" not in error.message
    name = stream.dataflow.name
    assert error.message.endswith(
        f"read the source again from its start: `strandline state reset {name} --replace --reason TEXT`"
    )
    stream.put("0.ndjson", {"ts": "2026-01-01T00:00:00", "device": "a", "id": "0"})
    stream.decide("reset", "--replace")
    assert stream.run().error is None


@pytest.mark.full
def test_a_changed_policy_stops_with_exit_code_4(stream: Stream) -> None:
    stream.run()
    stream.define(watermark={"policy": "max"})
    error = stream.fail()
    assert (error.exit_code, error.code) == (4, "definition_changed")
    assert (
        "policy was min, is max (Spark's checkpoint keeps the policy that it started with)" in error.message
    )
    # without --replace it would append all rows to those that are there
    assert error.choices == ("strandline state reset flow --replace --reason TEXT",)
    preview = stream.cli("state", "reset", "flow", "--reason", "again").err  # nobody agrees
    assert "2 of these batches were loaded before; load: append adds their rows a second time" in preview
    assert stream.cli("state", "accept", "flow", "--reason", "it fits", "--yes").code == 4


@pytest.mark.full
def test_columns_that_change_after_the_first_batch_stop_before_a_read(stream: Stream) -> None:
    stream.define(operators=[], source={"schema": "ts timestamp, device string"}, unknown_fields="ignore")
    assert stream.run().error is None
    stream.define(source={"schema": _SCHEMA})
    stream.add("2.ndjson", 40)
    error = stream.fail()
    assert error.code == "schema"
    assert "id is new (string)" in error.message
    stream.define(source={"schema": "ts timestamp, device string"})
    assert stream.run().error is None
    assert len(stream.rows("ts", "device")) == 9


@pytest.mark.full
def test_a_lost_or_old_state_is_adopted_with_its_checkpoint(stream: Stream) -> None:
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
        stream.decide("adopt")
        assert stream.run().error is None
        assert stream.counts() == loaded
    stream.add("3.ndjson", 59)
    assert stream.run().error is None
    assert stream.counts() == [(10, 5), (15, 1), (25, 1), (40, 1)]


@pytest.mark.full
def test_a_slice_of_other_options_is_given_up_by_accept_and_loaded_once(stream: Stream) -> None:
    stream.define(operators=[])
    stream.load()
    stream.add("2.ndjson", 40)
    with pytest.raises(Killed):
        stream.run(killed_at(Step.INTENT_PUT, 1))
    stream.define(source={"options": {"timeZone": "UTC"}})
    error = stream.fail()
    assert error.code == "intent_changed"
    assert error.choices[0] == "strandline state accept flow --reason TEXT"
    stream.decide("accept")
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


def test_a_table_without_state_is_not_answered_with_a_refused_set(stream: Stream) -> None:
    write_deltalake(str(stream.table), pa.table({"n": [1]}))
    lost = stream.fail()
    assert lost.code == "state_lost"
    assert "strandline state reset flow --reason TEXT" not in lost.choices
    adopted = stream.cli("state", "adopt", "flow", "--reason", "mine", "--yes")
    assert (adopted.code, adopted.error["code"]) == (4, "nothing_to_adopt")
    assert adopted.error["choices"] == ["strandline state reset flow --reason TEXT"]


@pytest.mark.full
def test_a_reset_that_replaces_reads_the_source_again_with_a_checkpoint_of_its_own(stream: Stream) -> None:
    stream.run()
    shutil.rmtree(next(stream.streams.iterdir()) / "checkpoint")
    stream.decide("reset", "--replace")
    assert stream.run().error is None
    assert stream.counts() == [(10, 5)]


@pytest.mark.full
@pytest.mark.s3
def test_objects_come_in_order_and_once(tmp_path: Path, spark_engine: SparkEngine, bucket: Place) -> None:
    connection = bucket.connection
    assert connection is not None
    land = {
        "type": "s3",
        "endpoint": connection.endpoint,
        "region": connection.region,
        "access_key_id": {"env": "KEY"},
        "secret_access_key": {"env": "SECRET"},
    }
    settings = {
        "lake": {"path": bucket.child("lake").url, "connection": "land"},
        "connections": {"land": land},
    }
    known = {"KEY": connection.access_key_id or "", "SECRET": connection.secret_access_key or ""}
    source = {"path": bucket.child("in").url, "connection": "land", "schema": _SCHEMA}
    stream = Stream.of(
        tmp_path, spark_engine, source=source, operators=[], settings=settings, environment=known
    )
    stream.define(watermark=_ONE_FILE_A_BATCH)
    landing = bucket.child("in").store
    for at in range(10, 14):
        row = {"ts": f"2026-01-01T00:00:{at}", "device": "a b", "id": str(at)}
        landing.put(f"day=1/{99 - at} %.ndjson", json.dumps(row).encode())
        time.sleep(0.01)
    assert [batch.rows_in for batch in stream.load().batches or ()] == [1, 1, 1, 1]
    landing.put("wrong.ndjson", b'{"ts": "09:15"}')
    error = stream.fail()
    assert error.code == "bad_record"
    landing.put("wrong.ndjson", b'{"ts": "2026-01-01T00:00:14", "id": "14"}\n{"id": "15"}')
    stream.load()
    table = DeltaTable(bucket.child("lake/bronze/flow").url, storage_options=bucket.storage_options)
    assert sorted(table.to_pyarrow_table()["id"].to_pylist()) == ["10", "11", "12", "13", "14", "15"]
