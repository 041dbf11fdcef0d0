"""Deletion vectors of Delta tables, read without Spark."""

from __future__ import annotations

import base64
import struct
from pathlib import Path
from uuid import UUID

import pytest
from pyroaring import BitMap64

from partitions.errors import SourceError
from resources.connections.places import Place
from resources.tables.delta.deletion_vectors import _RFC1924, _Z85, deleted_positions

OF_THE_PROTOCOL = "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"


def vector(positions: list[int]) -> bytes:
    return struct.pack("<i", 1681511377) + BitMap64(positions).serialize()


def encoded(content: bytes) -> str:
    return base64.b85encode(content).translate(bytes.maketrans(_RFC1924, _Z85)).decode()


def test_the_example_of_the_protocol_is_read() -> None:
    descriptor = {"storageType": "i", "pathOrInlineDv": OF_THE_PROTOCOL, "sizeInBytes": 40, "cardinality": 6}
    assert sorted(deleted_positions(Place("/t"), descriptor)) == [3, 4, 7, 11, 18, 29]


@pytest.mark.parametrize("positions", [[0], [1, 2**31, 2**32, 2**33 + 7], list(range(70_000))])
def test_a_vector_in_a_file_is_read_at_its_offset(tmp_path: Path, positions: list[int]) -> None:
    content, name = vector(positions), UUID(int=7)
    (tmp_path / "ab").mkdir()
    file = tmp_path / f"ab/deletion_vector_{name}.bin"
    file.write_bytes(b"\x01" + struct.pack(">i", len(content)) + content + b"crc ")
    descriptor = {
        "storageType": "u",
        "pathOrInlineDv": f"ab{encoded(name.bytes)}",
        "offset": 1,
        "sizeInBytes": len(content),
        "cardinality": len(positions),
    }
    assert sorted(deleted_positions(Place(str(tmp_path)), descriptor)) == positions
    absolute = descriptor | {"storageType": "p", "pathOrInlineDv": f"file:{file}"}
    assert sorted(deleted_positions(Place("/elsewhere"), absolute)) == positions


def test_another_format_is_an_error() -> None:
    descriptor = {
        "storageType": "i",
        "pathOrInlineDv": encoded(b"12345678"),
        "sizeInBytes": 8,
        "cardinality": 1,
    }
    with pytest.raises(SourceError, match="another one"):
        deleted_positions(Place("/t"), descriptor)
