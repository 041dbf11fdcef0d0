"""Footers of Parquet files, on a disk or in a bucket."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from resources.connections.places import Place
from resources.listing.failures import store_failures

if TYPE_CHECKING:
    from pyarrow.parquet import FileMetaData


_FOOTER_BYTES = 64 * 2**10


_LEGACY_CALENDAR = b"org.apache.spark.legacyDateTime"
"""In the footer of a file whose days and times Spark counts in another calendar than the footer's own bounds."""


def footer_of(table: Place, path: str, size: int) -> FileMetaData:
    """Return what a file says of itself.

    Args:
        table: for example the table's place.
        path: relative to it.
        size: in bytes.

    Raises:
        SourceError: it cannot be read.
    """
    with store_failures(table):
        return read_footer(table, path, size) if table.local is None else local_footer(table.local / path)


def is_of_another_calendar(footer: FileMetaData) -> bool:
    """Return whether the days and times of a file are counted in another calendar than readers count in."""
    return _LEGACY_CALENDAR in (footer.metadata or {})


def local_footer(path: Path) -> FileMetaData:
    """Return the footer of a file on a disk."""
    import pyarrow.parquet as pq

    with path.open("rb") as file:
        return pq.read_metadata(file)


def read_footer(table: Place, path: str, size: int) -> FileMetaData:
    """The footer of an object, in one request as a rule: its length stands before the last four bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tail = bytes(table.store.get_range(path, start=max(0, size - _FOOTER_BYTES), end=size))
    length = int.from_bytes(tail[-8:-4], "little") + 8
    if length > len(tail):
        tail = bytes(table.store.get_range(path, start=size - length, end=size))
    return pq.read_metadata(pa.BufferReader(tail))
