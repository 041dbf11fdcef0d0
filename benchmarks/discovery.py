"""Measures how one new file is found above 1,000, 10,000 and 100,000 files, against full listings.

The figures are calls, CPU and memory.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.landing import local_history, s3_history
from benchmarks.measure import median, report, script
from resources.connections.places import Place

SIZES = (1_000, 10_000, 100_000)
RUNS = 5


def run() -> None:
    """Measure on a local folder and on a real S3."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from tests.support.seaweed import running

    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for size in SIZES:
            root = Path(folder) / str(size)
            local_history(root, size + 1)
            rows.append(_row("local", size, root, {}))
        with running(Path(folder)) as server:
            for size in SIZES:
                with server.bucket() as place:
                    s3_history(place, size + 1)
                    rows.append(_row("s3", size, place.url, _credentials(place)))
    notes = []
    for store in ("local", "s3"):
        of = {row["history"]: row for row in rows if row["store"] == store}
        notes.append(
            f"{store}: CPU at 100,000 is {of[SIZES[-1]]['cpu ms'] / of[SIZES[0]]['cpu ms']:.2f}x of 1,000 (aim: at most 1.5x)"
        )
        notes.append(
            f"{store}: a full listing of 100,000 costs {of[SIZES[-1]]['full cpu ms'] / of[SIZES[-1]]['cpu ms']:.0f}x the CPU (aim: at least 20x)"
        )
    report("discovery", rows, notes)


def _row(store: str, size: int, root: object, environment: dict[str, str]) -> dict[str, Any]:
    listings = [script("find_new", root, size, environment=environment) for _ in range(RUNS)]
    full = [script("full_listing", root, environment=environment) for _ in range(3)]
    spark = script("spark_listing", root) if store == "local" else None
    return {
        "store": store,
        "history": size,
        "calls": listings[0]["calls"],
        "found": listings[0]["found"],
        "cpu ms": median([listing["cpu"] for listing in listings]) * 1000,
        "memory MiB": median([listing["memory"] for listing in listings]),
        "full calls": full[0]["calls"],
        "full cpu ms": median([listing["cpu"] for listing in full]) * 1000,
        "full memory MiB": median([listing["memory"] for listing in full]),
        "Spark file source cpu ms": spark["cpu"] * 1000 if spark else None,
    }


def _credentials(place: Place) -> dict[str, str]:
    connection = place.connection
    assert connection is not None
    return {
        "BENCH_ENDPOINT": connection.endpoint or "",
        "BENCH_KEY": connection.access_key_id or "",
        "BENCH_SECRET": connection.secret_access_key or "",
    }
