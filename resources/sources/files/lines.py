"""Read the lines of one file without Spark, to find the faulty one."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import zlib
from collections.abc import Callable, Collection, Sequence
from typing import IO, TYPE_CHECKING, Any, cast

from partitions.errors import shorten_to_line
from partitions.path.source import SourceFile
from resources.connections.places import Place

if TYPE_CHECKING:
    import obstore

PACKED_ENDINGS = (".gz", ".zst", ".bz2")
"""The endings of compressed files."""

_BEGINNING = 64 * 1024
"""Bytes at the start of a file that are read first."""
_LONGEST_LINE = 16 * 2**20


def read_beginning(place: Place, path: str, encoding: str = "utf-8") -> str:
    """Return the beginning of a file, at least up to a line break; "" if it cannot be read."""
    import obstore  # `validate`, which opens no store, loads this module, too

    try:
        with stream_file(place, path, _BEGINNING) as file:
            data = file.read(_BEGINNING)
            while b"\n" not in data and b"\r" not in data and len(data) < _LONGEST_LINE:
                if not (next_block := file.read(_BEGINNING)):
                    break
                data += next_block
            return data.decode(codec_of(encoding, data), "replace")
    except (OSError, EOFError, LookupError, obstore.exceptions.BaseError):
        return ""


def find_read_fault(place: Place, path: str) -> str | None:
    """Return why the beginning of a file cannot be read, such as a torn archive; None if it can."""
    try:
        with open_file(place, path) as file:
            file.read(_BEGINNING)
    except (OSError, EOFError, zlib.error) as error:
        return describe_archive_fault(error) or shorten_to_line(str(error))
    return None


def describe_archive_fault(error: Exception) -> str | None:
    """Describe the fault of the archive that caused an error; None if the archive did not."""
    message = str(error)
    if isinstance(error, EOFError) or "ended before" in message:
        return "its compressed bytes end too early"
    if isinstance(error, gzip.BadGzipFile) and message.startswith("Not a gzipped"):
        return "it is not a gzip file"
    is_damaged = isinstance(error, (zlib.error, gzip.BadGzipFile)) or (
        isinstance(error, OSError)
        and error.errno is None
        and ("Invalid data" in message or "ZSTD" in message)
    )
    return (
        "its compressed bytes are damaged, or its ending names the wrong compression" if is_damaged else None
    )


def codec_of(encoding: str, begin: bytes) -> str:
    """Return the codec of a text, given its first bytes.

    UTF-16 and UTF-32 without a byte order mark are big-endian, as in Java.

    Raises:
        LookupError: Python does not know the encoding.
    """
    name = codecs.lookup(encoding).name
    marks = {
        "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
        "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    }
    return f"{name}-be" if name in marks and not begin.startswith(marks[name]) else name


def _is_known(encoding: str) -> bool:
    try:
        codecs.lookup(encoding)
    except LookupError:
        return False
    return True


class _StoreFile(io.RawIOBase):
    """An object of a store as a Python file."""

    def __init__(self, reader: obstore.ReadableFile) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = bytes(self._reader.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)


def read_text(place: Place, path: str, encoding: str = "utf-8") -> str:
    """Return the text of a file without a byte order mark; "" if it cannot be read.

    An encoding that Python does not know counts as UTF-8.
    """
    encoding = encoding if _is_known(encoding) else "utf-8"
    try:
        with open_file(place, path) as file:
            data = file.read()
            return data.decode(codec_of(encoding, data), "replace").removeprefix("\ufeff")
    except (OSError, EOFError):
        return ""


class LineNumbers:
    """The line numbers of texts, found in one pass over each file.

    A text that occurs several times has several numbers.
    """

    def __init__(self, place: Place, texts: Sequence[tuple[str, str]], encoding: str = "utf-8") -> None:
        """Find the texts, each given with the path of its file."""
        self._numbers: dict[tuple[str, str], list[int]] = {}
        self._encoding = encoding if _is_known(encoding) else "utf-8"
        for path in dict.fromkeys(path for path, _ in texts):
            self._find(place, path, {_key(text) for name, text in texts if name == path})

    def next(self, path: str, text: str) -> int | None:
        """Return the number of the next line with this text, from 1; None if there is no further one."""
        numbers = self._numbers.get((path, _key(text)))
        return numbers.pop(0) if numbers else None

    def _find(self, place: Place, path: str, texts: Collection[str]) -> None:
        try:
            with (
                open_file(place, path) as file,
                io.TextIOWrapper(file, self._encoding, "replace", newline="") as lines,
            ):
                for number, line in enumerate(lines, 1):
                    if (text := _key(line)) in texts:
                        self._numbers.setdefault((path, text), []).append(number)
        except (OSError, EOFError):
            return


def _key(line: str) -> str:
    """Return a line without surrounding blanks and the byte order mark, which Spark sometimes keeps."""
    return line.removeprefix("\ufeff").strip()


def find_undecodable_line(place: Place, path: str) -> int | None:
    """Return the number of the first line that is not UTF-8, from 1; None if there is none."""
    return _find_line(place, path, lambda line: not _is_utf8(line))


_BINARY = {
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "a gzip file",
    b"BZh": "a bzip2 file",
    b"\x28\xb5\x2f\xfd": "a zstd file",
    b"PAR1": "a Parquet file",
    b"Obj\x01": "an Avro file",
    b"%PDF": "a PDF",
}
"""The first bytes of binary files, and their kinds."""


def detect_binary(place: Place, path: str) -> str | None:
    """Return the kind of a binary file, by its first bytes; None if they are not known."""
    begin = _first_bytes(place, path)
    return next((description for mark, description in _BINARY.items() if begin.startswith(mark)), None)


def detect_encoding(place: Place, path: str) -> str | None:
    """Return the encoding of a file's byte order mark, as options name it; None without one."""
    begin = _first_bytes(place, path)
    marks = {
        codecs.BOM_UTF32_LE: "UTF-32",
        codecs.BOM_UTF32_BE: "UTF-32",
        codecs.BOM_UTF16_LE: "UTF-16",
        codecs.BOM_UTF16_BE: "UTF-16",
    }
    return next((encoding for mark, encoding in marks.items() if begin.startswith(mark)), None)


