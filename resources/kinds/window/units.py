"""The rows of any source as units of windows: without Spark, bounded in time, complete or an error.

See docs/reference/windows.md, Units.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from queue import Empty, Full, Queue
from threading import Event, Lock, Thread
from typing import Any

from partitions.errors import SourceError, SourceUnreachable

Row = Mapping[str, Any]

SECONDS = 20.0
"""The seconds that reading all rows may take: a sensor's tick waits for them, too."""

_CHUNK, _WAITING = 500, 4
_LOOK_AROUND = 0.2

_asking: dict[str, tuple[Thread, float]] = {}
"""By source: the thread that reads it, and until when that may take."""

_lock = Lock()


def rows_in_time(
    what: str, rows: Callable[[], Iterator[Row]], columns: Sequence[str], seconds: float = SECONDS
) -> Iterator[Row]:
    """Yield rows that a thread reads, so that a source that hangs does not block the caller.

    While the thread of an earlier call still reads the same source, no second one is started. A later
    caller, such as another sensor or a run, waits for that thread, at most until its time is up.

    Args:
        what: the source in words, for errors; unique in the process.
        rows: reads the rows; it is stopped between two rows if the caller wants no more, or time is up.
        columns: the columns that at least one row must have, if there are rows.
        seconds: the time for all rows.

    Raises:
        SourceError: the source refuses; or no row has a column.
        SourceUnreachable: it does not answer in time.
    """
    seen_columns, names = set[str](), dict[str, None]()
    for row in _in_thread(what, rows, seconds):
        if len(seen_columns) < len(columns):
            seen_columns |= {name for name in columns if name in row}
            names |= dict.fromkeys(row)
        yield row
    missing = [name for name in columns if name not in seen_columns]
    if names and missing:
        raise SourceError(f"{what}: expected rows with {', '.join(missing)}, found only {', '.join(names)}")


def _in_thread(what: str, rows: Callable[[], Iterator[Row]], seconds: float) -> Iterator[Row]:
    over = Event()
    items: Queue[list[Row] | Exception | None] = Queue(_WAITING)

    def give(item: list[Row] | Exception | None) -> None:
        while not over.is_set():
            try:
                items.put(item, timeout=_LOOK_AROUND)
            except Full:
                continue
            return

    def read() -> None:
        chunk: list[Row] = []
        try:
            for row in rows():
                chunk.append(row)
                if len(chunk) == _CHUNK:
                    give(chunk)
                    chunk = []
                if over.is_set():
                    return
            give(chunk)
            give(None)
        except Exception as error:  # noqa: BLE001 - raised where the rows are wanted
            give(error)

    until = _start(what, Thread(target=read, name=f"units of {what}", daemon=True), seconds)
    try:
        while True:
            try:
                item = items.get(timeout=max(0.0, until - time.monotonic()))
            except Empty:
                raise SourceUnreachable(
                    f"{what}: expected all rows within {seconds:g} s, but the read did not end. Nothing "
                    "was planned; the next look asks again"
                ) from None
            if item is None:
                return
            if isinstance(item, Exception):
                raise item
            yield from item
    finally:
        over.set()


def _start(what: str, thread: Thread, seconds: float) -> float:
    """Start a thread after an earlier one has ended; return until when it may read."""
    patience = time.monotonic() + seconds
    while True:
        with _lock:
            earlier, ends = _asking.get(what, (None, 0.0))
            if earlier is None or not earlier.is_alive():
                until = time.monotonic() + seconds
                _asking[what] = thread, until
                thread.start()
                return until
        # One that was left between two rows is about to end, too.
        earlier.join(max(min(ends, patience) - time.monotonic(), _LOOK_AROUND * 2))
        if earlier.is_alive():
            raise SourceUnreachable(
                f"{what}: an earlier read still waits for its answer. Nothing was planned; the next look "
                "asks again"
            )
