"""The environment of a soak: an object store, a database, and a project of three dataflows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import obstore
import yaml

from benchmarks.soak.counting import Questions
from benchmarks.soak.product import Commands, Dev, Loop, Product
from benchmarks.soak.sources import GRACE_HOURS, HOURS, UNITS, Files, FileWriter, Table, file_writer
from resources.connections.places import Place
from scripts import postgres
from tests.support import seaweed

BUCKET = "soak"
_SECRETS = {"access_key_id": "SOAK_KEY", "secret_access_key": "SOAK_SECRET"}
_PASSWORD = "SOAK_PASSWORD"


@dataclass
class World:
    """The servers, the product and the sources of a soak."""

    store: seaweed.Store
    lake: Place
    commands: Commands
    product: Product
    arrivals: Files
    readings: Files
    events: Table

    @property
    def questions(self) -> Questions:
        """Return the questions to the command line about dataflows."""
        return Questions(self.commands)

    @property
    def names(self) -> list[str]:
        """Return the names of all dataflows."""
        return [self.arrivals.name, self.readings.name, self.events.name]


@contextmanager
def run_world(folder: Path, seed: int, minutes: float, *, by_hand: bool) -> Iterator[World]:
    """Start the servers and write the project, without starting the product.

    Args:
        folder: an empty folder for all files.
        seed: the seed of the arrivals.
        minutes: the minutes with arrivals.
        by_hand: whether a loop of commands loads instead of ``strandline dev``.
    """
    (folder / "seaweed").mkdir()
    with seaweed.stoppable(folder / "seaweed") as store, postgres.running() as server:
        store.server.client().create_bucket(Bucket=BUCKET)
        bucket = Place(f"s3://{BUCKET}", store.server.connection)
        start = datetime.now(UTC).replace(second=0, microsecond=0)
        end = start + timedelta(minutes=round(minutes) + 2)
        commands = Commands(
            folder / "project",
            {
                "SOAK_KEY": store.server.access_key_id,
                "SOAK_SECRET": store.server.secret_access_key,
                _PASSWORD: server.password,
            },
        )
        _write_project(commands.folder, bucket, server, _first(start, minutes), end)
        events = Table(server, start, end, Random(f"{seed}:events"))
        events.make()
        yield World(
            store,
            bucket.child("lake"),
            commands,
            Loop(commands) if by_hand else Dev(commands),
            Files("arrivals", _object_writer(bucket.child("landing")), start, Random(f"{seed}:arrivals")),
            Files("readings", file_writer(commands.folder / "readings"), start, Random(f"{seed}:readings")),
            events,
        )


def _first(start: datetime, minutes: float) -> datetime:
    """Return the start of the first window.

    It lies before all rows, and one window ends in the middle of the soak.
    """
    return start - timedelta(hours=HOURS + 1) + timedelta(minutes=(round(minutes / 2) + 1) % 60)


def _object_writer(landing: Place) -> FileWriter:
    def write_object(path: str, data: bytes) -> None:
        obstore.put(landing.store, path, data)

    return write_object


def _write_project(
    folder: Path, bucket: Place, server: postgres.Postgres, first: datetime, end: datetime
) -> None:
    (folder / "dataflows").mkdir(parents=True)
    (folder / "readings").mkdir()
    assert bucket.connection is not None
    land = {"type": "s3", "endpoint": bucket.connection.endpoint, "region": bucket.connection.region}
    erp = {
        "type": "jdbc",
        "url": f"jdbc:postgresql://127.0.0.1:{server.port}/postgres",
        "user": "postgres",
        "password": {"env": _PASSWORD},
    }
    settings = {
        "state": {"path": f"{bucket.url}/state", "connection": "land"},
        "lake": {"path": f"{bucket.url}/lake", "connection": "land"},
        "spark": {"master": "local[2]", "conf": {"spark.driver.memory": "1g"}},
        "connections": {
            "land": land | {key: {"env": name} for key, name in _SECRETS.items()},
            "erp": erp,
        },
    }
    (folder / "platform.yaml").write_text(yaml.safe_dump(settings))
    for name, flow in _dataflows(bucket, first, end).items():
        (folder / "dataflows" / f"{name}.yaml").write_text(yaml.safe_dump(flow))


def _dataflows(bucket: Place, first: datetime, end: datetime) -> dict[str, dict[str, Any]]:
    files = {"type": "files", "format": "ndjson", "schema": "id long, text string"}
    path = {"type": "path", "checkpoint": {"interval_files": 20}}
    target = {"load": "append"}
    definition = [
        {"name": "at", "type": "datetime", "range": {"from": first.isoformat(), "to": end.isoformat()}},
        {"name": "u", "type": "unit", "units": ",".join(UNITS)},
    ]
    return {
        "arrivals": {
            "source": files | {"path": f"{bucket.url}/landing", "connection": "land"},
            "watermark": path,
            "target": target,
            "late_files": "ingest",
        },
        "readings": {
            "source": files | {"path": "./readings"},
            "watermark": path,
            "target": target,
            "late_files": "quarantine",
            "on_bad_file": "quarantine",
            "max_bad_files": 20,  # by chance the first file of all may be bad
        },
        "events": {
            "source": {
                "type": "jdbc",
                "connection": "erp",
                "table": "public.events",
                "window_column": "at",
                "unit_columns": {"u": "unit"},
            },
            "watermark": {
                "type": "window",
                "definition": definition,
                "window": "hourly",
                "grace": f"PT{GRACE_HOURS}H",
                "checkpoint": {"interval_windows": 12},
            },
            "schedule": "* * * * *",
            "target": {"load": "merge_overwrite", "replace_by_watermark": True},
        },
    }
