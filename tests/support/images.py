"""Reads the images of Dagster's pages."""

from __future__ import annotations

import base64
import re
import struct
import zlib


def cells_of(drawn: str) -> list[str]:
    """Return the cells of a picture's image, a letter each: loaded, in part, failed, missing."""
    match = re.search(r"base64,([^)]*)\)", drawn)
    assert match is not None
    data, at = base64.b64decode(match[1]), 8
    chunks: dict[bytes, bytes] = {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + body)
        chunks[name], at = body, at + 12 + size
    width, height, depth, colours = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colours, len(chunks[b"PLTE"])) == (2, 3, 12)
    raw, line = zlib.decompress(chunks[b"IDAT"]), 1 + -(-width // 4)
    side = 12
    rows = [raw[number * line + 1 : (number + 1) * line] for number in range(0, height, side)]
    pixels = [[byte >> shift & 3 for byte in row for shift in (6, 4, 2, 0)][:width:side] for row in rows]
    return ["".join("LPFM"[pixel] for pixel in row) for row in pixels]