def _first_bytes(place: Place, path: str) -> bytes:
    """Return the first four bytes of a file; none if it cannot be read."""
    try:
        with open_file(place, path) as file:
            return file.read(4)
    except (OSError, EOFError):
        return b""


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _find_line(place: Place, path: str, is_wanted: Callable[[bytes], bool]) -> int | None:
    try:
        with open_file(place, path) as lines:
            return next((number for number, line in enumerate(lines, 1) if is_wanted(line)), None)
    except (OSError, EOFError):
        return None


def read_range(place: Place, file: SourceFile, start: int, end: int) -> bytes:
    """Return the bytes of a file from ``start`` to ``end``, exclusive, as far as it has them.

    Raises:
        OSError: it cannot be read.
    """
    start, end = max(0, start), min(end, file.size)
    if place.local is None:
        return bytes(place.store.get_range(file.path, start=start, end=end))
    with (place.local / file.path).open("rb") as file_object:
        file_object.seek(start)
        return file_object.read(end - start)


def open_file(place: Place, path: str) -> IO[bytes]:
    """Open a file, decompressed as its ending says.

    Raises:
        OSError, EOFError: it cannot be read, now or later.
    """
    raw: IO[bytes] = (
        (place.local / path).open("rb") if place.local else io.BytesIO(bytes(place.store.get(path).bytes()))
    )
    return decompress(raw, path)


def stream_file(place: Place, path: str, size: int) -> IO[bytes]:
    """Open a file, decompressed as its ending says; an object store sends ``size`` bytes at a time.

    Raises:
        OSError, EOFError, obstore's errors: it cannot be read, now or later.
    """
    import obstore

    if place.local is not None:
        return decompress((place.local / path).open("rb"), path)
    return decompress(
        io.BufferedReader(_StoreFile(obstore.open_reader(place.store, path, buffer_size=size))), path
    )


def decompress(raw: IO[bytes], path: str) -> IO[bytes]:
    """Wrap an open file so that it is decompressed as the ending of its path says.

    Raises:
        OSError, EOFError: it cannot be read, now or later.
    """
    if path.endswith(".gz"):
        return cast(IO[bytes], gzip.open(raw))
    if path.endswith(".zst"):
        import pyarrow as pa

        return io.BufferedReader(pa.CompressedInputStream(raw, "zstd"))
    return bz2.open(raw) if path.endswith(".bz2") else raw


def compress(file: IO[bytes], path: str) -> IO[bytes]:
    """Wrap an open file so that writes are compressed as the ending of a path says."""
    if path.endswith(".gz"):
        return cast(IO[bytes], gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1))
    if path.endswith(".zst"):
        import pyarrow as pa

        return cast(IO[bytes], pa.CompressedOutputStream(pa.PythonFile(file, "w"), "zstd"))
    return bz2.BZ2File(file, "wb") if path.endswith(".bz2") else file
