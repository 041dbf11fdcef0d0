"""Bodies of answers, unpacked as they come, to an end that is proved: a body that was packed tells its own."""

from __future__ import annotations

import zlib

from urllib3.exceptions import DecodeError, ProtocolError

_GZIP = frozenset({"gzip", "x-gzip"})
_DEFLATE = "deflate"
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_BITS, _ZLIB_BITS, _RAW_BITS = 31, 15, -15
"""Of the window, which tell zlib the container."""


class NotPacked(Exception):
    """A body that is not packed at all, or in another way than its header says, as it will be the next time.

    Attributes:
        names: how it should be packed.
    """

    def __init__(self, names: str) -> None:
        """Keep what the header says."""
        super().__init__(names)
        self.names = names


class Unpacking:
    """Unpacks one body.

    Attributes:
        proves_end: whether the body tells by its own bytes that it is whole.
    """

    def __init__(self, encoding: str) -> None:
        """Unpack by the header ``Content-Encoding``. What is packed in a way that nobody asked for stays as it is: as a rule it is not packed at all."""
        names = [name.strip().lower() for name in encoding.split(",")]
        self._layers = [_Layer(name) for name in reversed(names) if name in _GZIP or name == _DEFLATE]
        self.proves_end = bool(self._layers)

    def add(self, data: bytes) -> bytes:
        """Return what the next bytes hold.

        Raises:
            NotPacked: the first of them are not packed as the header says.
            DecodeError: they are damaged.
        """
        for layer in self._layers:
            data = layer.add(data)
        return data

    def end(self) -> None:
        """Raise ProtocolError if the body was cut off."""
        if not all(layer.is_whole for layer in self._layers):
            raise ProtocolError("the packed body has no end")


class _Layer:
    def __init__(self, name: str) -> None:
        self._name = name
        self._bits = _GZIP_BITS if name in _GZIP else _ZLIB_BITS
        self._is_gzip = name in _GZIP
        self._stream = zlib.decompressobj(self._bits)
        self._is_empty = True
        self._begin = b""

    @property
    def is_whole(self) -> bool:
        """Whether its end has come; that of a body without a byte has nothing to end."""
        return self._is_empty or self._stream.eof

    @property
    def _begins_as_said(self) -> bool:
        """Whether the first two bytes are those of the container."""
        if self._is_gzip:
            return _GZIP_MAGIC.startswith(self._begin)
        return len(self._begin) < 2 or (self._begin[0] & 15 == 8 and int.from_bytes(self._begin) % 31 == 0)

    def add(self, data: bytes) -> bytes:
        self._begin += data[: 2 - len(self._begin)]
        parts: list[bytes] = []
        while data:
            if self._stream.eof:
                if self._is_gzip and not data.strip(b"\0"):  # padding
                    break
                if not self._is_gzip:
                    raise DecodeError("more behind the end of the packed body")
                self._stream = zlib.decompressobj(self._bits)
            parts.append(self._unpacked(data))
            data = self._stream.unused_data
        return b"".join(parts)

    def _unpacked(self, data: bytes) -> bytes:
        try:
            unpacked = self._stream.decompress(data)
        except zlib.error:
            if not self._is_empty or (self._is_gzip and self._begins_as_said):
                raise DecodeError("damaged") from None
            if self._bits != _ZLIB_BITS:
                raise (DecodeError("damaged") if self._begins_as_said else NotPacked(self._name)) from None
            # By the standard it has the container of zlib; some servers send it without.
            self._bits = _RAW_BITS
            self._stream = zlib.decompressobj(self._bits)
            return self._unpacked(data)
        self._is_empty = False
        return unpacked
