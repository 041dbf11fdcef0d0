"""streams.json, without the cases that run on Spark (test_not_yet)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from partitions.stream.filter import sift
from tests.conformance.common import Case


@pytest.mark.cases("streams", "watermark_filter")
def test_watermark_filter(case: Case) -> None:
    given = case["input"]
    watermark, delay = _time(given["watermark"]), given["delay"]
    for step, expected in zip(given["steps"], case["expected"]["steps"], strict=True):
        delay = step.get("set_delay", delay)
        rows = [(name, _time(at)) for name, at in step.get("rows", ())]
        timeout = _span(delay, like=[watermark, *(at for _, at in rows)])
        sifted = sift(rows, lambda row: row[1], watermark, timeout)
        watermark = sifted.watermark
        for place in ("kept", "late", "quarantined"):
            assert [name for name, _ in getattr(sifted, place)] == expected[place]
        assert watermark == _time(expected["watermark"])


def _time(value: Any) -> Any:
    """An event time of a case: an int, or a datetime without offset."""
    return datetime.fromisoformat(value) if isinstance(value, str) else value


def _span(delay: int, like: list[Any]) -> Any:
    """A delay of a case: units of ints, or seconds of datetimes."""
    return timedelta(seconds=delay) if any(isinstance(value, datetime) for value in like) else delay
