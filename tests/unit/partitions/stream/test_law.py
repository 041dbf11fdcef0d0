"""The law of a stream, against a plain reading: what it gives is the batch over the rows above the filter, and every row is in one place."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from partitions.stream.splits import SplitOptions
from partitions.stream.windows import Hop
from tests.support.plain_stream import Chunk, PlainStream
from tests.support.stream_oracle.filter import quarantine_reason
from tests.support.stream_oracle.ordering import Order, Row
from tests.support.stream_oracle.sessions import SessionBuffer
from tests.support.stream_oracle.windows import WindowBuffer

_ORDER = Order("ts", ("id",))
_NAMES = "abcd"

_ROW = st.tuples(st.none() | st.integers(0, 60) | st.just(99_999), st.none() | st.sampled_from(_NAMES))
_CHUNKS = st.lists(st.lists(_ROW, max_size=5), max_size=10)
_LATEST = 10_000


def _chunks(drawn: list[list[tuple[Any, Any]]]) -> list[Chunk]:
    """Files in order; each row has a number of its own."""
    numbers = iter(range(1000))
    return [[{"ts": ts, "split": split, "id": next(numbers)} for ts, split in file] for file in drawn]


def _run(epochs: list[list[Chunk]], splits: SplitOptions, *, unread: bool = False) -> PlainStream:
    """The stream, by the product's operators."""
    out = PlainStream(_ORDER, latest=_LATEST)
    for number, files in enumerate(epochs):
        out.epoch(files, splits, counts=not (unread and number < len(epochs) - 1))
    return out


def _cut(files: list[Chunk], cuts: list[int]) -> list[list[Chunk]]:
    """The files in epochs that end after these; no epoch without files."""
    ends = sorted({cut for cut in cuts if 0 < cut < len(files)} | {len(files)})
    return [files[start:end] for start, end in zip([0, *ends], ends, strict=False) if start < end]


_CUTS = st.lists(st.integers(0, 10), max_size=5)
_SPLITS = st.builds(
    SplitOptions,
    timeout=st.integers(0, 20),
    declared=st.frozensets(st.sampled_from(_NAMES), max_size=3),
    least=st.integers(0, 3),
    idle=st.sampled_from(["exclude", "adopt_max", "stall"]),
    idle_after=st.integers(1, 3),
    scaling=st.sampled_from(["split", "unit"]),
)


@given(drawn=_CHUNKS, cuts=_CUTS, splits=_SPLITS, unread=st.booleans())
def test_every_row_is_in_one_place_and_sorted_rows_are_the_batch(
    drawn: list[Any], cuts: list[int], splits: SplitOptions, unread: bool
) -> None:
    files = _chunks(drawn)
    out = _run(_cut(files, cuts), splits, unread=unread)
    rows = [row["id"] for file in files for row in file]
    places = [*out.rows, *_late(out), *_bad(out), *out.buffer.rows]
    assert sorted(row["id"] for row in places) == rows
    left = {row["id"] for row in (*_late(out), *_bad(out))}
    kept = [row for file in files for row in file if row["id"] not in left]
    value = out.state.value
    batch = sorted(
        (row for row in kept if value is not None and row["ts"] < value),
        key=lambda row: (row["ts"], row["id"]),
    )
    assert tuple(out.rows) == tuple(batch)
    known = [at for at in out.values if at is not None]
    assert known == sorted(known)
    assert None not in out.values[len(out.values) - len(known) :]


