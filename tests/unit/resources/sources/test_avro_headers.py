"""What the header of an Avro file tells, read without Spark."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import fastavro
import pytest

from partitions.path.source import SourceFile
from resources.places import Place
from resources.sources.files.footers import ITEM, VALUE
from resources.sources.files.formats.avro import fields_of, writer_schema


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
    text = writer_schema(Place(str(tmp_path)), _written(tmp_path, SCHEMA, ROW))
    assert text is not None
    who = [(), ("name",), ("tags",), ("tags", ITEM, "k")]
    assert fields_of(text) == {
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
    text = writer_schema(Place(str(tmp_path)), _written(tmp_path, wide))
    assert text is not None
    assert len(fields_of(text)) == 5000


@pytest.mark.parametrize("data", [b"", b"no avro", b"Obj\x01", b"Obj\x01\x04\x16avro.schema"])
def test_what_has_no_header_tells_nothing(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.avro").write_bytes(data)
    assert writer_schema(Place(str(tmp_path)), SourceFile("a.avro", len(data), "", 0)) is None
    assert writer_schema(Place(str(tmp_path)), SourceFile("gone.avro", 5, "", 0)) is None


@pytest.mark.s3
def test_the_header_of_a_file_of_a_bucket_is_read(bucket: Place, tmp_path: Path) -> None:
    file = _written(tmp_path, SCHEMA, ROW)
    bucket.store.put("a.avro", (tmp_path / "a.avro").read_bytes())
    assert writer_schema(bucket, file) == writer_schema(Place(str(tmp_path)), file)
    assert writer_schema(bucket, SourceFile("gone.avro", 5, "", 0)) is None
