"""What a run of a stream shows in Dagster."""

from __future__ import annotations

from datetime import UTC, datetime

from dagster import TableMetadataValue

from platform_assets.kinds.stream.profile import StreamProfile
from resources.loop.outcome import Outcome
from resources.streaming.progress import BatchProgress, OperatorProgress


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
