"""Read the column of commits in an Iceberg table: which commits wrote its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from partitions.target import COMMIT_COLUMN
from resources.tables.iceberg.commit import DIGITS, OWNS_COLUMN, commit_value, group_commits
from resources.tables.iceberg.filters import expressions
from resources.tables.iceberg.metadata import Metadata, Snapshot
from resources.tables.iceberg.scan import (
    data_files,
    has_rows,
    highest_values_of,
    open_table_at,
    scan_count,
    unreadable_error,
)

if TYPE_CHECKING:
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.manifest import DataFile


def count_of_commit(metadata: Metadata, snapshot: Snapshot, app_id: str, number: int) -> int:
    """Count the rows of a snapshot that a commit wrote.

    Raises:
        SourceError: the rows cannot be read.
    """
    return scan_count(metadata, snapshot, expressions().EqualTo(COMMIT_COLUMN, commit_value(app_id, number)))


def highest_number(
    metadata: Metadata, app_id: str, snapshot: Snapshot | None = None, below: int | None = None
) -> int | None:
    """Return the highest number under a tag that has rows; None if there are none.

    Args:
        metadata: metadata of the table.
        app_id: app id of the tag.
        snapshot: snapshot whose rows are read; None: the newest.
        below: only smaller numbers count; None: all count.

    Raises:
        SourceError: the rows cannot be read.
    """
    if not owns_commit_column(metadata):
        return None
    upper = f"{app_id}:" + ("9" * DIGITS + "~" if below is None else f"{below:0{DIGITS}d}")
    in_tag_range = expressions().And(
        expressions().GreaterThanOrEqual(COMMIT_COLUMN, f"{app_id}:"),
        expressions().LessThan(COMMIT_COLUMN, upper),
    )
    searched_snapshot = snapshot or metadata.current
    bounds = _highest_commit_bounds(metadata, searched_snapshot, in_tag_range, f"{app_id}:", upper)
    if bounds is None:
        value = highest_values_of(metadata, searched_snapshot, [COMMIT_COLUMN], in_tag_range)[COMMIT_COLUMN]
    else:
        value = max(bounds, default=None)
    return None if value is None else int(value.rpartition(":")[2])


def holds_commit_of(metadata: Metadata, snapshot: Snapshot, app_id: str | None) -> bool:
    """Return whether a snapshot has rows of a dataflow; None: of any dataflow."""
    if not owns_commit_column(metadata):
        return False
    rows = (
        expressions().StartsWith(COMMIT_COLUMN, f"{app_id}:")
        if app_id
        else expressions().NotNull(COMMIT_COLUMN)
    )
    return has_rows(metadata, snapshot, rows)


def owns_commit_column(metadata: Metadata) -> bool:
    """Return whether the table's schema has the column of commits.

    A property would prove nothing, because any writer may remove it.
    """
    return any(
        field["name"] == COMMIT_COLUMN and field["type"] == "string" for field in metadata.schema["fields"]
    )


def hides_commit_column(metadata: Metadata) -> bool:
    """Return whether readers get rows without the column of commits.

    They do if Strandline writes the table. Another writer may have a column of that name.
    """
    return metadata.properties.get(OWNS_COLUMN) == COMMIT_COLUMN or any(
        commit.strandline_metadata for commit in group_commits(metadata.lineage())
    )


def hidden_columns(metadata: Metadata) -> tuple[str, ...]:
    """Return the names of the columns that readers do not get: the one of commits, or none."""
    return (COMMIT_COLUMN,) if hides_commit_column(metadata) else ()


def _highest_commit_bounds(
    metadata: Metadata, snapshot: Snapshot | None, in_tag_range: BooleanExpression, prefix: str, upper: str
) -> list[str] | None:
    """Return the commit column's highest value in each file that has such rows, from manifests.

    Manifests hold these values in full. None if the highest value of a file is outside the range.
    """
    if snapshot is None:
        return []
    try:
        table = open_table_at(metadata)
        column = table.schema().find_field(COMMIT_COLUMN).field_id
        files = [
            file
            for file in data_files(table, snapshot, in_tag_range)
            if _may_hold(file, column, prefix.encode(), upper.encode())
        ]
    except Exception as error:
        raise unreadable_error(metadata, error) from error
    bounds = [((file.upper_bounds or {}).get(column) or b"").decode() for file in files]
    are_complete = all(bound.startswith(prefix) and bound < upper for bound in bounds)
    return bounds if are_complete else None


def _may_hold(file: DataFile, column: int, lower: bytes, upper: bytes) -> bool:
    """Return whether a file's bounds allow texts of a column from ``lower`` to below ``upper``."""
    low, high = ((bounds or {}).get(column) for bounds in (file.lower_bounds, file.upper_bounds))
    if low is None or high is None:
        return (file.null_value_counts or {}).get(column) != file.record_count
    return high >= lower and low < upper
