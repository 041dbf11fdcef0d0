"""Decide what a run does with a bad file: stop, quarantine it, or list again later.

See docs/reference/files.md, Bad files.
"""

from __future__ import annotations

from typing import Literal

FILE_CHANGED = "file_changed"
"""Code of a file that changed after its listing."""
FILE_VANISHED = "file_vanished"
"""Code of a listed file that no longer exists."""
CHANGED_WHILE_READ = "file_changed_while_read"
"""Code of a file whose rows are in the table, but of an unknown version of the file."""

OnBadFile = Literal["stop", "quarantine"]


def is_outdated(code: str) -> bool:
    """Return whether a new listing may remove the fault: the file changed or vanished."""
    return code in (FILE_CHANGED, FILE_VANISHED)


def is_skipped(on_bad_file: OnBadFile, code: str) -> bool:
    """Return whether a bad file goes into quarantine, and the run continues without it.

    A file that still grows needs only time, and one that changed while it was read is already in the
    table.
    """
    return on_bad_file == "quarantine" and code != FILE_CHANGED and not is_loaded(code)


def is_loaded(code: str) -> bool:
    """Return whether the rows of a bad file are already in the table.

    Then no other file need be left out or loaded before it.
    """
    return code == CHANGED_WHILE_READ
