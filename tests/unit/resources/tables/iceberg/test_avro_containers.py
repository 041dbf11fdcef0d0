"""Avro files of manifests are written again with all that they hold, whoever wrote them."""

from __future__ import annotations

from datetime import date
from io import BytesIO
from typing import Any

import fastavro
import pytest

from resources.tables.iceberg.avro_containers import AvroContainer

SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "entry",
    "fields": [
        {"name": "path", "type": "string", "field-id": 100},
        {
            "name": "day",
            "type": ["null", {"type": "int", "logicalType": "date"}],
            "default": None,
            "field-id": 1000,
        },
        {
            "name": "bounds",
            "field-id": 125,
            "type": {
                "type": "array",
                "logicalType": "map",
                "items": {
                    "type": "record",
                    "name": "k1_v2",
                    "fields": [
                        {"name": "key", "type": "int", "field-id": 126},
                        {"name": "value", "type": "bytes", "field-id": 127},
                    ],
                },
            },
        },
        {"name": "of_a_later_version", "type": ["null", "long"], "default": None, "field-id": 999},
    ],
}
ROWS: list[dict[str, Any]] = [
    {
        "path": f"/old/{n}",
        "day": date(1, 1, 1),
        "bounds": [{"key": n, "value": bytes([n % 256])}],
        "of_a_later_version": 2**60,
    }
    for n in range(300)
]


def written(codec: str, rows: list[dict[str, Any]] = ROWS) -> bytes:
    """The file as another writer makes it, in several blocks."""
    stream = BytesIO()
    fastavro.writer(
        stream,
        SCHEMA,
        rows,
        codec=codec,
        sync_interval=1000,
        metadata={"schema": "{}", "format-version": "2"},
    )
    return stream.getvalue()


@pytest.mark.parametrize("codec", ["null", "deflate"])
@pytest.mark.parametrize("rows", [ROWS, []], ids=["rows", "none"])
def test_all_but_the_changed_field_is_read_again(codec: str, rows: list[dict[str, Any]]) -> None:
    container = AvroContainer.parse(written(codec, rows))
    for record in container.records:
        record["path"] = record["path"].replace("/old/", "/new/")
    before = fastavro.reader(BytesIO(written(codec, rows)))
    after = fastavro.reader(BytesIO(container.encode()))
    assert list(after) == [{**row, "path": row["path"].replace("/old/", "/new/")} for row in rows]
    assert after.writer_schema == before.writer_schema
    assert after.metadata == before.metadata
    assert AvroContainer.parse(container.encode()).encode() == container.encode()


def test_a_damaged_file_and_an_unknown_compression_are_refused() -> None:
    with pytest.raises(ValueError, match="damaged"):
        AvroContainer.parse(written("null")[:-1] + b"x")
    with pytest.raises(ValueError, match="compressed with deflate, found b'bzip2'"):
        AvroContainer.parse(written("bzip2"))
