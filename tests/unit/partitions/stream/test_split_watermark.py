"""The watermark filter against a row-by-row reading of its rule."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from partitions.stream.split_watermark import raise_watermark
from tests.support.stream_oracle.filter import held_before_each, quarantine_reason, sift

_CHUNK = st.lists(st.none() | st.integers(-20, 60), max_size=5)


@given(chunks=st.lists(_CHUNK, max_size=8), timeouts=st.lists(st.integers(0, 30), min_size=8, max_size=8))
def test_rows_are_in_one_place_under_any_timeout(chunks: list[list[int | None]], timeouts: list[int]) -> None:
    held: int | None = None
    for chunk, timeout in zip(chunks, timeouts, strict=False):
        rows = list(enumerate(chunk))
        sifted = sift(rows, lambda row: row[1], held, timeout)
        assert [row for row in rows if row in sifted.quarantined] == [row for row in rows if row[1] is None]
        bound = held
        assert list(sifted.late) == [
            (i, at) for i, at in rows if at is not None and bound is not None and at < bound
        ]
        assert len(sifted.on_time) + len(sifted.late) + len(sifted.quarantined) == len(rows)
        assert held is None or (sifted.watermark is not None and sifted.watermark >= held)
        times = [at for at in chunk if at is not None]
        assert sifted.watermark == max([*([] if held is None else [held]), *([max(times) - timeout] if times else [])], default=None)  # fmt: skip
        held = sifted.watermark


@given(chunks=st.lists(_CHUNK, max_size=8), timeout=st.integers(0, 30), cut=st.integers(0, 8))
def test_prefix_maxima_judge_any_chunks(chunks: list[list[int | None]], timeout: int, cut: int) -> None:
    highest = [max((at for at in chunk if at is not None), default=None) for chunk in chunks]
    held: list[int | None] = [None]
    for chunk in chunks:
        held.append(sift(chunk, lambda at: at, held[-1], timeout).watermark)
    assert list(held_before_each(None, highest, timeout)) == held
    first = held_before_each(None, highest[:cut], timeout)
    assert [*first[:-1], *held_before_each(first[-1], highest[cut:], timeout)] == held


def test_a_timeout_beyond_the_first_datetime_stops_there() -> None:
    assert raise_watermark(None, datetime(1, 1, 2), timedelta(days=9)) == datetime.min  # noqa: DTZ001, DTZ901
    zoned = datetime(1, 1, 2, tzinfo=UTC)
    assert raise_watermark(None, zoned, timedelta(days=9)) == datetime.min.replace(tzinfo=UTC)


def test_a_row_without_a_place_in_any_order_says_why() -> None:
    assert quarantine_reason(None, None, None) == "null_event_time"
    assert quarantine_reason(5, None, None) == "null_split"
    assert quarantine_reason(5, "a", 4) == "future_event_time"
    assert quarantine_reason(4, "a", 4) is None
