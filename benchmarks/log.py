"""Measures appends and reads of the newest entry, with 1, 1,000 and 100,000 entries.

The stores are a folder, S3 and PostgreSQL.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import obstore

from benchmarks.measure import CHECKOUT, median, report
from resources.connections.places import Place
from resources.watermarks.blobs import open_blobs
from resources.watermarks.entry import Entry, new_id, utc_now
from resources.watermarks.log import WatermarkLog

SIZES = (1, 1_000, 100_000)
RUNS = 30
FLOW = "flow"
_CALLS = ("read", "append")


@dataclass
class History:
    """A log of some length in one store.

    Attributes:
        log: the log, directly on the store.
        counted: the same log through a proxy that counts; None for a folder.
        requests: returns the number of requests that the proxy has seen.
        newest: the number of the newest entry.
        walls: seconds of each call, by its kind.
        cpus: CPU seconds of each call, by its kind.
    """

    store: str
    size: int
    log: WatermarkLog
    counted: WatermarkLog | None = None
    requests: Callable[[], int] = lambda: 0
    newest: int = 0
    walls: dict[str, list[float]] = field(default_factory=lambda: {call: [] for call in _CALLS})
    cpus: dict[str, list[float]] = field(default_factory=lambda: {call: [] for call in _CALLS})

    def __post_init__(self) -> None:
        """Put a real entry on top of the empty ones."""
        self.newest = self.size - 1
        self.call("append", self.log)

    def call(self, call: str, log: WatermarkLog) -> None:
        """Read the newest entry, or append the next one."""
        if call == "append":
            log.append(FLOW, _entry(self.newest + 1), expected=self.newest)
            self.newest += 1
        else:
            entry = log.newest(FLOW)
            assert entry is not None
            assert entry.number == self.newest

    def measure(self, call: str) -> None:
        """Time one call."""
        wall, cpu = time.perf_counter(), time.process_time()
        self.call(call, self.log)
        self.cpus[call].append(time.process_time() - cpu)
        self.walls[call].append(time.perf_counter() - wall)

    def row(self) -> dict[str, Any]:
        """Return the median costs of the calls."""
        row: dict[str, Any] = {"store": self.store, "entries": self.size}
        for call in _CALLS:
            row |= {
                f"{call} requests": self._count(call),
                f"{call} ms": median(self.walls[call]) * 1000,
                f"{call} cpu ms": median(self.cpus[call]) * 1000,
            }
        return row

    def _count(self, call: str) -> int | None:
        if self.counted is None:
            return None
        self.call(call, self.counted)  # opens the connection, which does not count
        before = self.requests()
        self.call(call, self.counted)
        return self.requests() - before


def run() -> None:
    """Measure all logs in turn."""
    sys.path.insert(0, str(CHECKOUT))
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        makers = (_local(folder), _s3(stack, folder), _postgres(stack))
        histories = [make(size) for size in SIZES for make in makers]
        for _ in range(RUNS):
            for history in histories:
                for call in _CALLS:
                    history.measure(call)
        rows = [history.row() for history in histories]
    report("log", rows, _notes(rows))


def _notes(rows: list[dict[str, Any]]) -> list[str]:
    of = {(row["store"], row["entries"]): row for row in rows}
    # An object store's first page has up to 1,000 names, so it is full from there on.
    most, least = SIZES[-1], SIZES[1]
    return [
        f"{store}: {call} at {most:,} entries / at {least:,}:"
        f" {of[store, most][f'{call} ms'] / of[store, least][f'{call} ms']:.2f} (aim: at most 1.5)"
        for store in dict.fromkeys(row["store"] for row in rows)
        for call in _CALLS
    ]


def _local(folder: Path) -> Callable[[int], History]:
    def make(size: int) -> History:
        root = folder / str(size)
        (root / FLOW / "entries").mkdir(parents=True)
        for number in range(1, size):
            (root / FLOW / "entries" / _name(number)).touch()
        return History("folder", size, WatermarkLog(open_blobs(Place(str(root)))))

    return make


def _s3(stack: ExitStack, folder: Path) -> Callable[[int], History]:
    from tests.support.http import serving
    from tests.support.proxy import CountingProxy
    from tests.support.seaweed import running

    server = stack.enter_context(running(folder))
    bucket = stack.enter_context(server.bucket())
    proxy = stack.enter_context(serving(CountingProxy(server.port)))

    def make(size: int) -> History:
        place = bucket.child(str(size))
        store = place.child(f"{FLOW}/entries").store
        with ThreadPoolExecutor(16) as pool:
            names = [_name(number) for number in range(1, size)]
            list(pool.map(lambda name: obstore.put(store, name, b""), names, chunksize=200))
        counted = WatermarkLog(open_blobs(Place(place.url, server.through(proxy.port))))
        return History(
            "S3", size, WatermarkLog(open_blobs(place)), counted, lambda: len(proxy.record.requests)
        )

    return make


def _postgres(stack: ExitStack) -> Callable[[int], History]:
    from scripts.postgres import running
    from tests.support.http import serving
    from tests.support.wire import Wire

    server = stack.enter_context(running())
    wire = stack.enter_context(serving(Wire(server.port)))

    def make(size: int) -> History:
        database = server.database(f"of_{size}")
        blobs = open_blobs(database)
        blobs.put("made/now", b"")
        server.ask(
            "INSERT INTO {schema}.watermark_log SELECT %s, format('%%s-%%s.json', 9999999999 - number,"
            " lpad(number::text, 10, '0')), '' FROM generate_series(1::bigint, %s) AS number",
            f"{FLOW}/entries",
            size - 1,
            schema=database.schema,
        )
        counted = WatermarkLog(open_blobs(server.database(database.schema, port=str(wire.port))))
        return History("PostgreSQL", size, WatermarkLog(blobs), counted, lambda: wire.faults.statements)

    return make


def _name(number: int) -> str:
    return f"{9_999_999_999 - number:010d}-{number:010d}.json"


def _entry(number: int) -> Entry:
    return Entry(
        id=new_id(),
        number=number,
        previous=number - 1,
        watermark='{"path": "date=2026-01-28/1769558400-a.ndjson"}',
        why="run",
        time=utc_now(),
        fingerprint="f",
        kind="path",
        app_id="app",
    )
