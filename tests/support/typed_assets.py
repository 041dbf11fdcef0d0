"""Incremental assets as a type checker sees them: mypy in strict mode accepts these, and refuses what is marked.

Belongs here: what ``make lint`` checks. An ignored error that mypy no longer reports fails it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

from platform_assets.public import IncrementalAsset, Request, incremental_asset


def highest(request: Request, column: str) -> datetime | None:
    """Return the highest value."""
    return None if column == "none" else datetime(2026, 1, 1, tzinfo=UTC)


@incremental_asset(
    watermark={
        "type": "column",
        "columns": ["updated_at"],
        "settle": timedelta(minutes=5),
        "backward": {"days": 1},
    },
    target={
        "load": "merge_upsert",
        "merge_keys": ["id"],
        "retention": {"column": "updated_at", "keep": "P90D"},
    },
    schema={"id": "long", "updated_at": "timestamp"},
    highest=highest,
    params={"pages": 3, "regions": ["eu", "us"], "token": {"env": "TOKEN"}},
    connection="shop",
    schedule="@hourly",
    owners=["team:shop"],
    tags={"domain": "sales"},
    retry={"max": 3, "delay": timedelta(seconds=30), "backoff": "exponential"},
    automation_condition={"on_cron": "0 6 * * *", "timezone": "Europe/Berlin"},
    freshness={"fail": timedelta(days=1)},
    maintenance={"optimize": "P1D"},
)
def orders(request: Request) -> Iterator[dict[str, object]]:
    """Orders of the shop."""
    yield {"id": 1, "updated_at": request.lower or datetime(2026, 1, 1, tzinfo=UTC)}


@incremental_asset(
    watermark={
        "type": "window",
        "definition": [
            {"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": "-"}},
            {"name": "region", "type": "unit", "units": ["eu", "us"]},
        ],
        "window": "daily",
        "grace": timedelta(hours=6),
    },
    target={"load": "merge_overwrite", "replace_by_watermark": True},
    schema=pa.schema([("region", pa.string()), ("day", pa.date32())]),
    window_column="day",
    unit_columns={"region": "region"},
)
def counts(request: Request) -> pa.Table:
    """Counts by day."""
    start, _ = request.time_range
    return pa.Table.from_pylist([{"region": request.unit["region"], "day": start.date()}])


@incremental_asset(watermark={"type": "column", "columns": ["id"]})
def frames(request: Request) -> Iterator[pd.DataFrame | pl.LazyFrame | pa.RecordBatch]:
    """Frames of several libraries."""
    yield pd.DataFrame({"id": [1]})
    yield pl.LazyFrame({"id": [2]})


@incremental_asset(watermark={"type": "column", "columns": ["id"]})
def readers(request: Request) -> pa.RecordBatchReader | ds.Dataset | pl.DataFrame | list[dict[str, int]]:
    """Rows at once, one by one, or in files."""
    return [{"id": 1}]


checked_orders: IncrementalAsset[Iterator[dict[str, object]]] = orders
rows: list[dict[str, object]] = list(orders(orders.request(lower=datetime(2026, 1, 1, tzinfo=UTC))))
table: pa.Table = counts(counts.request(start=datetime(2026, 1, 1, tzinfo=UTC)))


def refused() -> None:
    """Hold what mypy refuses: unknown keys and loads, no watermark, functions without a request or rows."""
    incremental_asset(watermark={"type": "column", "columns": ["a"]}, watermrk=1)  # type: ignore[call-arg]
    incremental_asset(
        watermark={"type": "column", "columns": ["a"]},
        target={"load": "apend"},  # type: ignore[typeddict-item]
    )
    incremental_asset(schema="id long")  # type: ignore[call-arg]

    @incremental_asset(watermark={"type": "column", "columns": ["a"]})  # type: ignore[arg-type]
    def without_request() -> list[dict[str, object]]:
        return []

    @incremental_asset(watermark={"type": "column", "columns": ["a"]})  # type: ignore[type-var]
    def without_rows(request: Request) -> None:
        return None

    @incremental_asset(watermark={"type": "column", "columns": ["a"]})  # type: ignore[type-var]
    def a_text(request: Request) -> str:
        return ""

    @incremental_asset(watermark={"type": "column", "columns": ["a"]})  # type: ignore[type-var]
    async def awaited_by_nobody(request: Request) -> list[dict[str, object]]:
        return []
