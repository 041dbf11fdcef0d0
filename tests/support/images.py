"""Reads the charts of Dagster's pages."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from dataclasses import dataclass
from xml.etree import ElementTree as ET

_SVG = "{http://www.w3.org/2000/svg}"
_LETTERS = {"seagreen": "L", "goldenrod": "P", "crimson": "F", "darkgray": "M"}


@dataclass(frozen=True)
class Chart:
    """A chart.

    Attributes:
        cells: the rows from the top, a letter for each cell: loaded, in part, failed, missing.
        names: the names of the rows, from the top.
        ticks: the texts of the scale, from the left.
        places: where each of these texts begins and ends, in pixels, with 7 for a letter.
        width: of the whole image, in pixels.
    """

    cells: list[str]
    names: list[str]
    ticks: list[str]
    places: list[tuple[float, float]]
    width: float


def chart_of(drawn: str) -> Chart:
    """Return the chart of an image in Markdown."""
    match = re.search(r"!\[\w+\]\(<data:image/svg\+xml,(.*?)(?<!\\)>\)", drawn)
    assert match is not None
    text = (
        match[1]
        .replace("\\<", "<")
        .replace("\\>", ">")
        .replace("%23", "#")
        .replace("%5C", "\\")
        .replace("%25", "%")
    )
    svg = ET.fromstring(text)
    image = svg.find(f"{_SVG}image")
    groups = {group.get("text-anchor"): list(group) for group in svg.iter(f"{_SVG}g")}
    names, ticks = (groups.get(anchor, []) for anchor in ("end", "middle"))
    halves = [(float(tick.get("x", "")), 3.5 * len(tick.text or "")) for tick in ticks]
    return Chart(
        _pixels(image.get("href", "")) if image is not None else _runs(svg),
        [name.text or "" for name in names],
        [tick.text or "" for tick in ticks],
        [(x - half, x + half) for x, half in halves],
        float(svg.get("width", "")),
    )


def cells_of(drawn: str) -> list[str]:
    """Return the cells of a picture's chart, a letter each: loaded, in part, failed, missing."""
    return chart_of(drawn).cells


def _runs(svg: ET.Element) -> list[str]:
    """Return the cells of paths: later ones are drawn over earlier ones."""
    group = next(group for group in svg.iter(f"{_SVG}g") if group.get("stroke-width"))
    runs = [
        (int(y), int(x), int(length), _LETTERS[path.get("stroke", "")])
        for path in group
        for x, y, length in re.findall(r"M(\d+) (\d+)h(\d+)", path.get("d", ""))
    ]
    rows = {y: [""] * max(x + length for _, x, length, _ in runs) for y in sorted({run[0] for run in runs})}
    for y, x, length, letter in runs:
        rows[y][x : x + length] = letter * length
    return ["".join(row) for row in rows.values()]


def _pixels(uri: str) -> list[str]:
    data, at = base64.b64decode(uri.partition("base64,")[2]), 8
    chunks: dict[bytes, bytes] = {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        name, body = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0] == zlib.crc32(name + body)
        chunks[name], at = body, at + 12 + size
    width, height, depth, colours = struct.unpack(">IIBB", chunks[b"IHDR"][:10])
    assert (depth, colours, len(chunks[b"PLTE"])) == (2, 3, 12)
    raw, line = zlib.decompress(chunks[b"IDAT"]), 1 + -(-width // 4)
    rows = [raw[number * line + 1 : (number + 1) * line] for number in range(height)]
    pixels = [[byte >> shift & 3 for byte in row for shift in (6, 4, 2, 0)][:width] for row in rows]
    return ["".join("LPFM"[pixel] for pixel in row) for row in pixels]
