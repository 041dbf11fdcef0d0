"""What a stream watermark may declare, and what it does not go together with."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from partitions.dataflow import Dataflow
from partitions.fingerprint import fingerprint, identity
from partitions.stream.definition import StreamWatermark


def flow(watermark: dict[str, Any] | None = None, **parts: Any) -> Dataflow:
    declared = {"type": "stream", "event_time": "ts", "timeout": "PT5M"} | (watermark or {})
    given = {"name": "readings", "layer": "silver", "source": {"type": "table", "table": "bronze/events"}}
    return Dataflow.model_validate(given | {"watermark": declared} | parts)


def refused(watermark: dict[str, Any] | None = None, **parts: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        flow(watermark, **parts)
    return str(caught.value)


def test_a_stream_says_its_event_time_and_timeout_and_has_defaults_for_the_rest() -> None:
    watermark = flow({"split": ["region", "device"]}).stream
    assert watermark.timeout == timedelta(minutes=5)
    assert watermark.split_columns == ("region", "device")
    assert (watermark.engine, watermark.late, watermark.idle, watermark.idle_after) == (
        "splits",
        "divert",
        "exclude",
        5,
    )


def test_whole_numbers_take_a_whole_number_as_timeout() -> None:
    assert flow({"timeout": 10}).stream.policy.timeout == 10


FILES = {"source": {"type": "files", "path": "in", "format": "ndjson"}}


@pytest.mark.parametrize("key", StreamWatermark.SPLITS_ONLY)
def test_keys_of_splits_are_refused_beside_structured_streaming(key: str) -> None:
    values: dict[str, Any] = {
        "split": "device",
        "order_by": ["id"],
        "late": "drop",
        "splits": ["a"],
        "min_splits": 2,
        "idle": "stall",
        "idle_after": 2,
        "scaling": "unit",
        "max_ahead": "P1D",
        "buffer": {"max_rows": 1},
    }
    assert f"watermark.{key}: expected no such key, or engine: splits" in refused(
        {"engine": "structured_streaming", key: values[key]}
    )


@pytest.mark.parametrize(
    ("watermark", "parts", "expected"),
    [
        ({"splits": ["a"]}, {}, "watermark.splits: expected watermark.split beside it"),
        ({"timeout": 5, "max_ahead": "P1D"}, {}, "watermark.timeout: expected durations in all of them for a timestamp"),
        ({}, {"sql": "select * from input"}, "sql: expected no step"),
        ({}, {"target": {"load": "overwrite"}}, "target.load: expected append"),
        ({}, {"target": {"shared": True}}, "target.shared: expected a table of its own"),
        ({}, {"target": {"format": "parquet"}}, "target.format: expected delta or iceberg (a Parquet table moves files"),
        ({}, {"target": {"partition_by": ["d"]}}, "target.partition_by: expected no such key"),
        ({}, {"maintenance": {"optimize": "P1D"}}, "maintenance.optimize: expected no such key"),
        ({}, {"source": {"type": "jdbc", "connection": "db", "table": "t"}}, "watermark.type: expected a source of type table or files"),
        ({"scope": "global"}, {}, "watermark.scope: expected no such key, or a source of type files"),
        ({"settle": "PT1M"}, {}, "watermark.settle: expected no such key, or a source of type files"),
        ({"scope": "global", "time_template": "%Y"}, FILES, "time_template and close_after close partitions"),
    ],
)  # fmt: skip
def test_what_a_stream_does_not_go_together_with_is_refused_at_its_key(
    watermark: dict[str, Any], parts: dict[str, Any], expected: str
) -> None:
    assert expected in refused(watermark, **parts)


def test_close_after_closes_folders_with_times_and_not_on_spark() -> None:
    assert flow({"close_after": "PT1H"}).stream.close_after == timedelta(hours=1)
    assert flow({"close_after": "PT1H"}, **FILES).stream.above_files.close_after is None
    named = flow({"close_after": "PT1H", "time_template": "*/day=%Y-%m-%d"}, **FILES).stream
    assert named.above_files.close_after == named.close_after == timedelta(hours=1)
    assert fingerprint(flow({"close_after": "PT1H"})) == fingerprint(flow())
    assert (
        "watermark.close_after: expected no such key, since nothing but a later row raises Spark's watermark"
        in refused({"engine": "structured_streaming", "close_after": "PT1H"})
    )


def test_engine_event_time_and_split_are_what_the_state_depends_on() -> None:
    assert flow({"split": "device"}).watermark.identity() == {
        "engine": "splits",
        "event_time": "ts",
        "split": ["device"],
    }
    assert fingerprint(flow({"late": "drop", "timeout": "PT1H"})) == fingerprint(flow())
    files = fingerprint(flow(**FILES))
    assert fingerprint(flow({"scope": "partition", "settle": "PT1M"}, **FILES)) == files
    assert fingerprint(flow({"scope": "global"}, **FILES)) != files


def test_where_a_stream_begins_is_part_of_its_identity_and_earliest_is_not_told() -> None:
    table = {"type": "table", "table": "bronze/events"}
    plain, begun = flow(), flow(source=table | {"from": 3, "on_change": "skip"})
    assert fingerprint(flow(source=table | {"from": "earliest", "on_change": "skip"})) == fingerprint(plain)
    assert identity(begun)["source"]["from"] == 3


@pytest.mark.parametrize(("key", "value"), [("from", "latest"), ("on_change", "skip")])
def test_keys_of_a_stream_over_a_table_are_refused_beside_other_watermarks(key: str, value: str) -> None:
    source = {"type": "table", "table": "bronze/events", key: value}
    expected = f"source.{key}: expected no such key \\(only a watermark of type offset, or a stream with engine: splits, has it\\), found {value}"
    column = {"type": "column", "columns": ["id"]}
    given = {"name": "readings", "source": source, "watermark": column}
    with pytest.raises(ValidationError, match=expected):
        Dataflow.model_validate(given)
