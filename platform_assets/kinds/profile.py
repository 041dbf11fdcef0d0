"""The part of a kind of watermark that this layer shows: in words, in numbers, and as commands. Imports no Dagster.

:class:`KindProfile` is what every kind has. Features of some kinds are small contracts below it, requested by type
(:func:`platform_assets.kinds.required`). What a kind shows in Dagster is in ``platform_assets.factory.kinds``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from partitions.plan import counted
from partitions.sentinels import Watermark, encode
from platform_assets.kinds.dead_servers import Servers

if TYPE_CHECKING:
    from partitions.dataflow import Dataflow
    from partitions.request import Forced
    from resources.kinds.path.late import LateStep
    from resources.kinds.path.sweep import LateFiles
    from resources.listing import Budget, Listing
    from resources.outcome import Outcome
    from resources.platform.platform import Platform
    from resources.watermarks.entry import Entry
    from resources.watermarks.log import WatermarkLog


class PlanRow(NamedTuple):
    """A row of the table that Dagster shows of a plan: one slice, or one of its work units."""

    what: str
    files: int
    why: str


class LedgerPage(NamedTuple):
    """A ledger for people, in the order of its parts.

    Attributes:
        heading: how far the dataflow is loaded.
        lines: below the heading.
        commands: that lead on, below the lines.
        columns: the header of a table; empty: no table.
        rows: of the table, a text a column.
        more_lines: below the table.
    """

    heading: str
    lines: Sequence[str] = ()
    commands: Sequence[str] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    more_lines: Sequence[str] = ()


class KindProfile(ABC):
    """How one kind of watermark is shown.

    Attributes:
        slices_noun: what a plan's slices are counted in.
        unknown_waiting: the kind's keys of ``waiting`` in ``strandline list --json``, with their values if unknown.
    """

    slices_noun: ClassVar[str]
    unknown_waiting: ClassVar[Mapping[str, Any]]

    @abstractmethod
    def watermark_in_words(self, watermark: Mapping[str, Any]) -> str:
        """Return a watermark that is not empty in a few words, from its JSON form or from its values."""

    def watermark_document(self, watermark: Watermark) -> Mapping[str, Any] | None:
        """Return a watermark's values as JSON that people can read; None if its words, and the ledger, tell more than its values."""
        document: dict[str, Any] = encode(watermark)
        return document

    @abstractmethod
    def entry_watermark(self, entry: Entry) -> str:
        """Return the watermark of an entry as ``strandline state`` shows it: as it is stored, or what a long one comes to."""

    @abstractmethod
    def entry_amount(self, entry: Entry) -> str:
        """Return how much the slice of an entry has loaded, in words."""

    @abstractmethod
    def outcome_amount(self, outcome: Outcome) -> str:
        """Return how much a run has loaded, in words; "" if its rows say it all."""

    def outcome_aside(self, outcome: Outcome) -> str:
        """Return how much a run has put aside, in words; "" if nothing."""
        return f"{counted(outcome.quarantined, 'file')} put in quarantine" if outcome.quarantined else ""

    @abstractmethod
    def amounts(self, outcome: Outcome) -> dict[str, Any]:
        """Return how much a run has loaded, as metadata of its materialisation."""

    @abstractmethod
    def plan_line(self, number: int, described: Mapping[str, Any]) -> str:
        """Return a slice of a plan's JSON form in a line of ``strandline plan``, with the number that its entry will have if nothing comes between."""

    @abstractmethod
    def plan_row(self, described: Mapping[str, Any], why: str) -> PlanRow:
        """Return a slice of a plan's JSON form as Dagster shows it; ``why`` is the plan's reason."""

    @abstractmethod
    def waiting(
        self, platform: Platform, dataflow: Dataflow, entry: Entry | None, now: datetime, servers: Servers
    ) -> dict[str, Any]:
        """Return what the next run would find, as far as a short look shows: the known keys of ``unknown_waiting``.

        Raises:
            StrandlineError: if it is unknown, with the reason.
        """

    @abstractmethod
    def waiting_in_words(self, waiting: Mapping[str, Any]) -> str | None:
        """Return the result of :meth:`waiting` in words; None if it is unknown."""

    @abstractmethod
    def worth_a_run(self, platform: Platform, dataflow: Dataflow, entry: Entry | None, now: datetime) -> str:
        """Return what is worth a run of its own, as a text that other work does not have; "" if nothing is. What sensors find, all at once.

        Raises:
            StrandlineError: if it is unknown, with the reason.
        """

    @abstractmethod
    def ledger(self, platform: Platform, dataflow: Dataflow, now: datetime) -> dict[str, Any]:
        """Return what is loaded and what is missing, in the public JSON form: docs/reference/cli.md. Starts no Spark.

        Raises:
            NeedsDecision: as a run would.
        """

    @abstractmethod
    def ledger_page(self, dataflow: Dataflow, document: Mapping[str, Any]) -> LedgerPage:
        """Return the document of :meth:`ledger` as people read it."""


