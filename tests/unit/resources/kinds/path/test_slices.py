"""A slice of files that another run left unfinished is the slice that was planned."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from partitions.dataflow import Dataflow
from partitions.path.slices import PathSlice
from partitions.sentinels import serialise
from resources.connections.places import Place
from resources.kinds.contract.kind import Kind
from resources.kinds.path.opening import path_kind
from resources.sources.files.source import FileSource
from resources.staging import Staging
from resources.tables.registry import open_table
from resources.watermarks.blobs.local import LocalBlobs
from resources.watermarks.entry import Intent
from resources.watermarks.log import WatermarkLog

NOW = datetime(2026, 3, 10, tzinfo=UTC)


@pytest.fixture
def landing(tmp_path: Path) -> Path:
    """A file a day; the first lies before what a cold start looks at."""
    for day in ("05", "08", "09", "10"):
        file = tmp_path / "landing" / f"date=2026-03-{day}" / "1.ndjson"
        file.parent.mkdir(parents=True)
        file.write_text("{}")
    return tmp_path / "landing"


def _kind(landing: Path, **watermark: Any) -> Kind[PathSlice]:
    flow = Dataflow.model_validate(
        {
            "name": "flow",
            "source": {"type": "files", "path": "./landing", "format": "ndjson"},
            "watermark": {"type": "path", "checkpoint": {"interval_files": 2}, **watermark},
        }
    )
    log = WatermarkLog(LocalBlobs(landing.parent / "state"))
    return path_kind(
        flow,
        FileSource(Place(str(landing)), flow, Staging(Place(str(landing.parent / "staging")))),
        log,
        open_table("delta", Place(str(landing.parent / "lake")), ()),
    )


def _intent(before: dict[str, Any], slice_: PathSlice) -> Intent:
    """As much of the intent as tells the slice."""
    known: dict[str, Any] = {
        "before": serialise(before),
        "watermark": serialise(slice_.advance(before)),
        "since": serialise(slice_.since) if slice_.since else None,
        "why": slice_.why,
        "replaces": None,
    }
    return Intent.model_construct(**known)


@pytest.mark.parametrize("scope", ["global", "partition"])
def test_a_stored_slice_of_a_filtered_start_knows_its_beginning(landing: Path, scope: str) -> None:
    kind = _kind(
        landing,
        scope=scope,
        partition_filter={"prefix_template": "date=%Y-%m-%d", "lookback": 2},
    )
    first, second = kind.planning.plan(None, NOW).slices
    assert first.since is not None
    for before, slice_ in (({}, first), (dict(first.after), second)):
        again = kind.stored_slices.from_rows(_intent(before, slice_), kind.stored_slices.to_rows(slice_))
        assert again == replace(slice_, closing=None)
        shorter = again.take(1)
        assert (shorter.since, shorter.after) == (slice_.take(1).since, slice_.take(1).after)
