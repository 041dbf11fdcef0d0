"""Ranges of ingested files, as sorted Parquet between two paths.

See docs/explanation/adr/0008-what-was-ingested-is-lists-merged-into-sorted-ranges.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import pyarrow as pa

UNPROCESSED = "unprocessed"
"""The reason of a file with rows in the table to read again (tracking: set)."""

UNPROCESSED_WITHOUT_ROWS = "unprocessed, and was not loaded before"
"""The reason of a file without rows in the table to read again, such as a copy that was skipped."""

GOES = "missing at the source: the next loads delete its rows"
"""The reason of a loaded file that an operator wants out of the table."""

WENT = "missing at the source: its rows were deleted"
"""The reason of a missing file once a commit has deleted its rows; if the file comes back, it is loaded."""

LOADED_AGAIN = (UNPROCESSED, UNPROCESSED_WITHOUT_ROWS, WENT)
"""Reasons of files that are loaded again if they are at the source."""


class IngestedFile(NamedTuple):
    """The record of an ingested file.

    Attributes:
        number: number of the last entry that handled it.
        reason: why it was skipped, or ``UNPROCESSED``; None if it was loaded.
        checksum: the computed checksum of its content; None if none was computed.
    """

    path: str
    size: int
    version: str
    modified: int
    number: int
    reason: str | None = None
    checksum: str | None = None


@dataclass(frozen=True)
class FileRange:
    """A Parquet file with all records between two paths, both inclusive, in UTF-8 order of the paths."""

    name: str
    first: str
    last: str
    count: int


def files_in(table: pa.Table, paths: Sequence[str] | None = None) -> Iterator[IngestedFile]:
    """Return the files of a range, in order; only those with one of ``paths``, unless it is None."""
    if paths is not None:
        import pyarrow as pa
        import pyarrow.compute as pc

        table = table.filter(pc.is_in(table["path"], pa.array(paths, pa.string())))
    table = with_checksums(table)
    columns: list[list[Any]] = [table[name].to_pylist() for name in IngestedFile._fields]
    return (IngestedFile(*row) for row in zip(*columns, strict=True))


def with_checksums(table: pa.Table) -> pa.Table:
    """Return a range with the column of checksums, which ranges of older versions lack."""
    import pyarrow as pa

    if "checksum" in table.column_names:
        return table
    return table.append_column("checksum", pa.nulls(table.num_rows, pa.string()))


def records_table(rows: Sequence[IngestedFile]) -> pa.Table:
    """Return records, at least one, as an Arrow table."""
    import pyarrow as pa

    schema = pa.schema(
        [
            ("path", pa.string()),
            ("size", pa.int64()),
            ("version", pa.string()),
            ("modified", pa.int64()),
            ("number", pa.int64()),
            ("reason", pa.string()),
            ("checksum", pa.string()),
        ]
    )
    columns = [
        pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def parquet_bytes(rows: Sequence[IngestedFile]) -> bytes:
    """Return sorted files as Parquet."""
    import pyarrow.parquet as pq

    buffer = BytesIO()
    # Sorted paths share their beginnings: in this encoding they take a third of the space.
    pq.write_table(
        records_table(rows),
        buffer,
        compression="zstd",
        use_dictionary=["reason"],
        column_encoding={"path": "DELTA_BYTE_ARRAY"},
    )
    return buffer.getvalue()
