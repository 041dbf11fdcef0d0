"""What the header of an Avro file tells, read without Spark."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from partitions.path.source import SourceFile
from partitions.records.conversions import ITEM, VALUE
from resources.connections.places import Place
from resources.sources.files.avro_headers import read_header
from resources.sources.files.avro_schemas import (
    field_paths_of,
    find_doubled_names,
    find_unreadable_field,
    own_types,
)


def record(name: str, /, **fields: Any) -> dict[str, Any]:
    return {
        "type": "record",
        "name": name,
        "fields": [{"name": key, "type": kind} for key, kind in fields.items()],
    }


TAG = record("tag", k="string")
WHO = record("who", name="string", tags={"type": "array", "items": TAG})
SCHEMA = record(
    "row",
    id="long",
    who=["null", WHO],
    other=["null", "who"],
    by={"type": "map", "values": record("count", n="long")},
    either=["long", TAG | {"name": "tag2"}],
    next=["null", "row"],
)
ROW: dict[str, Any] = {"id": 1, "who": None, "other": None, "by": {}, "either": 1, "next": None}


def _written(folder: Path, schema: dict[str, Any] = SCHEMA, *rows: dict[str, Any]) -> SourceFile:
    buffer = io.BytesIO()
    fastavro.writer(buffer, fastavro.parse_schema(schema), rows)
    (folder / "a.avro").write_bytes(buffer.getvalue())
    return SourceFile("a.avro", len(buffer.getvalue()), "", 0)


def test_all_fields_are_told_at_any_depth_but_of_what_contains_itself_once(tmp_path: Path) -> None:
    text = read_header(Place(str(tmp_path)), _written(tmp_path, SCHEMA, ROW)).schema
    assert text is not None
    who = [(), ("name",), ("tags",), ("tags", ITEM, "k")]
    assert field_paths_of(text) == {
        ("id",),
        *(("who", *each) for each in who),
        *(("other", *each) for each in who),
        ("by",),
        ("by", VALUE, "n"),
        ("either",),
        ("next",),
    }


def test_a_header_that_is_longer_than_what_is_read_at_first_is_read_whole(tmp_path: Path) -> None:
    wide = record("row", **{f"column_{number}": ["null", "string"] for number in range(5000)})
    text = read_header(Place(str(tmp_path)), _written(tmp_path, wide)).schema
    assert text is not None
    assert len(field_paths_of(text)) == 5000


def _header(*pairs: tuple[bytes, bytes]) -> bytes:
    """A header of these pairs, each shorter than 64 bytes, with a mark behind it."""
    body = b"".join(bytes([2 * len(part)]) + part for pair in pairs for part in pair)
    return b"Obj\x01" + bytes([2 * len(pairs)]) + body + b"\0" + b"m" * 16


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "expected an Avro file, found another format"),
        (b"no avro", "expected an Avro file, found another format"),
        (b"Obj\x01", "its header is damaged, or the file ends in it"),
        (b"Obj\x01\x04\x16avro.schema", "its header is damaged, or the file ends in it"),
        (b"Obj\x01" + b"\xff" * 20, "its header is damaged, or the file ends in it"),
        (_header((b"avro.schema", b"{}"))[:-1], "its header is damaged, or the file ends in it"),
        (_header((b"avro.schema", b"{")), "expected a schema as JSON in its header, found none"),
        (_header((b"x", b"{}")), "expected a schema as JSON in its header, found none"),
        (
            _header((b"avro.codec", b"lzo"), (b"avro.schema", b"{}")),
            "expected blocks compressed with one of null, deflate, snappy, bzip2, xz, zstandard, found lzo",
        ),
    ],
)
def test_a_header_that_is_none_tells_why(tmp_path: Path, data: bytes, fault: str) -> None:
    (tmp_path / "a.avro").write_bytes(data)
    assert read_header(Place(str(tmp_path)), SourceFile("a.avro", len(data), "", 0)) == (None, fault)
    assert read_header(Place(str(tmp_path)), SourceFile("gone.avro", 5, "", 0)) == (None, None)


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        (record("n", next=["null", "n"]), ("c.next", "the recursive record n")),
        (record("n"), ("c", "a record without fields")),
        ({"type": "fixed", "size": 12, "name": "d", "logicalType": "duration"}, ("c", "duration")),
        (
            ["null", {"type": "bytes", "logicalType": "decimal", "precision": 60, "scale": 2}],
            ("c", "a decimal of 60 digits, which is more than 38"),
        ),
        ({"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}, None),
    ],
)
def test_a_field_that_no_table_holds_is_told(kind: Any, field: tuple[str, str] | None) -> None:
    assert find_unreadable_field(json.dumps(record("row", c=kind))) == field


def test_names_that_differ_in_case_only_are_told_at_any_depth() -> None:
    inner = record("n", x="long", X="long")
    assert find_doubled_names(json.dumps(record("row", c={"type": "array", "items": inner}))) == ("X", "x")
    assert find_doubled_names(json.dumps(record("row", x=record("n", x="long")))) is None


@pytest.mark.s3
def test_the_header_of_a_file_of_a_bucket_is_read(bucket: Place, tmp_path: Path) -> None:
    file = _written(tmp_path, SCHEMA, ROW)
    bucket.store.put("a.avro", (tmp_path / "a.avro").read_bytes())
    assert read_header(bucket, file) == read_header(Place(str(tmp_path)), file)
    assert read_header(bucket, SourceFile("gone.avro", 5, "", 0)) == (None, None)


def test_a_union_of_several_types_has_the_type_that_spark_reads_it_as() -> None:
    struct = record("part", a="null", at={"type": "int", "logicalType": "date"})
    unions: dict[str, list[Any]] = {
        "whole": ["int", {"type": "long", "logicalType": "timestamp-millis"}],
        "near": ["null", "double", "float"],
        "either": ["null", "string", struct],
    }
    types = own_types(json.dumps(record("row", **unions)))
    assert own_types(json.dumps(record("row", **unions)), are_members_numbered=False)["either"] is None
    assert (types["whole"], types["near"]) == ("long", "double")
    either = types["either"]
    assert isinstance(either, dict)
    members = {member["name"]: member["type"] for member in either["fields"]}
    assert members["member0"] == "string"
    assert [field["type"] for field in members["member1"]["fields"]] == ["void", "date(any)"]
