"""Open Parquet files of a folder or a bucket without Spark."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from partitions.errors import SourceError, shorten_to_line
from resources.connections.places import Place
from resources.listing.failures import store_failures

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile


class FileMoved(SourceError):
    """A file is no longer where it was: another process moved it, or it was removed."""


def open_file(folder: Place, path: str) -> ParquetFile:
    """Open a file below a folder; of an object only the requested parts are read.

    Raises:
        FileMoved: it is missing.
        SourceError: it cannot be read.
    """
    import pyarrow.parquet as pq

    with raising_read_errors(folder, path):
        source = folder.local / path if folder.local is not None else _ObjectFile(folder, path)
        return pq.ParquetFile(source, coerce_int96_timestamp_unit="us")


@contextmanager
def raising_read_errors(folder: Place, path: str) -> Iterator[None]:
    """Turn errors of a read within the context into ours.

    Raises:
        FileMoved: the file is missing.
        SourceError: it cannot be read.
    """
    import pyarrow as pa

    with store_failures(folder):
        try:
            yield
        except FileNotFoundError:
            raise FileMoved(f"{folder}: {path} is missing", code="source_moved") from None
        except pa.ArrowException as error:
            raise SourceError(f"{folder}: {path} cannot be read: {shorten_to_line(str(error))}") from None


class _ObjectFile(io.RawIOBase):
    """An object as a file for Arrow, because obstore's own reader reports that it is closed."""

    def __init__(self, folder: Place, path: str) -> None:
        import obstore

        self._reader = obstore.open_reader(folder.store, path)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._reader.seek(offset, whence)

    def tell(self) -> int:
        return self._reader.tell()

    def read(self, size: int | None = -1) -> bytes:
        return bytes(self._reader.read(None if size is None or size < 0 else size))
