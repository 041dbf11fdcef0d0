"""Show a kind of watermark: in words, in numbers, and as commands. Imports no Dagster.

:class:`KindProfile` is what every kind has. Features of some kinds are small contracts below it, requested
by type (:func:`platform_assets.kinds.require_profile`). What a kind shows in Dagster is in
``platform_assets.factory.kinds``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

from partitions.column.words import describe_watermark
from partitions.errors import ConfigurationError
from partitions.plan import pluralize
from partitions.sentinels import Watermark, encode
from platform_assets.kinds.dead_servers import UnreachableServers

if TYPE_CHECKING:
    from partitions.dataflow import Dataflow
    from partitions.request import Forced
    from partitions.why_answer import Reason, WhyAnswer
    from resources.kinds.path.late import LateStep
    from resources.kinds.path.sweep import LateFiles
    from resources.listing import Budget, Listing
    from resources.outcome import Outcome
    from resources.platform.platform import Platform
    from resources.watermarks.entry import Entry
    from resources.watermarks.log import WatermarkLog


class PlanRow(NamedTuple):
    """A row of Dagster's table of a plan: one slice, or one of its work units."""

    summary: str
    files: int
    why: str


class LedgerRequest(NamedTuple):
    """A request for a part of a ledger.

    Attributes:
        now: the clock, aware.
        start: an instant or the name of a partition, inclusive; None: from the beginning.
        end: the same, exclusive; None: to the end.
        compare: whether to list the source, and to compare it with the record.
    """

    now: datetime
    start: str | None = None
    end: str | None = None
    compare: bool = False

    def refuse_options(self, dataflow: Dataflow, *, bounds: bool, instead: str) -> None:
        """Raise ConfigurationError for ``--compare``, and with ``bounds`` for ``--from`` and ``--to``.

        Args:
            dataflow: the dataflow.
            bounds: whether its ledger has no parts to choose.
            instead: how changed rows at the source are loaded, as a sentence without a full stop.
        """
        if self.compare:
            raise ConfigurationError(
                f"dataflow {dataflow.name}: --compare lists files: expected a watermark of type path, found {dataflow.kind}. {instead}"
            )
        if bounds and (self.start is not None or self.end is not None):
            raise ConfigurationError(
                f"dataflow {dataflow.name}: --from and --to choose partitions or windows: expected a watermark of type path or window, found"
                f" {dataflow.kind}, whose ledger is one range"
            )


def ledger_of_one_range(
    dataflow: Dataflow,
    request: LedgerRequest,
    entry: Entry | None,
    up_to: Any,
    *,
    late: int = 0,
    quarantined: int = 0,
) -> dict[str, Any]:
    """Return the public JSON of a ledger without units, whose loaded part is one range.

    Args:
        dataflow: the dataflow.
        request: what was asked.
        entry: the newest entry; None: nothing is loaded.
        up_to: where the range ends, in the kind's form; None: nowhere.
        late: how many rows came late.
        quarantined: how many rows are set aside.
    """
    return {
        "dataflow": dataflow.name,
        "now": request.now.isoformat(),
        "complete_up_to": None,
        "units": None,
        "covered": {
            "after": None,
            "up_to": up_to,
            "files": 0,
            "rows": entry.total_rows if entry else 0,
            "withheld": entry.total_withheld if entry else 0,
        },
        "late": {"count": late, "paths": []},
        "quarantined": {"count": quarantined, "files": []},
        "verified_up_to": None,
        "verified_at": None,
    }


def fingerprint_of_plan(platform: Platform, dataflow: Dataflow, entry: Entry | None, now: datetime) -> str:
    """Return a text that identifies the upper end of what a plan would load; "" if it would load nothing."""
    plan = platform.kind(dataflow).planning.plan(entry, now)
    return repr((entry.watermark if entry else None, plan.slices[-1].upper)) if plan.slices else ""


class LedgerPage(NamedTuple):
    """A ledger for people, in the order of its parts.

    Attributes:
        heading: how far the dataflow is loaded.
        lines: the lines below the heading.
        commands: the commands that help, below the lines.
        columns: the header of a table; empty: no table.
        rows: the rows of the table, one text for each column.
        more_lines: the lines below the table.
        hidden: what the table leaves out, and where it stands; "" if it is whole.
    """

    heading: str
    lines: Sequence[str] = ()
    commands: Sequence[str] = ()
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    more_lines: Sequence[str] = ()
    hidden: str = ""


