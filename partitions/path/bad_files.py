"""Decide what a run does with a file that it cannot load: stop, pass it over, or look again later (docs/reference/files.md, Bad files)."""

from __future__ import annotations

from typing import Literal

FILE_CHANGED = "file_changed"
"""Code of a file that is not what was listed any more."""
FILE_VANISHED = "file_vanished"
"""Code of a file that was listed and is gone."""
CHANGED_WHILE_READ = "file_changed_while_read"
"""Code of a file whose rows are in the table, of a version that nobody knows."""

OnBadFile = Literal["stop", "quarantine"]


def is_outdated(code: str) -> bool:
    """Return whether a new listing may take the fault away: the file changed, or is gone."""
    return code in (FILE_CHANGED, FILE_VANISHED)


def is_passed_over(on_bad_file: OnBadFile, code: str) -> bool:
    """Return whether a bad file goes into quarantine, and the run goes on without it.

    A file that still grows is mended by time, and one that changed while it was read is in the table already.
    """
    return on_bad_file == "quarantine" and code != FILE_CHANGED and not is_loaded(code)


def is_loaded(code: str) -> bool:
    """Return whether the rows of a bad file are in the table, so that no other file need be left out or loaded before it."""
    return code == CHANGED_WHILE_READ
