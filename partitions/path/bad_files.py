"""Decide what a run does with a bad file: stop, quarantine it, or list again later.

See docs/reference/files.md, Bad files.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FILE_CHANGED = "file_changed"
"""Code of a file that changed after its listing."""
FILE_VANISHED = "file_vanished"
"""Code of a listed file that no longer exists."""
CHANGED_WHILE_READ = "file_changed_while_read"
"""Code of a file whose rows are in the table, but of an unknown version of the file."""

TOO_MANY_BAD_FILES = "too_many_bad_files"
"""Code of a run that quarantines nothing, since more files are bad than ``max_bad_files`` allows."""

ALWAYS_ALLOWED = 3
"""Bad files of a slice, or one after another, that may go into quarantine whatever their share."""

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


@dataclass(frozen=True)
class BadFileCount:
    """How many files of one slice are bad, and what was loaded before it.

    Attributes:
        bad: the number of bad files.
        total: the number of all files of the slice.
        before: bad files that the slices right before it quarantined, without a file that was loaded since.
        is_first: whether the dataflow has not loaded any file yet.
    """

    bad: int
    total: int
    before: int = 0
    is_first: bool = False

    @property
    def all_bad(self) -> bool:
        """Whether no file of the slice can be loaded."""
        return self.bad == self.total

    @property
    def in_a_row(self) -> int:
        """The number to compare with the limit: slices in which all files are bad count together."""
        return self.bad + (self.before if self.all_bad else 0)

    def exceeds(self, max_bad_files: int | None) -> bool:
        """Return whether these are too many to be quarantined.

        Without ``max_bad_files``, half of the slice's files may be bad, or three of them. All of them may
        be bad only if it is one file, which came alone after files that were loaded.
        """
        if max_bad_files is not None:
            return self.in_a_row > max_bad_files
        if self.all_bad:
            return self.is_first or self.total > 1 or self.in_a_row > ALWAYS_ALLOWED
        return self.bad > max(ALWAYS_ALLOWED, self.total / 2)

    def describe(self, max_bad_files: int | None) -> str:
        """Return the numbers in words, with the rule that they break."""
        if self.total == 1:
            text = "the only file of the slice is bad"
        else:
            text = f"{'all' if self.all_bad else self.bad} {'' if self.all_bad else 'of '}{self.total} files of the slice are bad"
        if self.all_bad and self.before:
            text += f", after {self.before} bad ones right before"
        if max_bad_files is not None:
            return f"{text}, and max_bad_files is {max_bad_files}"
        if self.all_bad:
            return f"{text}, and no file has been loaded yet" if self.is_first else text
        return f"{text}, more than half"
