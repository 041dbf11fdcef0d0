"""A chart of coloured cells with a scale and names, as an SVG in Markdown.

Dagster shows Markdown of fewer than 1,000 letters on an asset's page itself, and longer ones behind a click. So
a chart is made of few letters. Its texts and colours are readable on a light and on a dark page.
"""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple
from xml.sax.saxutils import escape

FULL, PART, FAILED, NONE = 0, 1, 2, 3
"""The values of a cell."""

_COLOURS = {FULL: "seagreen", PART: "goldenrod", FAILED: "crimson", NONE: "darkgray"}
"""Named colours, since a # would have to be escaped."""

_PALETTE = bytes.fromhex("2e8b57daa520dc143ca9a9a9")
"""The same colours, by the values of cells."""

INLINE = 1000
"""Markdown with fewer letters is shown on the page itself."""

_WIDTH = 470
"""The width of the metadata's column on a page of 1,500 pixels: wider pictures would be shrunk, or cut off."""

_LETTER, _LONGEST = 8, 18
"""The width of a capital letter in pixels, and the most letters of a name."""

_TEXT = 14
"""The height of a line of text in pixels."""


class Mark(NamedTuple):
    """A mark of the scale.

    Attributes:
        at: where, in columns from the left.
        text: what it says.
    """

    at: float
    text: str


def chart(
    alt: str,
    cells: Sequence[Sequence[int]],
    names: Mapping[int, str],
    ticks: Sequence[Mark],
    *,
    row_height: int = 16,
    gap: int = 2,
) -> str:
    """Return a chart as an image in Markdown.

    Args:
        alt: the image's name.
        cells: rows of equal length, from the top; each cell is one of the four constants.
        names: the names of rows, by their number from the top.
        ticks: the marks of the scale below, from the left.
        row_height: of a row in pixels, with its gap.
        gap: between two rows in pixels.
    """
    texts = {row: _shortened(name) for row, name in names.items()}
    margin = max((_LETTER * len(text) for text in texts.values()), default=0) + (14 if texts else 0)
    scale = (_WIDTH - margin) / len(cells[0])
    height = len(cells) * row_height
    paths = "".join(_paths(cells, row_height, row_height // 2))
    drawn = f"<g transform='translate({margin}) scale({scale:.4g} 1)' stroke-width='{row_height - gap}'>{paths}</g>"
    pixels = (
        f"<image href='{_png_data_uri(cells)}' x='{margin}' width='{_WIDTH - margin}' height='{height}'"
        " preserveAspectRatio='none' style='image-rendering:pixelated'/>"
    )
    parts = [
        min(drawn, pixels, key=len),
        f"<path stroke='gray' d='{''.join(f'M{margin + tick.at * scale:.0f} {height}v4' for tick in ticks)}'/>"
        if ticks
        else "",
        *_texts(texts, ticks, margin, scale, row_height, height),
    ]
    total = height + (_TEXT + 6 if ticks else 0)
    head = f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{total}' style='font:12px sans-serif' fill='gray'>"
    svg = "".join([head, *parts, "</svg>"])
    # Markdown unescapes the brackets; everything else may stand in a link as it is.
    return f"![{alt}](<data:image/svg+xml,{_for_link(svg)}>)"


def _png_data_uri(rows: Sequence[Sequence[int]]) -> str:
    """Return a PNG with a pixel for each cell as a data URI, which is shorter than paths of many runs."""
    lines = b"".join(b"\0" + _pack_pixels(list(row)) for row in rows)
    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 2, 3, 0, 0, 0)
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


def _paths(cells: Sequence[Sequence[int]], row_height: int, middle: int) -> Iterator[str]:
    """Yield a path for each colour: first each row's most frequent one, then runs of the others."""
    below: dict[int, list[str]] = defaultdict(list)
    above: dict[int, list[str]] = defaultdict(list)
    for number, row in enumerate(cells):
        y, most_frequent = number * row_height + middle, Counter(row).most_common(1)[0][0]
        below[most_frequent].append(f"M0 {y}h{len(row)}")
        at = 0
        for value, run in groupby(row):
            length = len(list(run))
            if value != most_frequent:
                above[value].append(f"M{at} {y}h{length}")
            at += length
    for layer in (below, above):
        for value, runs in sorted(layer.items()):
            yield f"<path stroke='{_COLOURS[value]}' d='{''.join(runs)}'/>"


def _texts(
    names: Mapping[int, str],
    ticks: Sequence[Mark],
    margin: int,
    scale: float,
    row_height: int,
    height: int,
) -> Iterator[str]:
    """Yield the names beside the rows, and the texts of the scale, all of them within the picture."""
    if names:
        yield "<g text-anchor='end'>"
        for row, name in names.items():
            y = max(11, row * row_height + row_height // 2 + 4)
            yield f"<text x='{margin - 8}' y='{y}'>{escape(name)}</text>"
        yield "</g>"
    if ticks:
        yield f"<g text-anchor='middle' transform='translate(0 {height + _TEXT + 2})'>"
    for tick in ticks:
        half = _LETTER * len(tick.text) / 2
        x = min(max(margin + tick.at * scale, half), _WIDTH - half)
        yield f"<text x='{x:.0f}'>{escape(tick.text)}</text>"
    if ticks:
        yield "</g>"


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"


def _for_link(svg: str) -> str:
    """Return an SVG as a part of a link in Markdown, as short as possible."""
    return (
        svg.replace("%", "%25")
        .replace("#", "%23")
        .replace("\\", "%5C")
        .replace("<", "\\<")
        .replace(">", "\\>")
    )
