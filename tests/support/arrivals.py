"""A dataflow of files without an engine: tests write the entries that runs would append."""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from partitions.dataflow import Dataflow
from partitions.fingerprint import fingerprint
from partitions.path.slices import PathSlice
from partitions.plan import Plan
from partitions.sentinels import serialise
from resources.connections.places import Place
from resources.kinds.path.late import LateStep, late_step
from resources.kinds.path.opening import path_planning
from resources.kinds.path.sweep import LateFiles, Sweep, SweepStep, step, unhandled
from resources.listing import Budget
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine
from resources.watermarks.entry import Entry, next_entry
from resources.watermarks.lists import INGESTED_FILES, StoredList

NOW = datetime(2026, 6, 1, tzinfo=UTC)


class Arrivals:
    """A landing zone, a lake and a log below one folder; files are an hour old, unless said otherwise."""

    def __init__(self, root: Path, **definition: Any) -> None:
        base = {
            "name": "arrivals",
            "source": {"type": "files", "path": "landing", "format": "ndjson"},
            "watermark": {"type": "path"},
        }
        self.flow = Dataflow.model_validate(base | definition)
        self.landing = root / "landing"
        self.landing.mkdir()
        self.platform = Platform(
            Place(str(root / "state")),
            Place(str(root / "lake")),
            SparkEngine(),
            lambda flow: Place(str(self.landing)),
        )

    def put(self, *paths: str, age: float = 3600) -> None:
        """Put files of one byte with this age in seconds."""
        for path in paths:
            file = self.landing / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(b"\n")
            os.utime(file, (NOW.timestamp() - age,) * 2)

    def commit(self, paths: Iterable[str], watermark: Any = None, **changes: Any) -> Entry:
        """Append the entry of a run that has loaded these files.

        The last file is the watermark, unless said otherwise.
        """
        log, name, paths = self.platform.log, self.flow.name, list(paths)
        last = log.newest(name)
        number = last.number + 1 if last else 1
        first = {} if last else {"kind": "path", "app_id": "a", "table_version": None}
        loaded = {
            "why": "run",
            "watermark": serialise(watermark or {"path": paths[-1]}),
            "file_list": log.put_list(
                name,
                f"{number:010d}-x",
                StoredList(INGESTED_FILES, [[path, 1, "v", 0, None] for path in paths]),
            ),
            "fingerprint": fingerprint(self.flow),
        }
        return log.append(name, next_entry(last, **{**loaded, **first, **changes}), expected=number - 1)

    def plan(self, now: datetime = NOW) -> Plan[PathSlice]:
        """Return the plan of a run."""
        return path_planning(self.platform, self.flow).plan(self.newest, now)

    def planned(self, why: str, now: datetime = NOW) -> list[str]:
        """Return the files of the slices that a run would load for this reason."""
        return [file.path for piece in self.plan(now).slices if piece.why == why for file in piece.files]

    def sweep(self, most: int | None = None, pages: int | None = None, now: datetime = NOW) -> SweepStep:
        """Make one step of the sweep, without its policy."""
        place = Place(str(self.landing))
        return step(self.platform.log, place, self.flow, now, Budget(pages=pages), most)

    def late(self, most: int | None = None, now: datetime = NOW) -> LateStep:
        """Make one step of the sweep, with its policy."""
        return late_step(self.platform, self.flow, now, max_named=most)

    def waiting(self, now: datetime = NOW) -> LateFiles:
        """Return the late files that no entry has handled."""
        return unhandled(self.platform.log, self.flow, self.newest, now)

    @property
    def note(self) -> Sweep:
        """Return how far the sweep has come."""
        return Sweep.read(self.platform.log, self.flow.name, 0)

    @property
    def newest(self) -> Entry | None:
        """Return the newest entry."""
        return self.platform.log.newest(self.flow.name)
