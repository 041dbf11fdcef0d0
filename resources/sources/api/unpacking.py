"""Streaming decompression of an answer's body, which also proves that the body is complete."""

from __future__ import annotations

import zlib

from urllib3.exceptions import DecodeError, ProtocolError

_GZIP = frozenset({"gzip", "x-gzip"})
_DEFLATE = "deflate"
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_BITS, _ZLIB_BITS, _RAW_BITS = 31, 15, -15
"""Window bits, which select zlib's container format."""


class NotCompressed(Exception):
    """A body that is not compressed as its header says, and will not be on a retry.

    Attributes:
        names: the compression that the header names.
    """

    def __init__(self, names: str) -> None:
        """Store the header's compression."""
        super().__init__(names)
        self.names = names


class Decompressor:
    """A streaming decompressor of one body.

    Attributes:
        proves_end: whether the body itself shows that it is complete.
    """

    def __init__(self, encoding: str) -> None:
        """Decompress by the header ``Content-Encoding``.

        Unrequested encodings are ignored: such a body is usually not compressed at all.
        """
        names = [name.strip().lower() for name in encoding.split(",")]
        self._layers = [
            _CompressionLayer(name) for name in reversed(names) if name in _GZIP or name == _DEFLATE
        ]
        self.proves_end = bool(self._layers)

    def add(self, data: bytes) -> bytes:
        """Return the decompressed contents of the next bytes.

        Raises:
            NotCompressed: the first bytes are not compressed as the header says.
            DecodeError: the bytes are damaged.
        """
        for layer in self._layers:
            data = layer.add(data)
        return data

    def end(self) -> None:
        """Raise ProtocolError if the body was cut off."""
        if not all(layer.is_whole for layer in self._layers):
            raise ProtocolError("the compressed body ends too early")


class _CompressionLayer:
    def __init__(self, name: str) -> None:
        self._name = name
        self._bits = _GZIP_BITS if name in _GZIP else _ZLIB_BITS
        self._is_gzip = name in _GZIP
        self._stream = zlib.decompressobj(self._bits)
        self._is_empty = True
        self._first_bytes = b""

    @property
    def is_whole(self) -> bool:
        """Whether the stream's end has arrived; an empty body is complete."""
        return self._is_empty or self._stream.eof

    @property
    def _has_expected_header(self) -> bool:
        """Whether the first two bytes are the container's."""
        if self._is_gzip:
            return _GZIP_MAGIC.startswith(self._first_bytes)
        return len(self._first_bytes) < 2 or (
            self._first_bytes[0] & 15 == 8 and int.from_bytes(self._first_bytes) % 31 == 0
        )

    def add(self, data: bytes) -> bytes:
        self._first_bytes += data[: 2 - len(self._first_bytes)]
        parts: list[bytes] = []
        while data:
            if self._stream.eof:
                if self._is_gzip and not data.strip(b"\0"):  # padding
                    break
                if not self._is_gzip:
                    raise DecodeError("more data after the end of the compressed body")
                self._stream = zlib.decompressobj(self._bits)
            parts.append(self._decompress(data))
            data = self._stream.unused_data
        return b"".join(parts)

    def _decompress(self, data: bytes) -> bytes:
        try:
            decompressed = self._stream.decompress(data)
        except zlib.error:
            if not self._is_empty or (self._is_gzip and self._has_expected_header):
                raise DecodeError("damaged") from None
            if self._bits != _ZLIB_BITS:
                raise (
                    DecodeError("damaged") if self._has_expected_header else NotCompressed(self._name)
                ) from None
            # The standard asks for zlib's container; some servers omit it.
            self._bits = _RAW_BITS
            self._stream = zlib.decompressobj(self._bits)
            return self._decompress(data)
        self._is_empty = False
        return decompressed
