"""Streams on Spark's own engine as dataflows: each row once whatever dies, and a checkpoint that belongs to the watermark log."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from resources.kinds.structured import SparkStreamKind
from resources.loop.outcome import Step
from resources.spark import SparkEngine
from tests.support.crash_runner import crash
from tests.support.feed import Feed

_SCHEMA = "ts timestamp, device string, id string"


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


def test_a_batch_whose_end_the_checkpoint_does_not_know_is_written_again_and_loaded_once(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(SparkStreamKind, "_after", killed)
    with pytest.raises(KeyboardInterrupt):
        stream.run()
    monkeypatch.undo()
    commits = stream.streams / "first" / "checkpoint" / "commits"
    for file in commits.iterdir():
        file.unlink()  # as a kill between the sink and the checkpoint leaves it
    assert list((stream.streams / "first" / "outbox").iterdir())
    assert stream.run().error is None
    assert stream.counts() == [(10, 5)]


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


def test_a_changed_policy_stops_with_exit_code_4(stream: Stream) -> None:
    stream.run()
    stream.define(watermark={"policy": "max"})
    error = stream.run().error
    assert error is not None
    assert error.exit_code == 4


def test_a_reset_that_replaces_reads_the_source_again_with_a_checkpoint_of_its_own(stream: Stream) -> None:
    stream.run()
    shutil.rmtree(next(stream.streams.iterdir()) / "checkpoint")
    assert stream.cli("state", "reset", "flow", "--replace", "--reason", "lost", "--yes").code == 0
    assert stream.run().error is None
    assert stream.counts() == [(10, 5)]
