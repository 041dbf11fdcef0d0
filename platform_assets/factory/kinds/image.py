"""A grid of cells as a PNG in a data URI, made with the standard library alone.

Dagster's pages show it whatever fonts the viewer has.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence

FULL, PART, FAILED, NONE = 0, 1, 2, 3
"""The values of a cell, which are indexes into the palette."""

_PALETTE = bytes.fromhex("2da44ee3b341cf222ed0d7de")
_SIZE, _WIDEST = 12, 720
"""The side of a cell and the widest row, in pixels."""


def png_data_uri(rows: Sequence[Sequence[int]]) -> str:
    """Return a PNG of cells in four colours, two bits a pixel, as a data URI.

    40 x 60 cells take 1,000 to 2,000 characters.

    Args:
        rows: rows of equal length, from the top; each cell is one of the four constants.
    """
    size = max(1, min(_SIZE, _WIDEST // len(rows[0])))
    lines = b"".join(
        (b"\0" + _pack_pixels([cell for cell in row for _ in range(size)])) * size for row in rows
    )
    header = struct.pack(">IIBBBBB", len(rows[0]) * size, len(rows) * size, 2, 3, 0, 0, 0)
    chunks = (
        _png_chunk(b"IHDR", header),
        _png_chunk(b"PLTE", _PALETTE),
        _png_chunk(b"IDAT", zlib.compress(lines, 9)),
        _png_chunk(b"IEND", b""),
    )
    return "data:image/png;base64," + b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()


def _pack_pixels(pixels: list[int]) -> bytes:
    """Return four pixels a byte, the first in the highest bits."""
    pixels += [0] * (-len(pixels) % 4)
    quads = zip(*(iter(pixels),) * 4, strict=True)
    return bytes(a << 6 | b << 4 | c << 2 | d for a, b, c, d in quads)


def _png_chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
