"""The header of an Avro file, read without Spark: the schema of its records, and why none of them can be read."""

from __future__ import annotations

import io
import json
from typing import NamedTuple

from partitions.path.source import SourceFile
from resources.connections.places import Place
from resources.sources.files.lines import part_of

_HEAD = 64 * 1024


_MAGIC, _SYNC = b"Obj\x01", 16


_CODECS = ("null", "deflate", "snappy", "bzip2", "xz", "zstandard")


class Header(NamedTuple):
    """What the header of a file tells.

    Attributes:
        schema: of its records, as JSON; None if only Spark knows, or nobody.
        fault: why no record of the file can be read; None if that is not known.
    """

    schema: str | None
    fault: str | None = None


class BrokenHeaderError(Exception):
    """A header that is none."""


def header_of(place: Place, file: SourceFile) -> Header:
    """Return what the header of a file tells; nothing of one that the store does not give."""
    import fastavro
    from fastavro.schema import SchemaParseException
    from obstore.exceptions import BaseError

    size = _HEAD
    metadata = None
    try:
        while metadata is None:
            metadata = _metadata(part_of(place, file, 0, size), is_whole=size >= file.size)
            size *= 8
    except BrokenHeaderError as error:
        return Header(None, str(error))
    except (OSError, BaseError):
        return Header(None)
    codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
    if codec not in _CODECS:
        return Header(None, f"expected blocks packed by one of {', '.join(_CODECS)}, found {codec}")
    try:
        content = json.loads(metadata["avro.schema"])
    except (KeyError, ValueError, RecursionError):
        return Header(None, "expected a schema as JSON in its header, found none")
    try:
        return Header(json.dumps(fastavro.parse_schema(content, _write_hint=False)))
    except (SchemaParseException, LookupError, TypeError, ValueError):
        return Header(None)  # Spark may be less strict


def _metadata(head: bytes, *, is_whole: bool) -> dict[str, bytes] | None:
    """The pairs in a header; None if it goes on behind these bytes.

    Raises:
        BrokenHeaderError: it is no header of Avro, or the file ends in it.
    """
    if not head.startswith(_MAGIC):
        raise BrokenHeaderError("expected Avro, found another file")
    pairs: dict[str, bytes] = {}
    data = io.BytesIO(head[len(_MAGIC) :])
    try:
        while count := _number(data):
            if count < 0:  # the size of the block follows
                count = -count
                _number(data)
            for _ in range(count):
                name = _bytes(data).decode("utf-8", "replace")
                pairs[name] = _bytes(data)
        ends = len(data.read(_SYNC)) == _SYNC
    except EOFError:
        ends = False
    if not ends and is_whole:
        raise BrokenHeaderError("its header is damaged, or the file ends in it")
    return pairs if ends else None


def _number(data: io.BytesIO) -> int:
    """A whole number as Avro writes it: seven bits a byte, the lowest first; the lowest of all is the sign."""
    bits = shift = 0
    while True:
        byte = data.read(1)
        if not byte or shift > 63:
            raise EOFError
        bits |= (byte[0] & 0x7F) << shift
        shift += 7
        if not byte[0] & 0x80:
            return (bits >> 1) ^ -(bits & 1)


def _bytes(data: io.BytesIO) -> bytes:
    length = _number(data)
    value = data.read(length) if length >= 0 else b""
    if length < 0 or len(value) < length:
        raise EOFError
    return value