@given(drawn=_CHUNKS, cuts=_CUTS, timeout=st.integers(0, 20), scaling=st.sampled_from(["split", "unit"]))
def test_where_epochs_are_cut_changes_nothing_for_declared_splits_under_stall(
    drawn: list[Any], cuts: list[int], timeout: int, scaling: Any
) -> None:
    splits = SplitOptions(timeout, frozenset(_NAMES), idle="stall", idle_after=1, scaling=scaling)
    files = _chunks(drawn)
    once, often = _run(_cut(files, []), splits), _run(_cut(files, cuts), splits)
    assert once.rows == often.rows
    assert _ORDER.sorted(once.buffer.rows) == _ORDER.sorted(often.buffer.rows)
    assert sorted(_ids(_late(once))) == sorted(_ids(_late(often)))
    assert _ids(_bad(once)) == _ids(_bad(often))
    assert {name: split.watermark for name, split in once.state.splits.items()} == {
        name: split.watermark for name, split in often.state.splits.items()
    }
    assert once.state.value == often.state.value


def _late(out: PlainStream) -> list[Row]:
    return [late.row for late in out.late]


def _bad(out: PlainStream) -> list[Row]:
    return [row for row, _ in out.quarantined]


def _ids(rows: list[Row]) -> list[int]:
    return [row["id"] for row in rows]


@given(drawn=_CHUNKS, cuts=_CUTS, timeout=st.integers(0, 20))
def test_declared_splits_are_judged_by_their_files(drawn: list[Any], cuts: list[int], timeout: int) -> None:
    files = _chunks(drawn)
    out = _run(_cut(files, cuts), SplitOptions(timeout, frozenset(_NAMES), idle="stall"))
    late, highest = [], dict.fromkeys(_NAMES, -1000)
    for file in files:
        good = [row for row in file if quarantine_reason(row["ts"], row["split"], _LATEST) is None]
        late += [row["id"] for row in good if row["ts"] < highest[row["split"]] - timeout]
        for row in good:
            highest[row["split"]] = max(highest[row["split"]], row["ts"])
    assert sorted(_ids(_late(out))) == late
    if files:
        slowest = min(highest.values())
        assert out.state.value == (None if slowest == -1000 else slowest - timeout)


@given(drawn=_CHUNKS, cuts=_CUTS, size=st.integers(1, 15), gap=st.integers(0, 8), timeout=st.integers(0, 10))
def test_windows_and_sessions_do_not_depend_on_where_epochs_are_cut(
    drawn: list[Any], cuts: list[int], size: int, gap: int, timeout: int
) -> None:
    splits = SplitOptions(timeout, frozenset("abc"), idle="stall")
    drawn = [[(ts, "abc"[ord(split) % 3] if split else None) for ts, split in file] for file in drawn]
    files = _chunks(drawn)
    found = [_emitted(_cut(files, some), splits, size, gap) for some in ([], cuts)]
    assert found[0] == found[1]


def _emitted(
    epochs: list[list[Chunk]], splits: SplitOptions, size: int, gap: int
) -> tuple[list[Any], list[Any]]:
    """Windows and sessions as they close, epoch by epoch."""
    windows, sessions = WindowBuffer(Hop(size, size), _ORDER), SessionBuffer(gap, ("split",), _ORDER)
    closed_windows: list[Any] = []
    closed_sessions: list[Any] = []
    given_out = 0
    for count in range(1, len(epochs) + 1):
        out = _run(epochs[:count], splits)
        fresh, given_out = out.rows[given_out:], len(out.rows)
        windows, done = windows.took(fresh).closed(out.state.value)
        sessions, ended = sessions.took(fresh).closed(out.state.value)
        closed_windows += done
        closed_sessions += ended
    return closed_windows, sorted(
        closed_sessions, key=lambda session: (session.last, session.first, session.group)
    )


def test_three_splits_of_which_one_is_an_hour_behind_lose_no_row() -> None:
    hour, number = 3600, iter(range(10**6))
    epochs: list[list[Chunk]] = [
        [[{"ts": at - (hour if name == "c" else 0), "split": name, "id": next(number)} for name in "abc" for at in range(start, start + 100)]]
        for start in range(hour, 2 * hour, 100)
    ]  # fmt: skip
    out = _run(epochs, SplitOptions(300, least=3))
    assert not out.late
