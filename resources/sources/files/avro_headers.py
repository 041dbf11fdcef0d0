"""Read the headers of Avro files without Spark: the schema of their records, and known faults."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import NamedTuple

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.forms import Type
from partitions.records.options import with_lower_names
from resources.connections.places import Place
from resources.sources.files.avro_schemas import find_doubled_names, find_unreadable_field, own_types
from resources.sources.files.failures import bad_document_error, doubled_names_error, unreadable_type_error
from resources.sources.files.lines import read_range

_HEAD = 64 * 1024
_MAGIC, _SYNC = b"Obj\x01", 16
_CODECS = ("null", "deflate", "snappy", "bzip2", "xz", "zstandard")

_MAX_HEADERS = 10_000
"""The most headers in the cache."""


class AvroHeader(NamedTuple):
    """The content of an Avro header.

    Attributes:
        schema: the schema of the records, as JSON; None if it cannot be read here.
        fault: why no record of the file can be read; None if there is no known reason.
    """

    schema: str | None
    fault: str | None = None


class BrokenHeaderError(Exception):
    """A header that is not Avro's, or is damaged."""


def read_header(place: Place, file: SourceFile) -> AvroHeader:
    """Return the header of a file; an empty one if the store does not return the file."""
    import fastavro
    from fastavro.schema import SchemaParseException
    from obstore.exceptions import BaseError

    size = _HEAD
    metadata = None
    try:
        while metadata is None:
            metadata = _read_metadata(read_range(place, file, 0, size), is_whole=size >= file.size)
            size *= 8
    except BrokenHeaderError as error:
        return AvroHeader(None, str(error))
    except (OSError, BaseError):
        return AvroHeader(None)
    codec = metadata.get("avro.codec", b"null").decode("utf-8", "replace")
    if codec not in _CODECS:
        return AvroHeader(None, f"expected blocks compressed with one of {', '.join(_CODECS)}, found {codec}")
    try:
        content = json.loads(metadata["avro.schema"])
    except (KeyError, ValueError, RecursionError):
        return AvroHeader(None, "expected a schema as JSON in its header, found none")
    try:
        return AvroHeader(json.dumps(fastavro.parse_schema(content, _write_hint=False)))
    except (SchemaParseException, LookupError, TypeError, ValueError):
        return AvroHeader(None)  # Spark may be less strict


def _read_metadata(head: bytes, *, is_whole: bool) -> dict[str, bytes] | None:
    """Return the key-value pairs of a header; None if the header is longer than these bytes.

    Raises:
        BrokenHeaderError: it is no Avro header, or the file ends within it.
    """
    if not head.startswith(_MAGIC):
        raise BrokenHeaderError("expected an Avro file, found another format")
    pairs: dict[str, bytes] = {}
    data = io.BytesIO(head[len(_MAGIC) :])
    try:
        while count := _read_number(data):
            if count < 0:  # the size of the block follows
                count = -count
                _read_number(data)
            for _ in range(count):
                name = _read_bytes(data).decode("utf-8", "replace")
                pairs[name] = _read_bytes(data)
        ends = len(data.read(_SYNC)) == _SYNC
    except EOFError:
        ends = False
    if not ends and is_whole:
        raise BrokenHeaderError("its header is damaged, or the file ends in it")
    return pairs if ends else None


def _read_number(data: io.BytesIO) -> int:
    """Read a whole number in Avro's variable-length zigzag coding."""
    bits = shift = 0
    while True:
        byte = data.read(1)
        if not byte or shift > 63:
            raise EOFError
        bits |= (byte[0] & 0x7F) << shift
        shift += 7
        if not byte[0] & 0x80:
            return (bits >> 1) ^ -(bits & 1)


def _read_bytes(data: io.BytesIO) -> bytes:
    length = _read_number(data)
    value = data.read(length) if length >= 0 else b""
    if length < 0 or len(value) < length:
        raise EOFError
    return value


class AvroHeaders:
    """A cache of the headers of a dataflow's files."""

    def __init__(self, place: Place, options: Mapping[str, str]) -> None:
        """Start with an empty cache.

        Args:
            place: the root.
            options: the options of the source.
        """
        self._place, self._options = place, options
        self._headers: dict[SourceFile, AvroHeader] = {}

    def _header(self, file: SourceFile) -> AvroHeader:
        if file not in self._headers:
            if len(self._headers) >= _MAX_HEADERS:
                del self._headers[next(iter(self._headers))]
            self._headers[file] = read_header(self._place, file)
        return self._headers[file]

    def own_types(self, text: str) -> Mapping[str, Type | None]:
        """Return the types of a schema's columns.

        The type of a union of several types is None if an option makes Spark name its members.
        """
        name = "enablestableidentifiersforuniontype"
        return own_types(
            text, are_members_numbered=with_lower_names(self._options).get(name, "false").lower() != "true"
        )

    def schema(self, file: SourceFile) -> str | None:
        """Return the schema of a file as JSON; None if there is none that can be read."""
        return self._header(file).schema

    def fault(self, file: SourceFile) -> BadFile | None:
        """Return why a file cannot be loaded, judged by its header alone; None if it can."""
        text, fault = self._header(file)
        if fault is not None:
            return bad_document_error(file.path, fault)
        if text is None:
            return None
        doubled_name, unreadable = find_doubled_names(text), find_unreadable_field(text)
        if doubled_name is not None:
            return doubled_names_error(file.path, *doubled_name)
        return None if unreadable is None else unreadable_type_error(file.path, *unreadable)
