"""Lists that belong to entries: a reader gets the rows of the kind that it knows, or stops."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest

from partitions.errors import CorruptWatermark, NeedsDecision
from partitions.window.work_unit import WorkUnit
from resources.watermarks.lists import INGESTED_FILES, QUARANTINED_FILES, StoredList, read_list
from resources.watermarks.work_units import WORK_UNITS

ROW = ["a.ndjson", 1, "v", 0, None]


def test_a_list_comes_back_as_it_was() -> None:
    stored = StoredList(INGESTED_FILES, [ROW], {"at": 1})
    assert read_list(INGESTED_FILES, stored.to_bytes(), "x") == stored


@pytest.mark.parametrize(
    "kind",
    [
        replace(INGESTED_FILES, version=2),
        replace(INGESTED_FILES, columns=(*INGESTED_FILES.columns, "checksum")),
        replace(INGESTED_FILES, columns=INGESTED_FILES.columns[:4]),
    ],
    ids=["version", "a column more", "a column less"],
)
def test_a_list_of_another_version_stops_its_reader(kind: Any) -> None:
    written = StoredList(kind, [[None] * len(kind.columns)]).to_bytes()
    with pytest.raises(NeedsDecision, match="Another version of Strandline wrote it") as stop:
        read_list(INGESTED_FILES, written, "files/x")
    assert (stop.value.code, stop.value.exit_code) == ("newer_state", 4)


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"not gzip",
        gzip.compress(b"[[1, 2]]"),
        gzip.compress(b"{}"),
        StoredList(QUARANTINED_FILES, []).to_bytes(),
        gzip.compress(
            json.dumps({"list": "files", "version": 1, "columns": INGESTED_FILES.columns}).encode()
        ),
        gzip.compress(
            json.dumps(
                {"list": "files", "version": 1, "columns": INGESTED_FILES.columns, "head": {}, "rows": [[1]]}
            ).encode()
        ),
    ],
    ids=["gone", "no gzip", "bare rows", "no kind", "another kind", "no rows", "a row that is too short"],
)
def test_a_list_that_does_not_read_is_corrupt_and_never_empty(data: bytes | None) -> None:
    with pytest.raises(CorruptWatermark):
        read_list(INGESTED_FILES, data, "files/x")


def test_a_row_with_more_or_fewer_values_than_columns_is_not_stored() -> None:
    with pytest.raises(ValueError, match="expected rows of 5 values, found 4"):
        StoredList(INGESTED_FILES, [ROW[:4]])


def test_the_columns_of_work_units_are_the_fields_of_a_work_unit_and_the_error() -> None:
    """If this fails, a work unit has changed: raise the version of the list."""
    stored = ["bound" if name == "group_start" else name for name in WorkUnit._fields]
    assert (WORK_UNITS.version, WORK_UNITS.columns) == (1, (*stored, "error"))
