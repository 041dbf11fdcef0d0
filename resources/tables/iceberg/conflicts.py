"""Which errors of Spark's and Iceberg's say that a table is not what a commit was planned on, so that the same write may succeed now."""

from __future__ import annotations

from partitions.errors import WriteConflict, in_one_line

_SHOWN = 200
"""Letters of Iceberg's words for a conflict."""

_CONFLICTS = (
    "ValidationException",
    "CommitFailedException",
    "Found conflicting files",
    "Cannot determine history",
    "stale table metadata",
    "some, but not all, rows match",
    "Requirement failed",
    "FIELD_ALREADY_EXISTS",
    "FIELDS_ALREADY_EXISTS",
)
"""What Iceberg says of a conflict."""


class BranchLost(Exception):
    """A branch is not what was written to it: the writer was believed dead, or another engine has dropped it."""


def is_conflict(error: Exception) -> bool:
    """Return whether another writer's commit is why a write failed."""
    if isinstance(error, BranchLost):
        return True
    text = in_one_line(str(error))
    return any(words in text for words in _CONFLICTS)


def conflict_of(table: str, number: int, error: Exception) -> WriteConflict:
    """Return the conflict that an error of Spark's, Iceberg's or a branch tells of.

    Args:
        table: for people.
        number: that is written.
        error: that was caught.
    """
    return WriteConflict(
        f"table {table}: other writers committed while number {number} was written: {in_one_line(str(error))[:_SHOWN]}. Nothing is lost: the next run"
        " finishes it; let other writers pause"
    )
