"""Find the encoding of JSON files, and bytes that are no text."""

from __future__ import annotations

from partitions.errors import BadFile
from partitions.records.options import non_utf8_encoding
from partitions.sources import FilesSource
from resources.sources.files.failures import bad_encoding_error
from resources.sources.files.formats.format import FormatReader
from resources.sources.files.lines import detect_binary, detect_encoding, find_undecodable_line


def json_encoding(source: FilesSource) -> str:
    """Return the encoding that options name, or UTF-8."""
    return non_utf8_encoding(source.options) or "utf-8"


def find_decoding_error(form: FormatReader, path: str) -> BadFile | None:
    """Return the error for a file that should be UTF-8 and is not, with its first bad line; else None."""
    if json_encoding(form.source) != "utf-8":
        return None
    line = find_undecodable_line(form.place, path)
    if line is None:
        return None
    encoding, binary = detect_encoding(form.place, path), detect_binary(form.place, path)
    if form.READS_DOCUMENTS:
        return bad_encoding_error(path, line, f"encoding: {encoding or 'windows-1252'}", binary)
    return bad_encoding_error(
        path, line, 'encoding: windows-1252, lineSep: "\\n"' if encoding is None else None, binary
    )
