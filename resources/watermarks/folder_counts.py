"""Count the record of ingested files by folder, range by range: memory does not grow with the record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from partitions.path.ledger import FileCounts
from partitions.path.ledger_partitions import FilePlace

if TYPE_CHECKING:
    import pyarrow as pa

_FOLDER = r"(?s)/?[^/]*$"
"""What follows the folder in a path: its last slash and the name."""


def count_by_place(
    tables: Iterable[pa.Table], loaded: tuple[str, ...], skipped: tuple[str, ...], duplicate_prefix: str
) -> dict[FilePlace, FileCounts]:
    """Return the loaded and skipped files of each folder; of files at the root, of each day of arrival.

    Args:
        tables: records with the columns of ``IngestedFile``.
        loaded: reasons of files that count as loaded, beside files without a reason.
        skipped: reasons of files that a decision has skipped.
        duplicate_prefix: the beginning of the reasons of files that were not loaded, as copies of others.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    counts: dict[FilePlace, FileCounts] = defaultdict(FileCounts)
    for table in tables:
        reasons = table["reason"]
        is_loaded = is_loaded_mask(reasons, loaded)
        columns = {
            "files": is_loaded,
            "bytes": pc.if_else(is_loaded, table["size"], 0),
            "skipped": pc.is_in(reasons, pa.array(skipped, pa.string())),
            "duplicates": pc.fill_null(pc.starts_with(reasons, duplicate_prefix), False),
        }
        numbers = {name: pc.cast(values, pa.int64()) for name, values in columns.items()}
        for place, sums in _sums(table, numbers):
            counts[place] = counts[place].plus(FileCounts(**sums))
    return {place: place_counts for place, place_counts in counts.items() if any(place_counts)}


def count_files(table: pa.Table, name: str) -> dict[FilePlace, FileCounts]:
    """Return the number of files of each place under one name of the counts, such as ``waiting``.

    The table has the columns ``path`` and ``modified``.
    """
    import pyarrow as pa

    numbers = {name: pa.chunked_array([pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)])}
    return {place: FileCounts(**sums) for place, sums in _sums(table, numbers)} if table.num_rows else {}


def files_modified(tables: Iterable[pa.Table], start: int, end: int, loaded: tuple[str, ...]) -> set[str]:
    """Return the paths of loaded files that were modified from ``start`` to before ``end``, epoch ms."""
    import pyarrow.compute as pc

    paths: set[str] = set()
    for table in tables:
        modified = table["modified"]
        within = pc.and_(pc.greater_equal(modified, start), pc.less(modified, end))
        paths.update(
            table["path"].filter(pc.and_(within, is_loaded_mask(table["reason"], loaded))).to_pylist()
        )
    return paths


def is_loaded_mask(reasons: pa.ChunkedArray, loaded: tuple[str, ...]) -> Any:
    """Return which records are of loaded files: those without a reason, or with one of ``loaded``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.or_(pc.is_null(reasons), pc.is_in(reasons, pa.array(loaded, pa.string())))


def folders_of(paths: pa.ChunkedArray) -> Any:
    """Return the folder of each path; "" for files at the root."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(paths, _FOLDER, "", max_replacements=1)


def days_of(modified: pa.ChunkedArray) -> Any:
    """Return the day (UTC) of each time of modification, epoch ms; "" for files that nobody has seen."""
    import pyarrow as pa
    import pyarrow.compute as pc

    days = pc.strftime(pc.cast(modified, pa.timestamp("ms")), "%Y-%m-%d")
    return pc.if_else(pc.equal(modified, 0), "", days)


def _sums(table: pa.Table, numbers: dict[str, Any]) -> Iterable[tuple[FilePlace, dict[str, int]]]:
    """Yield the sums of some columns for each place."""
    import pyarrow as pa
    import pyarrow.compute as pc

    folders = folders_of(table["path"])
    day = pc.if_else(pc.equal(folders, ""), days_of(table["modified"]), "")
    grouped = pa.table({"folder": folders, "day": day, **numbers}).group_by(["folder", "day"])
    summed = grouped.aggregate([(name, "sum") for name in numbers])
    for row in summed.to_pylist():
        yield FilePlace(row["folder"], row["day"]), {name: row[f"{name}_sum"] for name in numbers}
