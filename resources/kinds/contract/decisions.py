"""What operators' decisions need from a kind of watermark. Decisions depend on no table format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Protocol, runtime_checkable

from partitions.path.quarantined_files import Quarantine
from partitions.path.source import SourceFile
from partitions.sentinels import Watermark
from resources.watermarks.entry import Entry


class StateRules(Protocol):
    """The rules of one kind, bound to a dataflow's source, table and log."""

    def parse_watermark(self, text: str) -> str:
        """Convert a watermark that an operator typed to the form that the definition needs.

        Raises:
            ConfigurationError: for any other text.
        """
        ...

    def migrate_watermark(self, text: str, now: datetime, last: Entry | None) -> str:
        """Return the part of a watermark that stays valid under the current definition.

        Args:
            text: the watermark, sentinel JSON; so is the result.
            now: the clock, aware.
            last: the newest entry, which says what the table holds; None if it does not count.

        Raises:
            ConfigurationError: no part stays valid.
        """
        ...

    def watermark_from_rows(self) -> str | None:
        """Derive the watermark from the table's rows, as sentinel JSON; None if they do not show it."""
        ...

    def replaces_reloaded_rows(self) -> bool:
        """Return whether a commit can delete the earlier rows of what it loads again."""
        ...

    def loaded_upper_bound(self, entry: Entry) -> str:
        """Return a watermark that covers all rows in the table, for a rewind that deletes what it rereads.

        Raises:
            ConfigurationError: rows do not show where they were read from.
        """
        ...

    def check_rewind(self) -> None:
        """Raise ConfigurationError if the source has no order to go back in."""
        ...

    def count_already_loaded(self, slices: Sequence[Any], last: Entry | None) -> tuple[int, str]:
        """Return how many parts of the slices an entry counts as loaded, and the noun for a part."""
        ...


@dataclass(frozen=True)
class HeldFiles:
    """The files whose rows a table holds, as a decision records them.

    Attributes:
        listed: rows of the list of ingested files.
        unlogged: how many of them the log did not know.
        missing: how many files at or below the watermark have no row in the table.
        replace_until: sentinel JSON text of the state up to which the table holds rows of files above the
            watermark; None if it holds none.
        quarantine: the quarantined files that have no row in the table.
        released: how many other files were in quarantine.
    """

    listed: Sequence[Sequence[Any]] = ()
    unlogged: int = 0
    missing: int = 0
    replace_until: str | None = None
    quarantine: Quarantine | None = None
    released: int = 0


@runtime_checkable
class KnowsFiles(Protocol):
    """A kind that loads files, so that a decision may deal with single files."""

    column: str
    """Of the table, which tells the file of a row."""

    def files_up_to(self, watermark: Watermark, above: Entry | None) -> Sequence[SourceFile]:
        """Return the source's files at or below a watermark and above an entry's: a decision skips them."""
        ...

    def held_files(
        self, last: Entry | None, base: Entry | None, watermark: str, *, beyond: bool = False
    ) -> HeldFiles:
        """Return the files whose rows the table holds; no run loads them again.

        Args:
            last: the newest entry.
            base: the entry of the newest commit that the table's rows go back to, if the log has it.
            watermark: that commit's watermark, sentinel JSON text.
            beyond: whether the table may hold rows of files that the commit's entry does not know.
        """
        ...

    def quarantine_without_rows(self, last: Entry | None) -> tuple[Quarantine, int]:
        """Return the quarantined files that have no row in the table, and how many others there are.

        A file counts as without rows if rows do not tell their file.
        """
        ...

    def watermark_below(self, entry: Entry, to_new: Callable[[str], str | None]) -> str | None:
        """Return an entry's watermark below another root, as sentinel JSON text.

        None means that no ingested file lies there.

        Args:
            entry: the newest.
            to_new: returns a path of the old root as one of the new root; None if it lies outside.
        """
        ...

    def not_ingested(self, files: Sequence[SourceFile], last: Entry) -> list[SourceFile]:
        """Return the files that no entry up to the newest one has handled."""
        ...


@runtime_checkable
class KnowsBounds(Protocol):
    """A kind whose commits record how far a slice looked, which may be above what it read."""

    def watermark_from_bounds(self, text: str) -> str:
        """Return the watermark of the table's rows at or below the bounds of its newest commit.

        Both watermarks are sentinel JSON texts.
        """
        ...


@runtime_checkable
class NeverGoesBack(Protocol):
    """A kind that can reload rows only into an empty table: no decision lowers its watermark."""

    never_goes_back: Literal[True]

    def check_rewind(self) -> None:
        """Raise NeedsDecision with code ``no_rewind``."""
        ...