class KindProfile(ABC):
    """The words, numbers and commands that show one kind of watermark.

    Attributes:
        slices_noun: the noun for a plan's slices.
        unknown_waiting: the kind's keys of ``waiting`` in ``strandline list --json``, with their values if
        unknown.
    """

    slices_noun: ClassVar[str]
    unknown_waiting: ClassVar[Mapping[str, Any]]

    @abstractmethod
    def watermark_in_words(self, watermark: Mapping[str, Any]) -> str:
        """Return a watermark, which is not empty, in a few words, from its JSON form or its values."""

    def reach_in_words(self, reach: Mapping[str, Any]) -> str:
        """Return how far source and table were compared: by default values of columns."""
        return describe_watermark(reach)

    def watermark_document(self, watermark: Watermark) -> Mapping[str, Any] | None:
        """Return a watermark's values as readable JSON; None if words or the ledger say more."""
        document: dict[str, Any] = encode(watermark)
        return document

    @abstractmethod
    def entry_watermark(self, entry: Entry) -> str:
        """Return an entry's watermark as ``strandline state`` shows it: as stored, or summarised if long."""

    @abstractmethod
    def entry_amount(self, entry: Entry) -> str:
        """Return how much an entry's slice has loaded, in words."""

    def outcome_watermark(self, outcome: Outcome, watermark: Mapping[str, Any]) -> str:  # noqa: ARG002 - kinds whose plan tells more use it
        """Return the watermark before or after a run, in words; the plan may tell more than it."""
        return self.watermark_in_words(watermark)

    @abstractmethod
    def outcome_amount(self, outcome: Outcome) -> str:
        """Return how much a run has loaded, in words; "" if its row count says it all."""

    def amount_set_aside(self, outcome: Outcome) -> str:
        """Return how much a run has set aside, in words; "" if nothing."""
        return f"{pluralize(outcome.quarantined, 'file')} put in quarantine" if outcome.quarantined else ""

    @abstractmethod
    def amounts(self, outcome: Outcome) -> dict[str, Any]:
        """Return how much a run has loaded, as metadata of its materialisation."""

    @abstractmethod
    def plan_line(self, number: int, described: Mapping[str, Any]) -> str:
        """Return a slice of a plan's JSON form as a line of ``strandline plan``.

        ``number`` is the number that its entry gets if no other commit comes first.
        """

    @abstractmethod
    def plan_row(self, described: Mapping[str, Any], why: str) -> PlanRow:
        """Return a slice of a plan's JSON form as Dagster shows it; ``why`` is the plan's reason."""

    @abstractmethod
    def waiting(
        self,
        platform: Platform,
        dataflow: Dataflow,
        entry: Entry | None,
        now: datetime,
        servers: UnreachableServers,
    ) -> dict[str, Any]:
        """Return what the next run would load, as far as a short check shows.

        The keys are those of ``unknown_waiting``, and ``warnings`` if the source looks wrong.

        Raises:
            StrandlineError: if it is unknown, with the reason.
        """

    def watermark_in_list(self, watermark: Mapping[str, Any], waiting: Mapping[str, Any]) -> str:  # noqa: ARG002 - kinds whose plan tells more use it
        """Return a watermark in a cell of ``strandline list``; :meth:`waiting` may tell more than it."""
        return self.watermark_in_words(watermark)

    @abstractmethod
    def waiting_in_words(self, waiting: Mapping[str, Any]) -> str | None:
        """Return the result of :meth:`waiting` in words; None if it is unknown."""

    @abstractmethod
    def work_fingerprint(
        self, platform: Platform, dataflow: Dataflow, entry: Entry | None, now: datetime
    ) -> str | None:
        """Return a text that identifies the work worth a run, as all sensors together see it; "" if none.

        Other work has another text. None: only a run asks the source.

        Raises:
            StrandlineError: if it is unknown, with the reason.
        """

    @abstractmethod
    def explain(self, platform: Platform, dataflow: Dataflow, subject: str, now: datetime) -> WhyAnswer:
        """Return what became of a part that a user names, such as a window, a file, a value or a split.

        Raises:
            ConfigurationError: there is no such part.
            NeedsDecision: as a run would.
        """

    @abstractmethod
    def ledger(self, platform: Platform, dataflow: Dataflow, request: LedgerRequest) -> dict[str, Any]:
        """Return what is loaded and what is missing, as public JSON (docs/reference/cli.md). Starts no Spark.

        Raises:
            NeedsDecision: as a run would.
            ConfigurationError: the kind has no such part, or nothing to compare.
        """

    @abstractmethod
    def ledger_page(self, dataflow: Dataflow, document: Mapping[str, Any]) -> LedgerPage:
        """Return the document of :meth:`ledger` as people read it."""


