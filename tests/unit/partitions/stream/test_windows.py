"""Sort, windows, sessions and over-windows: what comes out step by step is what a batch gives of the rows below the global watermark."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partitions.stream.drain import drain_segments, remaining_segments
from partitions.stream.over import OverCall
from partitions.stream.state import Segment
from partitions.stream.windows import Hop
from tests.support.stream_oracle.ordering import Order, Row
from tests.support.stream_oracle.over import Over
from tests.support.stream_oracle.sessions import SessionBuffer
from tests.support.stream_oracle.sort import SortBuffer
from tests.support.stream_oracle.windows import WindowBuffer

_ORDER = Order("ts", ("id",))
_STEPS = st.lists(
    st.tuples(
        st.lists(
            st.tuples(st.integers(0, 12), st.sampled_from("pq"), st.none() | st.integers(0, 9)), max_size=5
        ),
        st.integers(0, 8),
    ),
    max_size=8,
)


def _steps(drawn: list[Any]) -> list[tuple[list[Row], int]]:
    """Rows at or above the global watermark of the step before, and the one of this step."""
    found: list[tuple[list[Row], int]] = []
    value, number = 0, 0
    for rows, rise in drawn:
        named: list[Row] = []
        for at, group, v in rows:
            number += 1
            named.append({"ts": value + at, "id": number, "p": group, "v": v})
        value += rise
        found.append((named, value))
    return found


def _below(steps: list[tuple[list[Row], int]]) -> list[Row]:
    """The batch reading: all rows below the last global watermark, in order."""
    rows = [row for step, _ in steps for row in step if row["ts"] < steps[-1][1]]
    return sorted(rows, key=lambda row: (row["ts"], row["id"]))


@given(drawn=_STEPS)
def test_the_sort_gives_the_rows_of_each_epoch_in_order_and_between_its_bounds(drawn: list[Any]) -> None:
    steps, buffer, before = _steps(drawn), SortBuffer(_ORDER), 0
    out: list[Row] = []
    for rows, value in steps:
        buffer, left = buffer.took(rows).drained(value)
        assert all(before <= row["ts"] < value for row in left)
        out, before = [*out, *left], value
    assert not steps or out == _below(steps)
    assert len(out) + len(buffer.rows) == sum(len(rows) for rows, _ in steps)


@given(drawn=_STEPS, size=st.integers(1, 9), slide=st.integers(1, 9))
def test_a_window_is_emitted_once_with_all_rows_at_its_end(drawn: list[Any], size: int, slide: int) -> None:
    steps, hop = _steps(drawn), Hop(size, min(size, slide))
    buffer, windows = SortBuffer(_ORDER), WindowBuffer(hop, _ORDER)
    out: list[Any] = []
    for rows, value in steps:
        buffer, left = buffer.took(rows).drained(value)
        windows, done = windows.took(left).closed(value)
        out += done
        needed = hop.live_from(value)
        assert all(row["ts"] >= needed for held in windows.open.values() for row in held)
    ends = [end for (_, end), _ in out]
    assert ends == sorted(ends)
    if steps:
        last = steps[-1][1]
        batch = {
            (start, start + size): [row for row in _below(steps) if start <= row["ts"] < start + size]
            for start in range(-size * 2 // hop.slide * hop.slide, last - size + 1, hop.slide)
        }
        assert {window: list(rows) for window, rows in out} == {w: rows for w, rows in batch.items() if rows}
        assert len(out) == len({window for window, _ in out})


@given(drawn=_STEPS, gap=st.integers(0, 6))
def test_a_session_is_emitted_once_and_whole(drawn: list[Any], gap: int) -> None:
    steps = _steps(drawn)
    buffer, sessions, out = SortBuffer(_ORDER), SessionBuffer(gap, ("p",), _ORDER), []
    for rows, value in steps:
        buffer, left = buffer.took(rows).drained(value)
        sessions, done = sessions.took(left).closed(value)
        out += [(found.group, found.first, found.last, found.rows) for found in done]
    if steps:
        assert sorted(out, key=repr) == sorted(_batch_sessions(_below(steps), gap, steps[-1][1]), key=repr)


def _batch_sessions(rows: list[Row], gap: int, value: int) -> list[Any]:
    found: list[Any] = []
    for group in "pq":
        of_group = [row for row in rows if row["p"] == group]
        starts = [i for i, row in enumerate(of_group) if i == 0 or row["ts"] - of_group[i - 1]["ts"] > gap]
        for start, end in zip(starts, [*starts[1:], len(of_group)], strict=False):
            part = tuple(of_group[start:end])
            found.append(((group,), part[0]["ts"], part[-1]["ts"], part))
    return [session for session in found if value > session[2] + gap]


_CALLS = st.lists(
    st.one_of(
        st.builds(OverCall, st.sampled_from(["row_number", "rank", "dense_rank"])),
        st.builds(OverCall, st.sampled_from(["lag", "lead"]), st.just("v"), st.integers(-2, 3)),
        st.builds(
            OverCall,
            st.sampled_from(["max", "sum"]),
            st.just("v"),
            frame=st.tuples(st.integers(-3, 3), st.integers(-3, 3)),
        ),
    ),
    min_size=1,
    max_size=3,
)


@given(drawn=_STEPS, calls=_CALLS, grouped=st.booleans())
def test_an_over_window_has_the_batchs_values(drawn: list[Any], calls: list[OverCall], grouped: bool) -> None:
    steps, named = _steps(drawn), {f"c{number}": call for number, call in enumerate(calls)}
    buffer, over = SortBuffer(_ORDER), Over(("p",) if grouped else (), named, _ORDER)
    out: list[Row] = []
    for rows, value in steps:
        buffer, left = buffer.took(rows).drained(value)
        over, done = over.advanced(left)
        out += done
    batch = _batch_over(_below(steps), named, grouped) if steps else []
    assert sorted(out, key=lambda row: row["id"]) == sorted(batch, key=lambda row: row["id"])


def _batch_over(rows: list[Row], calls: dict[str, OverCall], grouped: bool) -> list[Row]:
    found: list[Row] = []
    for part in [[r for r in rows if r["p"] == g] for g in "pq"] if grouped else [rows]:
        needs = [_frame(call)[1] for call in calls.values() if _frame(call)[0] <= _frame(call)[1]]
        for at in range(len(part) - max([0, *needs])):
            values = {name: _value(call, part, at) for name, call in calls.items()}
            found.append({**part[at], **values})
    return found


def _frame(call: OverCall) -> tuple[int, int]:
    offset = {"lag": -call.offset, "lead": call.offset}.get(call.fn)
    return call.frame if offset is None else (offset, offset)


def _value(call: OverCall, part: list[Row], at: int) -> Any:
    times = [row["ts"] for row in part]
    match call.fn:
        case "row_number":
            return at + 1
        case "rank":
            return times.index(times[at]) + 1
        case "dense_rank":
            return len(set(times[: at + 1]))
    first, last = _frame(call)
    framed = [row["v"] for i, row in enumerate(part) if at + first <= i <= at + last]
    if call.fn in ("lag", "lead"):
        return framed[0] if framed else None
    values = [v for v in framed if v is not None]
    return (max(values) if call.fn == "max" else sum(values)) if values else None


@given(
    spans=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 9)), max_size=6),
    value=st.none() | st.integers(0, 30),
)
def test_a_segment_goes_when_it_has_no_other_rows(spans: list[tuple[int, int]], value: int | None) -> None:
    segments = [Segment(f"s{i}", 1, low, low + more) for i, (low, more) in enumerate(spans)]
    done = drain_segments(segments, value)
    below = [] if value is None else [s for s in segments if s.lowest < value]
    assert list(done.read) == below
    assert list(done.emptied) == [s for s in below if value is not None and s.highest < value]
    assert sorted((*done.emptied, *done.remaining), key=segments.index) == segments


@given(drawn=_STEPS)
def test_segments_carried_by_reference_hold_the_rows_of_the_buffer(drawn: list[Any]) -> None:
    segments: tuple[Segment, ...] = ()
    files: dict[str, list[int]] = {}
    buffer, floor = SortBuffer(_ORDER), 0
    for number, (rows, value) in enumerate(_steps(drawn)):
        was = files | {f"s{number}": [row["ts"] for row in rows]}
        buffer, out = buffer.took(rows).drained(value)
        read = {segment.name for segment in drain_segments(segments, value).read} | {f"s{number}"}
        above = {name: [at for at in times if at >= value] for name, times in was.items()}
        assert sorted(row["ts"] for row in out) == sorted(
            at for name in read for at in was[name] if at not in above[name] and at >= floor
        )
        floor = value
        live = {name: (len(above[name]), min(above[name])) for name in read if above[name]}
        fresh = above[f"s{number}"]
        written = [Segment(f"s{number}", len(fresh), min(fresh), max(fresh))] if fresh else []
        segments = remaining_segments(segments, value, live, written)
        files = {segment.name: was[segment.name] for segment in segments}
        assert sum(segment.rows for segment in segments) == len(buffer.rows)
        assert min((segment.lowest for segment in segments), default=None) == min(
            (row["ts"] for row in buffer.rows), default=None
        )


def test_hours_are_aligned_to_midnight_before_1970_too() -> None:
    hop = Hop(timedelta(hours=1), timedelta(minutes=30))
    at = datetime(1969, 7, 20, 20, 17)  # noqa: DTZ001
    starts = [start.time().isoformat("minutes") for start, _ in hop.windows(at)]
    assert starts == ["19:30", "20:00"]


def test_null_comes_first_among_ties() -> None:
    rows: list[Row] = [{"ts": 1, "id": 2}, {"ts": 1, "id": None}, {"ts": 0, "id": 3}]
    assert [row["id"] for row in _ORDER.sorted(rows)] == [3, None, 2]


@pytest.mark.parametrize("slide", [10, 5])
def test_windows_over_the_first_and_the_last_datetime_end_and_begin_there(slide: int) -> None:
    hop = Hop(timedelta(minutes=10), timedelta(minutes=slide))
    first = datetime.min.replace(tzinfo=UTC)
    last = datetime.max.replace(tzinfo=UTC)
    assert hop.live_from(first) == first
    assert hop.closed_until(first) == first
    assert hop.live_from(last) == datetime(9999, 12, 31, 23, 50, tzinfo=UTC) + timedelta(minutes=10 % slide)
    assert hop.closed_until(last) == datetime(9999, 12, 31, 23, 60 - slide, tzinfo=UTC)
    assert list(hop.windows(last))[-1][1] == last
