"""Describe the files that commits of an Iceberg table add and remove, as Arrow reads them."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from resources.connections.places import Place
from resources.tables.contract.changed_file import ChangedFile
from resources.tables.contract.commit_log import LoggedCommit
from resources.tables.data_files.located import locate, read_range
from resources.tables.data_files.roaring import roaring_positions
from resources.tables.iceberg.catalog import key_below
from resources.tables.iceberg.changed_files import IcebergFileRead, changed_files
from resources.tables.iceberg.commit_column import hidden_columns
from resources.tables.iceberg.file_sets import EQUALITY, FileSets, LiveFile
from resources.tables.parquet.files import open_file, raising_read_errors

if TYPE_CHECKING:
    import pyarrow as pa

_ID = b"PARQUET:field_id"
_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - instants in UTC, and times without a zone
_BLOB_HEAD, _BLOB_TAIL = 8, 4
"""Bytes around the bitmap of a deletion vector: its length and a magic number, and a checksum."""


def described_files(place: Place, sets: FileSets, commits: Sequence[LoggedCommit]) -> list[ChangedFile]:
    """Return the files that hold the rows which commits change; of another format than Parquet, no rows."""
    hidden = hidden_columns(sets.metadata)
    fields = {int(field["id"]): field for field in sets.metadata.schema["fields"]}
    names = _names({number: str(field["name"]) for number, field in fields.items()}, hidden)
    return [
        _described(place, read, names, fields) for read in changed_files(sets, commits, inserts_only=False)
    ]


def _described(
    table: Place,
    read: IcebergFileRead,
    names: Callable[[pa.Schema], Sequence[str | None]],
    fields: Mapping[int, Mapping[str, Any]],
) -> ChangedFile:
    place, path = _locate(table, read.file.path)
    deletes = read.file.deletes
    positions = [delete for delete in deletes if delete.file["content"] != EQUALITY and _is_readable(delete)]
    return ChangedFile(
        read.version,
        read.sign,
        place,
        path,
        int(read.file.file["file_size_in_bytes"]),
        names,
        bounds=_bounds(read.file, fields),
        deleted=partial(_deleted_positions, table, read.file.path, positions) if positions else None,
        is_exact=len(positions) == len(deletes),
        is_parquet=_format(read.file) == "PARQUET",
    )


def _locate(table: Place, path: str) -> tuple[Place, str]:
    key = key_below(table, path)
    return locate(table, path, is_escaped=False) if key is None else (table, key)


def _format(file: LiveFile) -> str:
    return str(file.file.get("file_format") or "PARQUET").upper()


def _is_readable(delete: LiveFile) -> bool:
    return _format(delete) in ("PARQUET", "PUFFIN")


def _names(by_id: Mapping[int, str], hidden: Collection[str]) -> Callable[[pa.Schema], Sequence[str | None]]:
    """Return a function that names a file's columns by their ids, as they are called now.

    Args:
        by_id: names of the table's columns by their ids.
        hidden: names of columns that Strandline keeps for itself.
    """

    def names(schema: pa.Schema) -> list[str | None]:
        ids = [(field.metadata or {}).get(_ID) for field in schema]
        current = [
            by_id.get(int(number)) if number else name for number, name in zip(ids, schema.names, strict=True)
        ]
        return [None if name in hidden else name for name in current]

    return names


def _bounds(file: LiveFile, fields: Mapping[int, Mapping[str, Any]]) -> dict[str, tuple[Any, Any]]:
    """Return the bounds of columns with times, by their names now."""
    lower, upper = (
        {int(pair["key"]): bytes(pair["value"]) for pair in file.file.get(name) or ()}
        for name in ("lower_bounds", "upper_bounds")
    )
    bounds: dict[str, tuple[Any, Any]] = {}
    for number in lower.keys() & upper.keys() & fields.keys():
        field = fields[number]
        low, high = (_time(field["type"], side[number]) for side in (lower, upper))
        if low is not None and high is not None:
            bounds[str(field["name"])] = (low, high)
    return bounds


def _time(data_type: Any, value: bytes) -> date | datetime | None:
    try:
        if data_type == "date":
            return (_EPOCH + timedelta(days=struct.unpack("<i", value)[0])).date()
        if data_type in ("timestamp", "timestamptz"):
            return _EPOCH + timedelta(microseconds=struct.unpack("<q", value)[0])
    except (struct.error, OverflowError):
        return None
    return None


def _deleted_positions(table: Place, path: str, deletes: Sequence[LiveFile]) -> Collection[int]:
    """Return the positions of the rows of a data file that delete files name."""
    positions: set[int] = set()
    for delete in deletes:
        place, key = _locate(table, delete.path)
        if _format(delete) == "PUFFIN":
            start, size = int(delete.file["content_offset"]), int(delete.file["content_size_in_bytes"])
            blob = read_range(place, key, start, size)
            positions |= set(roaring_positions(blob[_BLOB_HEAD:-_BLOB_TAIL]))
        else:
            positions |= _positions_in(place, key, path)
    return positions


def _positions_in(place: Place, key: str, path: str) -> set[int]:
    import pyarrow.compute as pc

    with raising_read_errors(place, key), open_file(place, key) as parquet:
        rows = parquet.read(columns=["file_path", "pos"])
    return set(rows.filter(pc.equal(rows.column("file_path"), path)).column("pos").to_pylist())
