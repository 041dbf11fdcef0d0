"""A sensor as Dagster ticks it: with its landing zone, its clock, and the cursor between ticks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dagster import (
    DagsterInstance,
    RunRequest,
    SensorResult,
    SkipReason,
    build_sensor_context,
)

from partitions.dataflow import Dataflow
from partitions.fingerprint import fingerprint
from partitions.sentinels import serialise
from platform_assets.factory.sensors import DataflowSensor
from resources.connections.places import Place
from resources.dagster.names import DagsterDataflowNames
from resources.platform.platform import Platform
from resources.spark.engine import SparkEngine
from resources.watermarks.entry import Entry, next_entry
from resources.watermarks.lists import INGESTED_FILES, QUARANTINED_FILES, StoredList
from resources.watermarks.stored_objects import QUARANTINE
from tests.support.names import names_of

Clock = Callable[[], float]


WINDOWS: dict[str, Any] = {
    "source": {"type": "table", "table": "bronze/rows", "window_column": "at"},
    "watermark": {
        "type": "window",
        "definition": [{"name": "day", "type": "datetime", "range": {"from": "2024-01-01", "to": "-"}}],
        "window": "daily",
    },
    "target": {"load": "merge_overwrite", "replace_by_watermark": True},
}
"""Daily windows of a table of the lake."""


def flow_of(**definition: Any) -> Dataflow:
    """Return a dataflow named ``arrivals``, with these keys beside the usual ones."""
    base = {
        "name": "arrivals",
        "source": {"type": "files", "path": "landing", "format": "ndjson"},
        "watermark": {"type": "path"},
    }
    return Dataflow.model_validate(base | definition)


class Ticker:
    """A sensor of a dataflow; ``now`` is its clock, and ``events`` its reports at the last tick."""

    def __init__(
        self,
        root: Path,
        instance: DagsterInstance,
        flow: Dataflow,
        make: Callable[[Dataflow, Platform, DagsterDataflowNames, Clock], DataflowSensor],
    ) -> None:
        self.landing = root / "landing"
        self.landing.mkdir()
        self.instance = instance
        self.flow = flow
        self.names = names_of(flow)
        self.now = 1_700_000_000.0
        self.cursor: str | None = None
        self.events: list[Any] = []
        self.platform = Platform(
            Place(str(root / "state")),
            Place(str(root / "lake")),
            SparkEngine(),
            lambda flow: Place(str(self.landing)),
        )
        self.sensor = make(flow, self.platform, self.names, lambda: self.now)

    def put(self, *paths: str) -> None:
        """Put empty files."""
        for path in paths:
            file = self.landing / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()

    def tick(self) -> RunRequest | str:
        """Return the requested run, or why there is none."""
        result = self.sensor.definition()(build_sensor_context(instance=self.instance, cursor=self.cursor))
        assert isinstance(result, SensorResult)
        self.cursor = result.cursor
        self.events = list(result.asset_events)
        if result.run_requests:
            (request,) = result.run_requests
            return request
        assert isinstance(result.skip_reason, SkipReason)
        return str(result.skip_reason.skip_message)

    def commit(self, *paths: str, **changes: Any) -> Entry:
        """Append the entry of a run that has loaded these files; the last one is the watermark."""
        log, name = self.platform.log, self.flow.name
        last = log.newest(name)
        number = last.number + 1 if last else 1
        first = {} if last else {"kind": "path", "app_id": "a"}
        loaded = {
            "why": "run",
            "watermark": serialise({"path": paths[-1]}) if paths else last.watermark if last else "{}",
            "file_list": log.put_list(
                name,
                f"{number:010d}-x",
                StoredList(INGESTED_FILES, [[path, 0, "v", 0, None] for path in paths]),
            ),
            "fingerprint": fingerprint(self.flow),
        }
        return log.append(name, next_entry(last, **{**loaded, **first, **changes}), expected=number - 1)

    def abandon(self) -> Entry:
        """Append the entry of a run that has abandoned its number and loaded nothing."""
        return self.commit(why="abandon")

    def set_aside(self, path: str, *, released: bool) -> Entry:
        """Append an entry that quarantines a file, or has released it."""
        row = [path, 0, "v", 0, "bad", released]
        name, stored = "released" if released else "held", StoredList(QUARANTINED_FILES, [row])
        return self.commit(quarantine=self.platform.log.put_list(self.flow.name, name, stored, QUARANTINE))


def requested_run(answer: RunRequest | str) -> RunRequest:
    """Return the run that a tick requests."""
    assert isinstance(answer, RunRequest), answer
    return answer


def ticks(ticker: Ticker, minutes: int, run: Callable[[], object]) -> list[str]:
    """Tick every minute; ``run`` stands for each requested run. Return the keys of the runs."""
    keys = list[str]()
    for _ in range(minutes):
        answer = ticker.tick()
        if isinstance(answer, RunRequest):
            keys.append(str(answer.run_key))
            run()
        ticker.now += 60
    return keys
