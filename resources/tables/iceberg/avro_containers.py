"""Read and write the Avro files of manifests and manifest lists, record by record.

Fields and logical types that we do not know stay as they are, since only the plain types below them are
decoded.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from typing import Any

_MAGIC = b"Obj\x01"
_SYNC_LENGTH = 16
_HEADER = {
    "type": "record",
    "name": "header",
    "fields": [
        {"name": "magic", "type": {"type": "fixed", "name": "magic", "size": len(_MAGIC)}},
        {"name": "meta", "type": {"type": "map", "values": "bytes"}},
        {"name": "sync", "type": {"type": "fixed", "name": "sync", "size": _SYNC_LENGTH}},
    ],
}
_CODECS = (b"null", b"deflate")
_RAW_DEFLATE = -15
"""Window bits of zlib for a stream without header and checksum."""


@dataclass(frozen=True)
class AvroContainer:
    """An Avro file.

    Attributes:
        header: magic, metadata and sync marker, as stored.
        records: records, as plain values.
    """

    header: Mapping[str, Any]
    records: list[dict[str, Any]]

    @classmethod
    def parse(cls, data: bytes) -> AvroContainer:
        """Parse a file.

        Raises:
            ValueError: it is no Avro file, or compressed otherwise than by deflate.
        """
        import fastavro

        stream = BytesIO(data)
        header: Any = fastavro.schemaless_reader(stream, _HEADER, None)
        codec = header["meta"].get("avro.codec", b"null")
        if header["magic"] != _MAGIC or codec not in _CODECS:
            raise ValueError(f"expected an Avro file, plain or compressed with deflate, found {codec!r}")
        schema, records = _plain_schema(header), []
        while stream.tell() < len(data):
            count, size = _read_long(stream), _read_long(stream)
            block = stream.read(size)
            block_stream = BytesIO(zlib.decompress(block, _RAW_DEFLATE) if codec == b"deflate" else block)
            records += [fastavro.schemaless_reader(block_stream, schema, None) for _ in range(count)]
            if stream.read(_SYNC_LENGTH) != header["sync"]:
                raise ValueError("expected the end of a block, found other bytes: the file is damaged")
        return cls(header, records)  # type: ignore[arg-type]

    def encode(self) -> bytes:
        """Return the file, with one block of records."""
        import fastavro

        schema, block_stream, file = _plain_schema(self.header), BytesIO(), BytesIO()
        for record in self.records:
            fastavro.schemaless_writer(block_stream, schema, record)
        block = block_stream.getvalue()
        if self.header["meta"].get("avro.codec") == b"deflate":
            compressor = zlib.compressobj(wbits=_RAW_DEFLATE)
            block = compressor.compress(block) + compressor.flush()
        fastavro.schemaless_writer(file, _HEADER, dict(self.header))
        if self.records:
            for number in (len(self.records), len(block)):
                fastavro.schemaless_writer(file, "long", number)
            file.write(block + self.header["sync"])
        return file.getvalue()


def _read_long(stream: BytesIO) -> int:
    import fastavro

    number: Any = fastavro.schemaless_reader(stream, "long", None)
    return int(number)


def _plain_schema(header: Mapping[str, Any]) -> Any:
    """Return the schema of the records, without logical types, whose conversion could lose something."""
    import fastavro

    return fastavro.parse_schema(_without_logical_types(json.loads(header["meta"]["avro.schema"])))


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    if isinstance(schema, dict):
        return {key: _without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    return schema
