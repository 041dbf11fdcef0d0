"""A dataflow goes on where a stream of Spark stopped (docs/how-to/from-delta-streaming.md)."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from resources.spark.engine import SparkEngine
from tests.support.commits import UPSTREAMS, Upstream, copying, rows_of
from tests.support.feed import Feed
from tests.support.iceberg import foreign_table

pytestmark = pytest.mark.usefixtures("engine")


class Streamed:
    """A table that a stream of Spark copies, and the dataflow that takes over.

    Attributes:
        feed: the dataflow, which loads the table that the stream has written.
        upstream: the table that both read.
        checkpoint: the checkpoint of the stream.
    """

    def __init__(self, folder: Path, engine: SparkEngine, kind: str, **keys: Any) -> None:
        """Create the dataflow; nothing is written yet."""
        self.kind, self.engine, self.checkpoint = kind, engine, folder / "checkpoint"
        target = {"origin_columns": False} | keys.pop("target", {})  # which the stream's table lacks
        self.feed = Feed(folder / "project", engine, copying(target=target, **keys))
        self.upstream: Upstream = UPSTREAMS[kind](self.feed.folder / "lake", engine)

    def stream(self, *, max_files: int | None = None) -> None:
        """Copy all that is new, as a job of the user does, and stop.

        Args:
            max_files: the most files of a batch.
        """
        spark = self.engine.session()
        reader = spark.readStream.format(self.kind)
        limits = {"delta": "maxFilesPerTrigger", "iceberg": "streaming-max-files-per-micro-batch"}
        if max_files is not None:
            reader = reader.option(limits[self.kind], max_files)
        is_delta = self.kind == "delta"
        rows = reader.load(
            str(self.upstream.folder) if is_delta else foreign_table(spark, self.upstream.folder)
        )
        writer = rows.writeStream.format("delta").outputMode("append")
        writer = writer.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
        query = writer.start(str(self.feed.table))
        assert query.awaitTermination(300)
        assert query.exception() is None

    def take_over(self) -> Any:
        """Set the state to the position of the stream, and return the answer."""
        return self.feed.cli(
            "state",
            "set",
            "flow",
            "--spark-checkpoint",
            str(self.checkpoint),
            "--reason",
            "taken over",
            "--yes",
        )

    def forget_end(self, batch: int) -> None:
        """Leave the checkpoint as a process does that dies after a batch is written, and before it is noted."""
        for name in (str(batch), f".{batch}.crc"):
            (self.checkpoint / "commits" / name).unlink(missing_ok=True)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_no_row_is_lost_or_doubled_when_a_dataflow_takes_over(
    tmp_path: Path, engine: SparkEngine, kind: str
) -> None:
    streamed = Streamed(tmp_path, engine, kind)
    for number in range(3):
        streamed.upstream.append((number, "streamed"))
    streamed.stream()
    streamed.upstream.append((3, "streamed"))
    streamed.stream()
    streamed.upstream.append((4, "not streamed"))
    answer = streamed.take_over()
    assert answer.code == 0, answer.out + answer.err
    streamed.feed.load()
    streamed.upstream.append((5, "later"))
    streamed.feed.load()
    assert rows_of(streamed.feed) == streamed.upstream.rows()
    assert len(rows_of(streamed.feed)) == 6


@pytest.mark.full
@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_a_stream_that_stopped_amid_a_commit_or_a_batch_is_finished_first(
    tmp_path: Path, engine: SparkEngine, kind: str
) -> None:
    streamed = Streamed(tmp_path, engine, kind)
    streamed.upstream.append((0, "first"))
    spark = engine.session()
    rows = spark.createDataFrame([(id_, "many") for id_ in range(1, 7)], "id long, v string").repartition(3)
    if kind == "delta":
        rows.write.format("delta").mode("append").save(str(streamed.upstream.folder))
    else:
        rows.writeTo(foreign_table(spark, streamed.upstream.folder)).append()
    streamed.stream(max_files=2)
    # The state after a batch that ended amid the commit of three files.
    batches = sorted(
        int(file.name) for file in (streamed.checkpoint / "offsets").iterdir() if file.name.isdigit()
    )
    assert len(batches) > 1
    amid = tmp_path / "amid"
    shutil.copytree(streamed.checkpoint, amid)
    for folder in ("offsets", "commits"):
        (amid / folder / str(batches[-1])).unlink()
    answer = streamed.feed.cli(
        "state", "set", "flow", "--spark-checkpoint", str(amid), "--reason", "x", "--yes"
    )
    assert answer.code == 2
    assert "trigger(availableNow=True)" in answer.json["error"]["message"]
    streamed.forget_end(batches[-1])
    answer = streamed.take_over()
    assert answer.code == 2
    assert f"expected batch {batches[-1]} to be finished" in answer.json["error"]["message"]
    streamed.stream()
    assert streamed.take_over().code == 0
    streamed.upstream.append((9, "later"))
    streamed.feed.load()
    assert rows_of(streamed.feed) == streamed.upstream.rows()


@pytest.mark.full
def test_columns_of_strandline_are_added_to_the_table_of_the_stream_with_schema_mode_merge(
    tmp_path: Path, engine: SparkEngine
) -> None:
    target = {"origin_columns": True, "schema_mode": "merge"}
    streamed = Streamed(tmp_path, engine, "delta", target=target)
    streamed.upstream.append((0, "streamed"))
    streamed.stream()
    assert streamed.take_over().code == 0
    streamed.upstream.append((1, "later"))
    streamed.feed.load()
    rows = streamed.feed.rows("id", "_run_id", "_ingested_at")
    assert [(id_, time is None) for id_, _, time in rows] == [(0, True), (1, False)]


@pytest.mark.full
def test_a_stream_is_followed_into_a_load_by_keys(tmp_path: Path, engine: SparkEngine) -> None:
    target = {"load": "merge_upsert", "merge_keys": ["id"]}
    streamed = Streamed(tmp_path, engine, "delta", target=target)
    streamed.upstream.append((0, "streamed"), (1, "streamed"))
    streamed.stream()
    streamed.upstream.update(0, "updated")
    streamed.upstream.delete(1)
    assert streamed.take_over().code == 0
    streamed.feed.load()
    assert rows_of(streamed.feed) == streamed.upstream.rows() == [(0, "updated")]


class Checkpoint:
    """A checkpoint that a test writes as Spark does."""

    def __init__(self, folder: Path) -> None:
        """Use an empty folder."""
        self.folder = folder

    def batch(self, number: int, offset: object, *, is_committed: bool = True) -> None:
        """Write a batch."""
        for name in ("offsets", "commits")[: 1 + is_committed]:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
            text = (
                f"v1\n{{}}\n{json.dumps(offset)}" if name == "offsets" else 'v1\n{"nextBatchWatermarkMs":0}'
            )
            (self.folder / name / str(number)).write_text(text)
            (self.folder / name / f".{number}.crc").write_text("crc")


@pytest.fixture
def feed(tmp_path: Path, engine: SparkEngine) -> Feed:
    feed = Feed(tmp_path / "project", engine, copying())
    upstream = UPSTREAMS["delta"](feed.folder / "lake", engine)
    upstream.append((1, "a"))
    upstream.append((2, "b"))
    return feed


def offset_of(feed: Feed, next_version: int, **fields: Any) -> dict[str, Any]:
    table = feed.platform.rules(feed.dataflow)._log.commits.newest()[0]  # type: ignore[attr-defined]
    names = {"sourceVersion": 1, "reservoirId": table, "reservoirVersion": next_version}
    return {**names, "index": -1, "isStartingVersion": False, **fields}


def take_over(feed: Feed, checkpoint: Path) -> Any:
    return feed.cli("state", "set", "flow", "--spark-checkpoint", str(checkpoint), "--reason", "x", "--yes")


def test_the_version_before_the_next_one_of_the_stream_is_read(feed: Feed, tmp_path: Path) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    for batch in range(11):  # their names are not in the order of their numbers
        checkpoint.batch(batch, offset_of(feed, 1 if batch == 10 else 0))
    answer = take_over(feed, checkpoint.folder)
    assert answer.code == 0, answer.out + answer.err
    feed.load()
    assert rows_of(feed) == [(2, "b")]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"index": 0}, "found one that has read version 1 of table bronze/events in part"),
        ({"isStartingVersion": True}, "in part"),
        ({"reservoirId": "other"}, "found that it has read table other"),
        ({"reservoirVersion": 0}, "Run the dataflow with source.from: earliest"),
        ({"reservoirVersion": 9}, "expected a version that the log of table bronze/events has, found 8"),
    ],
)
def test_a_checkpoint_that_names_no_position_of_the_table_is_refused_with_the_reason(
    feed: Feed, tmp_path: Path, fields: dict[str, Any], text: str
) -> None:
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.batch(0, {**offset_of(feed, 1), **fields})
    answer = take_over(feed, checkpoint.folder)
    assert (answer.code, feed.entries) == (2, [])
    assert text in answer.json["error"]["message"]


def test_a_folder_without_batches_and_a_batch_that_is_not_finished_are_refused(
    feed: Feed, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    answer = take_over(feed, tmp_path / "empty")
    assert "expected a folder offsets" in answer.json["error"]["message"]
    checkpoint = Checkpoint(tmp_path / "checkpoint")
    checkpoint.batch(0, offset_of(feed, 1))
    checkpoint.batch(1, offset_of(feed, 2), is_committed=False)
    answer = take_over(feed, checkpoint.folder)
    assert answer.code == 2
    assert "expected batch 1 to be finished" in answer.json["error"]["message"]
    words = ("state", "set", "flow", "1", "--spark-checkpoint", str(tmp_path), "--reason", "x", "--yes")
    assert feed.cli(*words).code == 2
