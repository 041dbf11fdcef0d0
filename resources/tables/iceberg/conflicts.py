"""Recognize the errors of Spark and Iceberg that mean a conflict, so that a retry may succeed."""

from __future__ import annotations

from partitions.errors import WriteConflict, shorten_to_line

_LONGEST_REASON = 200
"""Longest part of Iceberg's message in ours, in characters."""

_CONFLICT_TEXTS = (
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
"""Texts in errors of Iceberg that mean a conflict."""


class BranchLost(Exception):
    """A branch changed while it was written: the writer was believed dead, or another engine dropped it."""


def is_conflict(error: Exception) -> bool:
    """Return whether a write failed because of another writer's commit."""
    if isinstance(error, BranchLost):
        return True
    text = shorten_to_line(str(error))
    return any(words in text for words in _CONFLICT_TEXTS)


def conflict_error(table: str, number: int, error: Exception) -> WriteConflict:
    """Return the WriteConflict for an error of Spark, Iceberg or a branch.

    Args:
        table: name of the table, for people.
        number: number that was being written.
        error: error that was caught.
    """
    return WriteConflict(
        f"table {table}: other writers committed while number {number} was being written: "
        f"{shorten_to_line(str(error))[:_LONGEST_REASON]}. No data is lost: the next run writes it again. "
        "If this repeats, pause the other writers"
    )
