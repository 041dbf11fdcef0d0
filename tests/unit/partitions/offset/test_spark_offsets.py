"""Offsets of streams of Spark, as Spark 4.1 with Delta 4.4 and Iceberg 1.12 writes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partitions.errors import ConfigurationError
from partitions.offset.spark_offsets import DeltaStreamOffset, IcebergStreamOffset, parse_stream_offset

DELTA: dict[str, Any] = {
    "sourceVersion": 1,
    "reservoirId": "4f3e",
    "reservoirVersion": 42,
    "index": -1,
    "isStartingVersion": False,
}
ICEBERG: dict[str, Any] = {"version": 1, "snapshot_id": 8123, "position": 3, "scan_all_files": False}


def file_of(*sources: object, version: str = "v1") -> str:
    return "\n".join([version, '{"batchWatermarkMs":0}', *map(json.dumps, sources)])


def test_a_delta_offset_names_the_version_that_comes_next() -> None:
    assert parse_stream_offset(file_of(DELTA)) == DeltaStreamOffset("4f3e", 42, is_between_versions=True)


@pytest.mark.parametrize(
    ("fields", "is_between_versions"),
    [
        ({"index": -100, "sourceVersion": 3}, True),
        ({"index": 0}, False),
        ({"index": -20, "sourceVersion": 3}, False),
        ({"isStartingVersion": True}, False),
    ],
)
def test_a_delta_offset_within_a_version_or_a_first_snapshot_lies_between_no_versions(
    fields: dict[str, Any], is_between_versions: bool
) -> None:
    offset = parse_stream_offset(file_of({**DELTA, **fields}))
    assert isinstance(offset, DeltaStreamOffset)
    assert offset.is_between_versions is is_between_versions


def test_an_iceberg_offset_names_a_snapshot_and_how_many_files_are_read() -> None:
    assert parse_stream_offset(file_of(ICEBERG)) == IcebergStreamOffset("8123", 3, reads_all_files=False)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", "expected offsets of the form v1, found ''"),
        (file_of(DELTA, version="v2"), "found 'v2'"),
        (file_of(DELTA, ICEBERG), "found one over 2 sources"),
        (file_of(), "found one over 0 sources"),
        (file_of({"logOffset": 3}), 'found {"logOffset": 3}'),
        (file_of(4), "found 4"),
    ],
)
def test_other_offsets_are_refused_with_what_was_found(text: str, found: str) -> None:
    with pytest.raises(ConfigurationError, match="expected") as raised:
        parse_stream_offset(text)
    assert found in raised.value.message
