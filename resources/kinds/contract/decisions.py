"""What operators' decisions ask of a kind of watermark. A decision knows no format of tables."""

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
        """Return a watermark as an operator writes it, in the form that the definition has.

        Raises:
            ConfigurationError: for any other text.
        """
        ...

    def migrate_watermark(self, text: str, now: datetime, last: Entry | None) -> str:
        """Return what of a watermark holds under the definition as it is now; both are sentinel JSON texts.

        Args:
            text: the watermark.
            now: the clock, aware.
            last: the newest entry, which says what is in the table; None if it does not count.

        Raises:
            ConfigurationError: nothing of it holds.
        """
        ...

    def watermark_from_rows(self) -> str | None:
        """Return the watermark derived from the table's rows (sentinel JSON), or None."""
        ...

    def replaces_reloaded_rows(self) -> bool:
        """Return whether rows of the table that are loaded again can be deleted in the same commit, so that it does no harm."""
        ...

    def loaded_upper_bound(self, entry: Entry) -> str:
        """Return the watermark that covers all rows that may be in the table, for a rewind that deletes what is read again.

        Raises:
            ConfigurationError: rows do not tell what they were read from.
        """
        ...

    def check_rewind(self) -> None:
        """Raise ConfigurationError if there is no order to go back in."""
        ...

    def count_already_loaded(self, slices: Sequence[Any], last: Entry | None) -> tuple[int, str]:
        """Return how many parts of these slices were loaded before, as far as an entry knows, and what a part is called."""
        ...


@dataclass(frozen=True)
class HeldFiles:
    """The files whose rows a table holds, as a decision records them.

    Attributes:
        listed: rows of the list of ingested files.
        taken: how many of them the log did not know.
        missing: how many files at or below the watermark have no row in the table.
        replace_until: sentinel JSON text of the state up to which the table holds rows of files above the watermark; None if it holds none.
        aside: the files in quarantine that have no row in the table.
        freed: how many others were in quarantine.
    """

    listed: Sequence[Sequence[Any]] = ()
    taken: int = 0
    missing: int = 0
    replace_until: str | None = None
    aside: Quarantine | None = None
    freed: int = 0


@runtime_checkable
class KnowsFiles(Protocol):
    """A kind that loads files: a decision may deal with single ones."""

    column: str
    """Of the table, which tells the file of a row."""

    def files_up_to(self, watermark: Watermark, above: Entry | None) -> Sequence[SourceFile]:
        """Return the files that the source holds at or below a watermark, and above an entry's: what a decision passes over."""
        ...

    def held_files(
        self, last: Entry | None, base: Entry | None, watermark: str, *, beyond: bool = False
    ) -> HeldFiles:
        """Return the files whose rows a table holds, and that no run loads again.

        Args:
            last: the newest entry.
            base: the entry of the newest commit that the table's rows go back to, if the log has it.
            watermark: of that commit, sentinel JSON text.
            beyond: whether the table may hold rows of files that the commit's entry knows nothing of.
        """
        ...

    def without_rows(self, last: Entry | None) -> tuple[Quarantine, int]:
        """Return the files in quarantine that have no row in the table, as far as rows tell their file, and how many others there are."""
        ...

    def watermark_below(self, entry: Entry, to_new: Callable[[str], str | None]) -> str | None:
        """Return an entry's watermark below another root, as sentinel JSON text; None if no ingested file lies there.

        Args:
            entry: the newest.
            to_new: returns a path of the old root as one of the new root; None if it lies outside.
        """
        ...

    def not_ingested(self, files: Sequence[SourceFile], last: Entry) -> list[SourceFile]:
        """Return the files that no entry up to the newest one has dealt with."""
        ...


@runtime_checkable
class KnowsBounds(Protocol):
    """A kind whose commits tell up to where a slice has looked, which may be above what it has read."""

    def watermark_from_bounds(self, text: str) -> str:
        """Return the watermark of the rows that a table holds at or below the bounds of its newest commit; both are sentinel JSON texts."""
        ...


@runtime_checkable
class NeverGoesBack(Protocol):
    """A kind whose rows cannot be loaded again without emptying the table: no decision takes a watermark below what is loaded."""

    never_goes_back: Literal[True]

    def check_rewind(self) -> None:
        """Raise NeedsDecision: code ``no_rewind``."""
        ...
