"""Read footers of Parquet files, on a disk or in a bucket."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from resources.connections.places import Place
from resources.listing.failures import store_failures

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData


_FOOTER_BYTES = 64 * 2**10


_LEGACY_CALENDAR = b"org.apache.spark.legacyDateTime"
"""Key in the footer of a file whose dates and times use Spark's old calendar, unlike the footer's bounds."""


def file_footer(table: Place, path: str, size: int) -> FileMetaData:
    """Return the footer of a Parquet file.

    Args:
        table: place that the path is relative to.
        path: path of the file.
        size: size of the file in bytes.

    Raises:
        SourceError: the file cannot be read.
    """
    with store_failures(table):
        return object_footer(table, path, size) if table.local is None else local_footer(table.local / path)


def has_legacy_calendar(footer: FileMetaData) -> bool:
    """Return whether a file's dates and times use Spark's old calendar.

    Its bounds are then in another calendar than its readers'.
    """
    return _LEGACY_CALENDAR in (footer.metadata or {})


def local_footer(path: Path) -> FileMetaData:
    """Return the footer of a file on a disk."""
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        return pq.read_metadata(file)


def object_footer(table: Place, path: str, size: int) -> FileMetaData:
    """Return the footer of an object, in one request unless the footer is longer than 64 KiB.

    The length of the footer stands before the last four bytes.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    tail = bytes(table.store.get_range(path, start=max(0, size - _FOOTER_BYTES), end=size))
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if length > len(tail):
        tail = bytes(table.store.get_range(path, start=size - length, end=size))
    return pq.read_metadata(pa.BufferReader(tail))