@runtime_checkable
class FindsLateFiles(Protocol):
    """A kind whose files can arrive below its watermark."""

    def late_files(
        self, log: WatermarkLog, dataflow: Dataflow, entry: Entry | None, now: datetime
    ) -> LateFiles:
        """Return the late files that the sweep has found and no entry has handled."""
        ...

    def late_step(self, platform: Platform, dataflow: Dataflow, now: datetime) -> LateStep:
        """Make one step of the sweep, and apply the policy for late files."""
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
        """Return the files that the next run would load, within a budget."""
        ...


@runtime_checkable
class CountsRowsSetAside(Protocol):
    """A kind that sets single rows aside."""

    def rows_set_aside(self, entry: Entry) -> tuple[int, int]:
        """Return how many rows were late and how many were quarantined since the start."""
        ...


@runtime_checkable
class HasStreamStatus(Protocol):
    """A kind whose rows wait in a buffer until an event time has passed."""

    def stream_status(
        self, log: WatermarkLog, dataflow: Dataflow, entry: Entry, now: datetime
    ) -> dict[str, Any]:
        """Return the lags by event time, and the waiting rows, as public JSON (docs/reference/cli.md)."""
        ...

    def waiting_line(self, status: Mapping[str, Any]) -> str | None:
        """Return what the rows of :meth:`stream_status` wait for, in words; None if no row waits."""
        ...


@runtime_checkable
class TellsUnloaded(Protocol):
    """A kind whose state, and notes, tell of parts that are not loaded."""

    def unloaded(
        self, log: WatermarkLog, dataflow: Dataflow, entry: Entry | None, now: datetime
    ) -> Sequence[Reason]:
        """Return what the log knows to be not loaded, with the reasons. Opens no source."""
        ...


@runtime_checkable
class TellsReachOfEntry(Protocol):
    """A kind whose definition tells more of an entry's watermark than the entry."""

    def watermark_of_entry(self, dataflow: Dataflow, entry: Entry) -> str:
        """Return an entry's watermark as ``strandline state`` shows it."""
        ...


@runtime_checkable
class HasOwnState(Protocol):
    """A kind that shows its state in another form than the stored one."""

    def state_document(
        self, platform: Platform, dataflow: Dataflow, entry: Entry, *, full: bool
    ) -> Mapping[str, Any]:
        """Return the state as public JSON (docs/reference/cli.md); with all parts, however many, if ``full``."""
        ...

    def state_lines(self, dataflow: Dataflow, entry: Entry) -> Sequence[str]:
        """Return the lines about the state that people see below its entry."""
        ...


@runtime_checkable
class CanForce(Protocol):
    """A kind that can read a range again, whatever its watermark says."""

    def forced_request(
        self, platform: Platform, dataflow: Dataflow, force: str, unit: str | None, now: datetime
    ) -> Forced:
        """Return the request of ``strandline run --force`` and ``--unit``.

        Instants are read in the definition's zone.

        Raises:
            ConfigurationError: for another form, an inverted range, or an unknown unit.
        """
        ...


@runtime_checkable
class CanSimulate(Protocol):
    """A kind with a grace, and observations that show what each grace would have caught."""

    def simulate(self, log: WatermarkLog, dataflow: Dataflow, graces: Sequence[int]) -> dict[str, Any]:
        """Return what each grace would have caught and read again, as public JSON (docs/reference/cli.md)."""
        ...


@runtime_checkable
class LoadsAheadOfTime(Protocol):
    """A kind that loads future windows if the clock is ahead."""

    def loads_ahead(self, names: Sequence[str]) -> str:
        """Return what would happen to these dataflows if the clock were ahead, in words."""
        ...
