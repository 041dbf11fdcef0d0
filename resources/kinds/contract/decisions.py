"""The rules and abilities of a kind that operators' decisions use, whatever the table format."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from typing_extensions import override

from partitions.errors import NeedsDecision
from partitions.path.quarantined_files import Quarantine
from partitions.path.source import SourceFile
from partitions.sentinels import Watermark
from resources.kinds.contract.lost_rows import LostRows
from resources.watermarks.entry import Entry


class LoadedBefore(NamedTuple):
    """The parts of slices that were loaded before.

    Attributes:
        amount: how many there are.
        noun: the noun for a part.
        names: the parts for people; empty if they have no names.
        without_rows: those that may have been loaded, and of which the table holds no row.
    """

    amount: int
    noun: str
    names: Sequence[str] = ()
    without_rows: Sequence[str] = ()


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

    def count_already_loaded(self, slices: Sequence[Any], last: Entry | None) -> LoadedBefore:
        """Return the parts of the slices whose rows an entry counts as loaded, or the table holds."""
        ...


@dataclass(frozen=True)
class HeldFiles:
    """The files whose rows a table holds, as a decision records them.

    Attributes:
        listed: rows of the list of ingested files.
        unlogged: the files among them that the log did not know.
        missing: files at or below the watermark that have no row in the table, and that the log did not know.
        replace_until: sentinel JSON text of the state up to which the table holds rows of files above the
            watermark; None if it holds none.
        quarantine: the quarantined files that have no row in the table.
        released: how many other files were in quarantine.
        counts: the rows of each file in the table; None if rows do not tell their file, or were not asked.
        checksums: checksums of the listed files by path, as far as they were recorded.
        absent: files with rows in the table that the log did not know and the source lacks; None if rows do
        not tell their file, so that such files may exist.
        knows_loads: whether the log told which files were loaded up to the commit, so that none of them is
        among the missing.
    """

    listed: Sequence[Sequence[Any]] = ()
    unlogged: Sequence[SourceFile] = ()
    missing: Sequence[SourceFile] = ()
    replace_until: str | None = None
    quarantine: Quarantine | None = None
    released: int = 0
    counts: Mapping[str, int] | None = None
    checksums: Mapping[str, str] = field(default_factory=dict)
    absent: Sequence[SourceFile] | None = ()
    knows_loads: bool = False


@dataclass(frozen=True)
class OtherNames:
    """Files that `state accept --below loaded` took as loaded under other names, so rows do not tell them.

    Attributes:
        loaded: those at or below the watermark whose rows are in the table.
        above: those above the watermark whose rows are in the table: the next loads add them again.
        unsure: those at or below the watermark whose rows the table may lack.
        unsure_above: those above the watermark whose rows the table may lack: the next loads add them.
    """

    loaded: Sequence[SourceFile] = ()
    above: Sequence[SourceFile] = ()
    unsure: Sequence[SourceFile] = ()
    unsure_above: Sequence[SourceFile] = ()


@runtime_checkable
class KnowsFiles(Protocol):
    """A kind that loads files, so that a decision may deal with single files."""

    column: str
    """The table's column that tells the file of a row."""

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

    def check_replaceable(self, entry: Entry, watermark: str) -> None:
        """Raise if rows of files above a watermark cannot be replaced, since they do not carry its path.

        Args:
            entry: the newest.
            watermark: sentinel JSON text.

        Raises:
            ConfigurationError: code ``other_names`` or ``rows_without_file``.
        """
        ...

    def gone_above(self, entry: Entry | None, watermark: str) -> Mapping[str, int]:
        """Return the rows in the table of each loaded file above a watermark that is gone at the source.

        Args:
            entry: the newest; without one every file with rows counts as loaded.
            watermark: sentinel JSON text.
        """
        ...

    def under_other_names(self, last: Entry | None, watermark: str) -> OtherNames:
        """Return the files that count as loaded under other names, and have no row under their own.

        Args:
            last: the newest entry.
            watermark: sentinel JSON text of the state that a decision goes to.
        """
        ...

    def not_ingested(self, files: Sequence[SourceFile], last: Entry) -> list[SourceFile]:
        """Return the files that no entry up to the newest one has handled."""
        ...


@runtime_checkable
class FreesCopies(Protocol):
    """A kind that skips files with the content of others, until these have other content."""

    def describe_freed_copies(self, slices: Sequence[Any], last: Entry | None) -> Sequence[str]:
        """Return a sentence about skipped copies that planned slices free; none if they free none."""
        ...


@runtime_checkable
class TellsLostRows(Protocol):
    """A kind whose entries tell which rows a rewind would bring back that others have deleted."""

    def lost_above(self, entry: Entry, watermark: str) -> LostRows:
        """Return the rows above a watermark that loads have written and the table no longer holds.

        Args:
            entry: the newest.
            watermark: sentinel JSON text.
        """
        ...


@runtime_checkable
class KnowsBounds(Protocol):
    """A kind whose commits record how far a slice looked, which may be above what it read."""

    def watermark_from_bounds(self, text: str) -> str | None:
        """Return the watermark of the table's rows at or below the bounds of its newest commit.

        Both watermarks are sentinel JSON texts. None means that the table has no value to go by.
        """
        ...


@runtime_checkable
class NeverGoesBack(Protocol):
    """A kind that can reload rows only into an empty table: no decision lowers its watermark."""

    never_goes_back: Literal[True]

    def check_rewind(self) -> None:
        """Raise NeedsDecision with code ``no_rewind``."""
        ...


class OnlyForwards(StateRules):
    """The rules of a kind that never goes back, since its rows do not tell what they were read from."""

    never_goes_back: Literal[True] = True

    @abstractmethod
    def rewind_error(self) -> NeedsDecision:
        """Return the error, code ``no_rewind``, for a decision that would lower the watermark."""

    def watermark_from_rows(self) -> None:
        """Return None: the table's rows do not show what was read."""
        return

    def replaces_reloaded_rows(self) -> bool:
        """Return False: rows do not show what they were read from."""
        return False

    @override
    def loaded_upper_bound(self, entry: Entry) -> str:
        """Raise NeedsDecision, as :meth:`check_rewind` does."""
        raise self.rewind_error()

    def check_rewind(self) -> None:
        """Raise NeedsDecision, code ``no_rewind``."""
        raise self.rewind_error()


@runtime_checkable
class ContinuesSet(Protocol):
    """A kind whose state has parts that a watermark typed by an operator leaves out."""

    def continued_set(self, watermark: str, last: Entry) -> str:
        """Return a typed watermark with what the state says of rows that are loaded, as sentinel JSON text.

        Args:
            watermark: sentinel JSON text.
            last: the newest entry.

        Raises:
            NeedsDecision: code ``would_rise``: it would leave out rows of a read that is not done.
        """
        ...


class AcceptedSource(NamedTuple):
    """The state under which an operator takes the source as it is now.

    Attributes:
        watermark: sentinel JSON text.
        notes: what that means, for people; empty if the source fits the state as it was.
    """

    watermark: str
    notes: Sequence[str] = ()


@runtime_checkable
class AcceptsSource(Protocol):
    """A kind that notices what became of its source, and whose state says what an operator has accepted."""

    def accept_source(self, last: Entry) -> AcceptedSource:
        """Return the state that takes the source as it is now.

        Raises:
            SourceError: the source cannot be looked at.
        """
        ...
