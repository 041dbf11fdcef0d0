"""Find the place of a data file by its path in a table's log, and read a part of it."""

from __future__ import annotations

from urllib.parse import unquote

from resources.connections.places import Place
from resources.tables.parquet.files import raising_read_errors


def locate(table: Place, path: str, *, is_escaped: bool) -> tuple[Place, str]:
    """Return the place that a file lies in, and its path below it.

    Args:
        table: place of the table, to which a path without a scheme is relative.
        path: path as the log spells it.
        is_escaped: whether the path is percent-encoded.
    """
    plain = unquote(path) if is_escaped else path
    for scheme in ("file://", "file:"):
        if plain.startswith(scheme):
            plain = plain.removeprefix(scheme)
            break
    if plain.startswith("/"):
        folder, _, name = plain.rpartition("/")
        return Place(folder or "/"), name
    scheme, separator, rest = plain.partition("://")
    if not separator:
        return table, plain
    bucket, _, key = rest.partition("/")
    return Place(f"{'s3' if scheme in ('s3a', 's3n') else scheme}://{bucket}", table.connection), key


def read_range(place: Place, path: str, start: int, size: int) -> bytes:
    """Return some bytes of a file.

    Raises:
        FileMoved: it is missing.
        SourceError: it cannot be read.
    """
    with raising_read_errors(place, path):
        if place.local is None:
            return bytes(place.store.get_range(path, start=start, length=size))
        with (place.local / path).open("rb") as file:
            file.seek(start)
            return file.read(size)
