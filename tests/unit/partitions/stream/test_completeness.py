"""What windows with ``to: watermark`` wait for: below which time the table of a stream has all its rows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from partitions.dataflow import Dataflow
from partitions.stream.completeness import complete_columns, complete_up_to, completeness_refusal

HOURLY = {"type": "aggregate", "window": {"type": "tumble", "size": "PT1H"}, "aggregates": {"n": "count(*)"}}
HOPPING = HOURLY | {"window": {"type": "hop", "size": "PT3H", "slide": "PT1H"}}
SESSIONS = HOURLY | {"window": {"type": "session", "gap": "PT10M"}}


def over(**column: Any) -> dict[str, Any]:
    return {"type": "over", "columns": {"value": column}}


def keeping(column: str) -> Dataflow:
    retained = {"retention": {"column": column, "keep": "P30D"}}
    target = stream().target.model_validate({"load": "append", **retained})
    return stream().model_copy(update={"target": target})


def stream(*operators: dict[str, Any], **watermark: Any) -> Dataflow:
    declared = {"type": "stream", "event_time": "ts", "split": "device", "timeout": "PT5M"} | watermark
    source = {"type": "table", "table": "bronze/events"}
    return Dataflow.model_validate(
        {
            "name": "readings",
            "layer": "silver",
            "source": source,
            "watermark": declared,
            "operators": list(operators),
        }
    )


def daily(column: str = "ts", to: str = "watermark", table: str = "silver/readings") -> Dataflow:
    days = {"name": "day", "type": "datetime", "range": {"from": "2026-01-01", "to": to}}
    return Dataflow.model_validate(
        {
            "name": "days",
            "layer": "gold",
            "source": {"type": "table", "table": table, "window_column": column},
            "watermark": {"type": "window", "definition": [days], "window": "daily", "partial": False},
            "target": {"load": "merge_overwrite", "replace_by_watermark": True},
        }
    )


def at(hour: int, minute: int = 0) -> datetime:
    return datetime(2026, 1, 2, hour, minute, tzinfo=UTC)


@pytest.mark.parametrize(
    ("operators", "columns"),
    [
        ((), ("ts",)),
        ((HOURLY,), ("window_start", "window_end")),
        ((SESSIONS,), ("window_end",)),
        ((over(fn="lag", column="v"),), ("ts",)),
        ((over(fn="lead", column="v"),), ()),
        ((over(fn="max", column="v", frame=[-2, 1]),), ()),
    ],
)
def test_a_table_is_complete_by_the_times_that_leave_in_order(
    operators: tuple[dict[str, Any], ...], columns: tuple[str, ...]
) -> None:
    assert complete_columns(stream(*operators)) == columns


@pytest.mark.parametrize(
    ("operator", "column", "expected"),
    [
        (HOURLY, "window_end", at(5, 30)),
        (HOURLY, "window_start", at(5)),
        (HOPPING, "window_end", at(5, 30)),
        (HOPPING, "window_start", at(3)),
    ],
)
def test_windows_end_before_the_first_open(operator: dict[str, Any], column: str, expected: datetime) -> None:
    assert complete_up_to(stream(operator), column, at(5, 30)) == expected


def test_a_window_that_ends_at_the_watermark_is_complete() -> None:
    assert complete_up_to(stream(HOURLY), "window_start", at(5)) == at(5)


def test_nothing_is_complete_before_there_is_a_global_watermark() -> None:
    assert complete_up_to(stream(), "ts", None) is None


@pytest.mark.parametrize(
    ("reader", "makers", "found"),
    [
        (daily(), (), "to: watermark over silver/readings, which no stream with engine: splits loads"),
        (daily("id"), (stream(),), "id"),
        (daily(), (stream(over(fn="lead", column="v")),), "ts"),
        (
            daily(),
            (stream(timeout=5),),
            "to: watermark over silver/readings, whose event times are whole numbers",
        ),
        (
            daily(),
            (keeping("seen_at"),),
            "to: watermark over silver/readings, whose retention by seen_at deletes rows of any window",
        ),
    ],
)
def test_windows_that_would_wait_for_nothing_are_refused(
    reader: Dataflow, makers: tuple[Dataflow, ...], found: str
) -> None:
    refusal = completeness_refusal(reader, makers)
    assert refusal is not None
    assert refusal.actual == found


def test_windows_of_a_stream_s_event_time_and_windows_that_do_not_wait_are_taken() -> None:
    assert completeness_refusal(daily(), (stream(),)) is None
    assert completeness_refusal(daily(), (keeping("ts"),)) is None
    assert completeness_refusal(daily(to="-"), ()) is None
