"""What a run of a stream shows in Dagster."""

from __future__ import annotations

from datetime import UTC, datetime

from dagster import TableMetadataValue

from partitions.dataflow import Dataflow
from partitions.sentinels import serialise
from partitions.spark_stream.batch_progress import BatchProgress, OperatorProgress
from partitions.stream.state import Split, StreamState
from platform_assets.kinds.stream.profile import StreamProfile
from resources.outcome import Outcome
from resources.watermarks.entry import next_entry


def test_batches_of_spark_are_a_table_with_sums_beside_it() -> None:
    at = datetime(2026, 1, 1, 12, tzinfo=UTC)
    dedup = "dedupeWithinWatermark"
    batches = [
        BatchProgress(0, 10, None, (OperatorProgress(dedup, 8, 8, 0, 0),)),
        BatchProgress(1, 5, at, (OperatorProgress(dedup, 3, 2, 7, 4),)),
    ]
    shown = StreamProfile().amounts(Outcome("flow", None, {}, 0, batches=batches))
    table = shown["batches"]
    assert isinstance(table, TableMetadataValue)
    assert [record.data for record in table.records] == [
        {"batch_id": 0, "rows_in": 10, "dropped_by_watermark": 0, "state_rows": 8, "watermark": "none"},
        {
            "batch_id": 1,
            "rows_in": 5,
            "dropped_by_watermark": 4,
            "state_rows": 3,
            "watermark": at.isoformat(),
        },
    ]
    assert (shown["rows_in"], shown["dropped_by_watermark"], shown["state_rows"]) == (15, 4, 3)


def test_a_run_says_how_many_rows_sparks_watermark_has_dropped() -> None:
    late = OperatorProgress("stateStoreSave", 3, 2, 7, 4)
    batches = [BatchProgress(number, 5, None, (late,)) for number in (0, 1)]
    assert StreamProfile().amount_set_aside(Outcome("flow", None, {}, 0, batches=batches)) == (
        "8 rows dropped below Spark's watermark"
    )
    assert StreamProfile().amount_set_aside(Outcome("flow", None, {}, 0, batches=[])) == ""


def test_a_state_names_awaited_then_slowest_splits_and_silences() -> None:
    keys = {"type": "stream", "event_time": "ts", "split": "d", "timeout": 5, "splits": ["a", "new"]}
    flow = Dataflow.model_validate(
        {
            "name": "flow",
            "source": {"type": "table", "table": "bronze/events"},
            "watermark": keys,
            "target": {"load": "append"},
        }
    )
    splits = {"a": Split(1000), "b": Split(20, idle=5), "c": Split(None, idle=1)}
    state = serialise(StreamState(splits, 1000, epoch=1).watermark())
    entry = next_entry(None, kind="stream", app_id="a", fingerprint="", why="run", watermark=state, rows=0)
    assert StreamProfile().state_lines(flow, entry) == [
        "split c: awaited: no row yet, no rows for 1 epoch",
        "split new: awaited: no row yet",
        "split b: up to 20, no rows for 5 epochs, idle (exclude)",
        "split a: up to 1,000",
    ]


def test_a_plan_names_an_epoch_by_the_number_that_its_rows_will_have() -> None:
    described = {"epoch": 8, "files": None, "versions": {"first": 3, "last": 4}, "reason": "new"}
    assert StreamProfile().plan_line(1, described) == "epoch 8: versions 3 to 4"
