"""paths.json."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest
from obstore.store import MemoryStore

from partitions.path.cold_start import prefixes
from partitions.path.definition import PartitionFilter, PathWatermark
from partitions.path.hive import partition_values
from partitions.path.listing_positions import FromBeginning, ListingStart
from partitions.path.names_by_time import sorts_by_time
from partitions.path.order import FileKey
from partitions.path.plan import plan
from partitions.path.position_of_state import listing_start
from partitions.path.state import PathState
from partitions.path.time_template import TimeTemplate
from resources.connections.places import Place
from resources.listing import Listing, list_above
from tests.conformance.common import Case
from tests.support.trees import write_files


@pytest.mark.cases("paths", "path_parse")
def test_path_parse(case: Case) -> None:
    partition, name = FileKey.of(case["input"]["watermark"])
    assert {"partition": partition, "filename": name} == case["expected"]


@pytest.mark.cases("paths", "path_compare")
def test_path_compare(case: Case) -> None:
    a, b = FileKey("", case["input"]["a"]), FileKey("", case["input"]["b"])
    assert {"order": "lt" if a < b else "gt" if a > b else "eq"} == case["expected"]


@pytest.mark.cases("paths", "naming")
def test_naming(case: Case) -> None:
    assert {"lexicographic_is_chronological": sorts_by_time(case["input"]["filename"])} == case["expected"]


@pytest.mark.cases("paths", "partition_prefixes")
def test_partition_prefixes(case: Case) -> None:
    inputs = case["input"]
    template, now = TimeTemplate(inputs["prefix_template"]), datetime.fromisoformat(inputs["now"])
    assert prefixes(template, inputs["lookback"], now) == case["expected"]


@pytest.mark.cases("paths", "partition_extract")
def test_partition_extract(case: Case) -> None:
    assert partition_values(case["input"]["path"], case["input"]["columns"]) == case["expected"]


@pytest.mark.cases("paths", "list_above")
def test_list_above(case: Case, tmp_path: Path) -> None:
    definition, state, start = _position(case)
    now = datetime.fromisoformat(case["input"]["now"] or "2026-01-01T00:00:00+00:00")
    endings = (case["input"]["extension"],)
    for place in _places(case["input"]["files"], tmp_path):
        listing = list_above(place, start or listing_start(definition, state, now), endings)
        result = plan(definition, state, listing.listed, now, dataflow="case", state_number=1)
        assert [file.path for file in listing.listed.files] == case["expected"]["files"], place
        if warning := _warning_that_shows(case, place, listing):
            assert warning in result.warnings


def _position(case: Case) -> tuple[PathWatermark, PathState, ListingStart | None]:
    """Return the definition, the state, and the position if prefixes replace a filter."""
    inputs = case["input"]
    chosen = inputs["partition_filter"]
    definition = PathWatermark(
        type="path",
        scope="partition" if inputs["mode"] == "per_partition" else "global",
        partition_filter=PartitionFilter(**chosen) if chosen else None,
    )
    watermark = {
        "global": {"path": inputs["watermark"]},
        "per_partition": {"paths": inputs["partition_watermarks"]},
    }
    state = PathState.of(watermark.get(inputs["mode"]))
    cold = state.last is None and not state.names
    return (
        definition,
        state,
        FromBeginning.within(inputs["prefixes"]) if cold and inputs["prefixes"] else None,
    )


def _places(files: list[str], folder: Path) -> list[Place]:
    """Return the files in an object store and in a folder.

    The folder is left out if a file has the name of another file's folder.
    """
    memory = Place("s3://memory")
    store = MemoryStore()
    memory.__dict__["_store"] = (None, store)  # where the place keeps its store once it was made
    for path in files:
        store.put(path, b"x")
    try:
        return [memory, write_files(folder, files)]
    except (FileExistsError, IsADirectoryError, NotADirectoryError):
        return [memory]


def _warning_that_shows(case: Case, place: Place, listing: Listing) -> str | None:
    """Return the case's warning, if this listing can show it.

    A listing by key starts at the watermark's partition, and sees no root-level file that sorts below it.
    """
    warning: str | None = case["expected"].get("warning")
    return warning if place.local is not None or listing.listed.root_files else None
