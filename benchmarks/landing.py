"""Makes landing zones of any size: a history, and new files above it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import obstore

from partitions.fingerprint import fingerprint
from resources.connections.places import Place

PER_FOLDER = 500


def name(number: int) -> str:
    """Return the name of a file by its number: 500 files a folder, in the order of time."""
    return f"date={2000 + number // PER_FOLDER // 336:04d}-{number // PER_FOLDER // 28 % 12 + 1:02d}-{number // PER_FOLDER % 28 + 1:02d}/{1_700_000_000 + number}-x.ndjson"


def local_history(root: Path, count: int) -> None:
    """Create empty files, which a listing does not open."""
    for number in range(count):
        path = root / name(number)
        if number % PER_FOLDER == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def s3_history(place: Place, count: int, threads: int = 16) -> None:
    """Create the same files on an object store."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        list(
            pool.map(lambda number: obstore.put(place.store, name(number), b""), range(count), chunksize=200)
        )


def with_rows(path: Path, rows: int, start: int = 0) -> None:
    """Write a file with rows of four columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = (
        json.dumps(
            {
                "id": number,
                "at": f"2024-01-28T{number % 24:02d}:00:00Z",
                "name": f"name {number % 97}",
                "value": number * 0.5,
            }
        )
        for number in range(start, start + rows)
    )
    with path.open("w") as file:
        file.writelines(f"{line}\n" for line in lines)


def project(folder: Path, flow: str = "arrivals", *, unknown_fields: str = "check") -> Path:
    """Create a project of one dataflow over ``folder/landing``; by default it checks unknown fields."""
    (folder / "dataflows").mkdir(parents=True, exist_ok=True)
    (folder / "landing").mkdir(exist_ok=True)
    (folder / f"dataflows/{flow}.yaml").write_text(
        "source: {type: files, path: ./landing, format: ndjson, schema: 'id long, at timestamp, name string, value double'}\n"
        "watermark: {type: path}\ntarget: {load: append, origin_columns: false}\n"
        f"unknown_fields: {unknown_fields}\n"
    )
    return folder


def pretend_loaded(folder: Path, last: str | Mapping[str, Any]) -> None:
    """Append to each dataflow an entry that counts all up to ``last`` as loaded, without a table.

    Args:
        folder: folder of the project.
        last: path of the last file, or another kind's watermark.
    """
    from platform_assets.platform import build_platform
    from platform_assets.project import load_project
    from resources.watermarks.entry import Entry, new_id, utc_now

    loaded = load_project(folder)
    log = build_platform(loaded).log
    for flow, dataflow in loaded.dataflows.items():
        entry = Entry(
            id=new_id(),
            number=1,
            watermark=json.dumps({"path": last} if isinstance(last, str) else last),
            why="import",
            time=utc_now(),
            fingerprint=fingerprint(dataflow),
            kind=dataflow.kind,
            app_id=new_id(),
        )
        log.append(flow, entry, expected=0)