@runtime_checkable
class FindsLateFiles(Protocol):
    """A kind whose files can come below its watermark."""

    def late_files(
        self, log: WatermarkLog, dataflow: Dataflow, entry: Entry | None, now: datetime
    ) -> LateFiles:
        """Return the late files that the sweep has found and that no entry has handled."""
        ...

    def late_step(self, platform: Platform, dataflow: Dataflow, now: datetime) -> LateStep:
        """Make one step of the sweep, and apply the policy."""
        ...

    def why_none_is_late(self, dataflow: Dataflow) -> str | None:
        """Return why no file of this dataflow can be late; None if a file can be late."""
        ...


@runtime_checkable
class ListsNewFiles(Protocol):
    """A kind that finds its work by a listing, which can be cut short."""

    def list_new_files(
        self, platform: Platform, dataflow: Dataflow, entry: Entry | None, now: datetime, budget: Budget
    ) -> Listing:
        """Return the files that the next run would load, as far as the budget goes."""
        ...


@runtime_checkable
class CountsRowsAside(Protocol):
    """A kind that puts single rows aside."""

    def rows_aside(self, entry: Entry) -> tuple[int, int]:
        """Return how many rows were late, and how many were quarantined, since the start."""
        ...


@runtime_checkable
class BuffersRows(Protocol):
    """A kind in which rows that were read wait before they are in the table."""

    def rows_buffered(self, entry: Entry) -> int:
        """Return how many rows wait."""
        ...


@runtime_checkable
class HasOwnState(Protocol):
    """A kind whose state is shown in another form than it is stored."""

    def state_document(
        self, platform: Platform, dataflow: Dataflow, entry: Entry, *, full: bool
    ) -> Mapping[str, Any]:
        """Return the state in the public JSON form: docs/reference/cli.md; ``full``: with all of its parts, however many."""
        ...

    def state_lines(self, dataflow: Dataflow, entry: Entry) -> Sequence[str]:
        """Return what people see of the state below its entry, a line each."""
        ...


@runtime_checkable
class CanForce(Protocol):
    """A kind that can read a range again, whatever its watermark says."""

    def forced(
        self, platform: Platform, dataflow: Dataflow, force: str, unit: str | None, now: datetime
    ) -> Forced:
        """Return what ``--force`` and ``--unit`` of ``strandline run`` ask for; instants are read as those of the definition.

        Raises:
            ConfigurationError: for another form, an inverted range, or an unknown unit.
        """
        ...


@runtime_checkable
class CanSimulate(Protocol):
    """A kind with a grace, and observations of what each grace would have caught."""

    def simulate(self, log: WatermarkLog, dataflow: Dataflow, graces: Sequence[int]) -> dict[str, Any]:
        """Return what each grace would have caught and read again, in the public JSON form: docs/reference/cli.md."""
        ...


@runtime_checkable
class LoadsAheadOfTime(Protocol):
    """A kind for which a clock that is ahead of time loads what does not exist yet."""

    def loads_ahead(self, names: Sequence[str]) -> str:
        """Return what would happen to these dataflows, in words."""
        ...
