"""What a text means as an event time before which rows of a stream leave."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from partitions.dataflow import Dataflow
from partitions.errors import ConfigurationError
from resources.kinds.stream.flush import event_time_of

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def stream(timeout: Any) -> Dataflow:
    keys = {"type": "stream", "event_time": "ts", "timeout": timeout}
    source = {"type": "table", "table": "bronze/events"}
    return Dataflow.model_validate({"name": "readings", "source": source, "watermark": keys})


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-01-31", datetime(2026, 1, 31, tzinfo=UTC)),
        ("2026-01-31T12:00", datetime(2026, 1, 31, 12, tzinfo=UTC)),
        ("2026-01-31T12:00:00.000001+02:00", datetime(2026, 1, 31, 10, 0, 0, 1, tzinfo=UTC)),
        ("P1D", NOW.replace(hour=0) - timedelta(days=1)),
        ("-", NOW),
    ],
)
def test_a_time_without_a_zone_is_utc_and_spans_lie_before_now(text: str, at: datetime) -> None:
    assert event_time_of(stream("PT5M"), text, NOW) == at


def test_beside_whole_numbers_it_is_one_of_64_bits() -> None:
    assert event_time_of(stream(5), "-17", NOW) == -17
    for text in ("2026-01-31", "1.5", str(2**63)):
        with pytest.raises(ConfigurationError, match="expected a whole number of 64 bits"):
            event_time_of(stream(5), text, NOW)


def test_any_other_text_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="--before"):
        event_time_of(stream("PT5M"), "soon", NOW)
