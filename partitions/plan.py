"""A plan: the slices that a run would load, the parts that it would skip, and why.

A *kind* of watermark is a pure planner. It makes a :class:`Plan` from a definition, a state, observations
and one instant, and it returns the state after a slice. The loop around it (``resources.loop``) is the
same for all kinds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from partitions.errors import BadPart, StrandlineError
from partitions.last_look import SourceSnapshot
from partitions.sentinels import Watermark


@dataclass(frozen=True)
class Skip:
    """A part that the plan skips.

    Attributes:
        subject: the skipped part, as a user knows it.
        why: the reason, in words.
        is_loaded: whether it is skipped since it is loaded already; else it waits, or never comes.
        waits_for_upstream: whether it waits for the dataflow whose table is read.
    """

    subject: str
    why: str
    is_loaded: bool = False
    waits_for_upstream: bool = False


class Size(NamedTuple):
    """The size of a slice.

    Attributes:
        files: number of files to load.
        bytes: their total size; None if it is unknown before the read.
        work_units: number of work units to load.
        failed_units: number of work units that the slice skips and records as failed.
        ranges: number of row ranges; their rows are unknown.
        commits: number of commits of a table.
    """

    files: int = 0
    bytes: int | None = None
    work_units: int = 0
    failed_units: int = 0
    ranges: int = 0
    commits: int = 0

    @property
    def amount(self) -> str:
        """The size in words: ``3 files``, ``1 work unit``, ``1 range``, ``2 commits``."""
        if self.commits:
            return pluralize(self.commits, "commit")
        if self.ranges:
            return pluralize(self.ranges, "range")
        if self.work_units or self.failed_units:
            return pluralize(self.work_units, "work unit")
        return pluralize(self.files, "file")


@runtime_checkable
class TellsLowerBound(Protocol):
    """A slice that may read from below the state that it starts from."""

    @property
    def effective(self) -> Watermark:
        """The lower bounds that it really reads from."""
        ...


@runtime_checkable
class ReadsAgain(Protocol):
    """A slice that may only read again what earlier runs have read."""

    @property
    def repeats(self) -> bool:
        """Whether it reads nothing new.

        ``max_slices`` does not count such slices: a long look-back would leave no room for new rows.
        """
        ...


@runtime_checkable
class TellsSourceIdentity(Protocol):
    """A slice that identifies its source."""

    @property
    def source(self) -> str | None:
        """A text that differs for another source of the same name; None: nothing tells them apart."""
        ...


@runtime_checkable
class FixesInputs(Protocol):
    """A slice whose plan has fixed versions of tables that are read beside its rows."""

    @property
    def input_versions(self) -> Mapping[str, Any]:
        """The versions by the names of inputs; other inputs are read at their newest version."""
        ...


def is_repeat(slice_: object) -> bool:
    """Return whether a slice only reads again what earlier runs have read."""
    return isinstance(slice_, ReadsAgain) and slice_.repeats


@runtime_checkable
class CountsRows(Protocol):
    """A slice that knows the fate of each of its rows."""

    def counts_of_rows(self) -> dict[str, Any]:
        """Return its number, the state after it, and row counts by fate, in the public JSON form."""
        ...


class Slice(Protocol):
    """One number's worth of work: one commit of data and watermark."""

    @property
    def lower(self) -> Watermark | None:
        """The lower bound; each kind says whether it is inclusive. None if there is none."""
        ...

    @property
    def upper(self) -> Watermark:
        """The upper bound; each kind says whether it is inclusive."""
        ...

    @property
    def since(self) -> Watermark | None:
        """Where a filtered cold start began; None for any other run."""
        ...

    @property
    def why(self) -> Literal["run", "replay", "late", "release", "reconcile"]:
        """The reason for the slice: new work, a replay, late or released files, or a repair."""
        ...

    @property
    def replaces(self) -> bool:
        """Whether the table's rows of the same origin are deleted."""
        ...

    @property
    def size(self) -> Size:
        """The size, as far as it is known before the read."""
        ...

    @property
    def keys(self) -> Collection[Any]:
        """The parts that it loads, by keys that no other slice has."""
        ...

    @property
    def failures(self) -> Mapping[Any, str]:
        """The parts that it records as failed: by key, the reason in one line."""
        ...

    def contains(self, bad: BadPart, /) -> bool:
        """Return whether a bad part belongs to it."""
        ...

    def up_to(self, bad: BadPart) -> Self | None:
        """Return the slice of everything before a bad part, in order; None if that is nothing."""
        ...

    def advance(self, before: Watermark, /) -> Watermark:
        """Return the state after it, on top of the newest state."""
        ...

    def describe(self) -> list[dict[str, Any]]:
        """Return it in the plan's JSON form (docs/reference/cli.md): one object, or one per work unit."""
        ...

    def halve(self) -> tuple[Self, ...]:
        """Return two slices with the same work in two commits; only itself if it cannot be cut."""
        ...


