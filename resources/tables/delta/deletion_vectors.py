"""Read the positions of rows that a deletion vector of a Delta table hides, without Spark."""

from __future__ import annotations

import base64
import struct
from collections.abc import Collection, Iterator
from uuid import UUID

from partitions.errors import SourceError
from resources.connections.places import Place
from resources.tables.data_files.located import locate, read_range
from resources.tables.data_files.roaring import roaring_positions
from resources.tables.delta.log_state import Action

_PORTABLE, _NATIVE = 1681511377, 1681511376
"""What a vector begins with: in the portable format little-endian, in the older one big-endian."""
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_RFC1924 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_RFC1924 = bytes.maketrans(_Z85, _RFC1924)
_UUID_LETTERS = 20


def deleted_positions(table: Place, vector: Action) -> Collection[int]:
    """Return the positions of deleted rows.

    Args:
        table: place of the table.
        vector: descriptor, as an action on a file has it.

    Raises:
        SourceError: the vector is missing, or has another form.
    """
    kind, text = str(vector["storageType"]), str(vector["pathOrInlineDv"])
    if kind == "i":
        return _positions(table, _decoded(text.encode()))
    if kind == "u":
        prefix, encoded = text[:-_UUID_LETTERS], text[-_UUID_LETTERS:]
        name = f"deletion_vector_{UUID(bytes=_decoded(encoded.encode()))}.bin"
        place, path = table, f"{prefix}/{name}" if prefix else name
    else:
        place, path = locate(table, text, is_escaped=True)
    start = int(vector.get("offset") or 0) + 4  # before it lies its size
    return _positions(table, read_range(place, path, start, int(vector["sizeInBytes"])))


def _positions(table: Place, content: bytes) -> Collection[int]:
    if content[:4] == struct.pack("<i", _PORTABLE):
        return roaring_positions(content[4:])
    if content[:4] == struct.pack(">i", _NATIVE):
        return frozenset(_native_positions(content))
    raise SourceError(f"table {table}: expected a deletion vector in the format of Delta, found another one")


def _native_positions(content: bytes) -> Iterator[int]:
    """Yield the numbers of several bitmaps of 32 bits, each after its size."""
    from pyroaring import BitMap

    (count,), start = struct.unpack(">i", content[4:8]), 8
    for key in range(count):
        (size,) = struct.unpack(">i", content[start : start + 4])
        yield from (
            (key << 32) + number for number in BitMap.deserialize(content[start + 4 : start + 4 + size])
        )
        start += 4 + size


def _decoded(text: bytes) -> bytes:
    return base64.b85decode(text.translate(_TO_RFC1924))
