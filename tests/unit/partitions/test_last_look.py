"""Whether another run may find rows in a source that only a read tells more of."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from partitions.instants import milliseconds
from partitions.last_look import SourceSnapshot
from partitions.unit_values import ValueType


def ms(text: str) -> int:
    return milliseconds(datetime.fromisoformat(text).replace(tzinfo=UTC))


NOON, NEXT = ms("2026-05-01T12:00:00"), ms("2026-05-02T00:00:00")


def test_a_source_that_has_changed_may_hold_more() -> None:
    look = SourceSnapshot("a", NOON, NOON, ())
    assert [look.may_hold_more(contents, NOON, UTC) for contents in ("a", "b")] == [False, True]


@pytest.mark.parametrize(
    ("kind", "seen", "now", "more"),
    [
        ("instant", NOON - 1, NOON - 1, False),
        ("instant", NOON - 1, NOON, True),
        ("local", NOON - 1, NOON, True),
        ("instant", NOON, NOON + 10**9, False),
        ("day", NOON, NOON + 1, False),
        ("day", NOON, NEXT - 1, False),
        ("day", NOON, NEXT, True),
        ("day", NEXT, NEXT + 10**9, False),
        ("whole", 0, NEXT, False),
        ("text", 0, NEXT, False),
    ],
)
def test_an_unchanged_source_may_hold_more_in_time(kind: ValueType, seen: int, now: int, more: bool) -> None:
    assert SourceSnapshot("a", NOON, seen, (kind,)).may_hold_more("a", now, UTC) is more


def test_days_end_in_the_zone_of_the_watermark() -> None:
    look = SourceSnapshot("a", NOON, NOON, ("day",))
    berlin = ZoneInfo("Europe/Berlin")
    assert [look.may_hold_more("a", ms(f"2026-05-01T{time}"), berlin) for time in ("21:59:59", "22:00:00")] == [False, True]  # fmt: skip


def test_it_is_kept_as_json() -> None:
    look = SourceSnapshot("a", 1, 2, ("day", "whole"))
    assert SourceSnapshot.of(json.loads(json.dumps(look.as_json()))) == look
