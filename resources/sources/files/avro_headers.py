"""The headers of Avro files, read without Spark: the schema of their records, and why none of a file can be read."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import NamedTuple

from partitions.errors import BadFile
from partitions.path.source import SourceFile
from partitions.records.forms import Type
from partitions.records.options import by_lower_name
from resources.connections.places import Place
from resources.sources.files.avro_schemas import doubled_names, own_types, unreadable_field
from resources.sources.files.failures import bad_document, names_twice, unreadable_type
from resources.sources.files.lines import part_of

_HEAD = 64 * 1024
_MAGIC, _SYNC = b"Obj\x01", 16
_CODECS = ("null", "deflate", "snappy", "bzip2", "xz", "zstandard")

_MOST_HEADERS = 10_000
"""That are kept."""


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


class AvroHeaders:
    """The headers of the files of a dataflow, each read once."""

    def __init__(self, place: Place, options: Mapping[str, str]) -> None:
        """Look at no file yet.

        Args:
            place: the root.
            options: of the source.
        """
        self._place, self._options = place, options
        self._known: dict[SourceFile, Header] = {}

    def _header(self, file: SourceFile) -> Header:
        if file not in self._known:
            if len(self._known) >= _MOST_HEADERS:
                del self._known[next(iter(self._known))]
            self._known[file] = header_of(self._place, file)
        return self._known[file]

    def own_types(self, text: str) -> Mapping[str, Type | None]:
        """The types of the columns of a header; of a union of several none is known if an option names its members."""
        name = "enablestableidentifiersforuniontype"
        return own_types(
            text, are_members_numbered=by_lower_name(self._options).get(name, "false").lower() != "true"
        )

    def schema(self, file: SourceFile) -> str | None:
        """Return the schema in a header, as JSON; None if the file has none, or none that reads."""
        return self._header(file).schema

    def fault(self, file: SourceFile) -> BadFile | None:
        """Why a file cannot be loaded, whatever its records are; None if it can."""
        text, fault = self._header(file)
        if fault is not None:
            return bad_document(file.path, fault)
        if text is None:
            return None
        twice, strange = doubled_names(text), unreadable_field(text)
        if twice is not None:
            return names_twice(file.path, *twice)
        return None if strange is None else unreadable_type(file.path, *strange)