SliceT = TypeVar("SliceT", bound=Slice, covariant=True)


class RunNote(Protocol):
    """A note that a run keeps beside the log; later runs can do without it."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        ...


@dataclass(frozen=True)
class Plan(Generic[SliceT]):
    """The answer to "what would the next run do, and why?".

    Attributes:
        dataflow: the dataflow's name.
        kind: ``watermark.type``.
        state_number: number of the entry that the plan starts from; 0 without one.
        now: the instant that the plan was made for, aware.
        why: a sentence for people.
        slices: the work that will run, in this order.
        skips: the parts that will not run, each with its reason.
        warnings: what the user should know although the run continues.
        calls: number of LIST calls, or of opened folders, for the plan.
        snapshot: the snapshot of a source whose rows only a read shows; a successful run notes it.
        awaited: rows that the next run may read once transactions have ended; a run notes them.
        waiting_for_upstream: number of work units whose part of another dataflow's table is incomplete.
        stop: why the next run with rows stops, or may stop, until somebody decides; None if nothing is known.
    """

    dataflow: str
    kind: str
    state_number: int
    now: datetime
    why: str
    slices: tuple[SliceT, ...] = ()
    skips: tuple[Skip, ...] = ()
    warnings: tuple[str, ...] = ()
    calls: int = 0
    snapshot: SourceSnapshot | None = None
    awaited: RunNote | None = None
    waiting_for_upstream: int = 0
    stop: StrandlineError | None = None

    @property
    def due(self) -> bool:
        """Whether there is anything to load."""
        return bool(self.slices)

    def as_json(self) -> Mapping[str, Any]:
        """Return the plan in the public JSON form (docs/reference/cli.md)."""
        return {
            "dataflow": self.dataflow,
            "kind": self.kind,
            "state_number": self.state_number,
            "now": self.now.isoformat(),
            "due": self.due,
            "why": self.why,
            "slices": [described for slice_ in self.slices for described in slice_.describe()],
            "skips": [{"what": skip.subject, "why": skip.why} for skip in self.skips],
            "warnings": list(self.warnings),
            "waiting_for_upstream": self.waiting_for_upstream,
        }


def pluralize(number: int, noun: str, plural: str | None = None) -> str:
    """Return a count for people: ``1 file``, ``26,076 rows``, or with an irregular plural ``2 batches``."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


_STEPS = (("day", 86_400), ("h", 3600), ("min", 60), ("s", 1))


def format_duration(seconds: float) -> str:
    """Return a duration in at most two units: ``3 h 20 min``, ``12 days``."""
    remaining = max(0, int(seconds))
    for place, (name, size) in enumerate(_STEPS):
        if remaining >= size:
            count, rest = divmod(remaining, size)
            first = pluralize(count, name) if name == "day" else f"{count} {name}"
            below = _STEPS[place + 1 : place + 2]
            more = [f"{rest // length} {step}" for step, length in below if rest >= length and count < 10]
            return " ".join([first, *more])
    return "0 s"
