"""What a run would do next, and why: slices that will run, skips that will not.

A *kind* of watermark is a pure planner. It makes a :class:`Plan` from a definition, a state, what was observed and one
instant, and it says what the state is after a slice. The loop around it (``resources.loop``) is the same for all kinds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, Literal, NamedTuple, Protocol, Self, TypeVar, runtime_checkable

from partitions.errors import BadPart
from partitions.last_look import SourceLook
from partitions.sentinels import Watermark


@dataclass(frozen=True)
class Skip:
    """Something that the plan skips.

    Attributes:
        what: the thing, as a user knows it.
        why: the reason, a whole sentence.
    """

    what: str
    why: str


class Size(NamedTuple):
    """How much a slice is.

    Attributes:
        files: that are loaded.
        bytes: of these files; None if unknown before the read.
        work_units: that are loaded.
        failed_units: that the slice passes over and records as failed.
        ranges: of rows, of unknown number.
    """

    files: int = 0
    bytes: int | None = None
    work_units: int = 0
    failed_units: int = 0
    ranges: int = 0

    @property
    def amount(self) -> str:
        """In words: ``3 files``, ``1 work unit``, ``1 range``."""
        if self.ranges:
            return counted(self.ranges, "range")
        if self.work_units or self.failed_units:
            return counted(self.work_units, "work unit")
        return counted(self.files, "file")


@runtime_checkable
class ReadsBack(Protocol):
    """A slice that may read below the state that it goes on from."""

    @property
    def effective(self) -> Watermark:
        """The lower bounds that it really reads from."""
        ...


@runtime_checkable
class MayRepeat(Protocol):
    """A slice that may only read again what earlier runs have read."""

    @property
    def repeats(self) -> bool:
        """Whether nothing of it is new; then ``max_slices`` does not count it, or a long look-back would leave no place for what is new."""
        ...


@runtime_checkable
class TellsSource(Protocol):
    """A slice that tells what it is read from."""

    @property
    def source(self) -> str | None:
        """What tells its source from another one of its name; None: nothing does."""
        ...


def is_repeat(slice_: object) -> bool:
    """Return whether a slice only reads again what earlier runs have read."""
    return isinstance(slice_, MayRepeat) and slice_.repeats


@runtime_checkable
class CountsRows(Protocol):
    """A slice that says what became of its rows, one by one."""

    def counts_of_rows(self) -> dict[str, Any]:
        """Return number and state after it, in the public JSON form, and how many rows went where."""
        ...


class Slice(Protocol):
    """One number's worth of work: one commit of data and watermark."""

    @property
    def lower(self) -> Watermark | None:
        """The bound below, exclusive; ``None`` if there is none."""
        ...

    @property
    def upper(self) -> Watermark:
        """The bound above, inclusive."""
        ...

    @property
    def since(self) -> Watermark | None:
        """Where a filtered cold start began; None for any other."""
        ...

    @property
    def why(self) -> Literal["run", "replay", "late", "release"]:
        """What brought its work here: what is new, what is read again, what came late, what an operator has released."""
        ...

    @property
    def replaces(self) -> bool:
        """Whether the table's rows of the same origin are deleted."""
        ...

    @property
    def size(self) -> Size:
        """How much it is, as far as it is known before it is read."""
        ...

    @property
    def keys(self) -> Collection[Any]:
        """What tells the parts that it loads from those of other slices."""
        ...

    @property
    def failures(self) -> Mapping[Any, str]:
        """The parts that it records as failed: by key, each in a line for people."""
        ...

    def contains(self, bad: BadPart, /) -> bool:
        """Whether something of it is bad."""
        ...

    def up_to(self, bad: BadPart) -> Self | None:
        """The part of it before a bad one, in order; None if there is none."""
        ...

    def advance(self, before: Watermark, /) -> Watermark:
        """The state after it, on top of the newest one."""
        ...

    def describe(self) -> list[dict[str, Any]]:
        """The slice in the plan's JSON form (docs/reference/cli.md): one object, or one for each of its work units."""
        ...

    def halve(self) -> tuple[Self, ...]:
        """Two slices that do the same in two commits, or only itself if it cannot be cut."""
        ...


SliceT = TypeVar("SliceT", bound=Slice, covariant=True)


class Note(Protocol):
    """What a run notes beside the log: no truth, a later run may do without."""

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        ...


@dataclass(frozen=True)
class Plan(Generic[SliceT]):
    """The answer to "what would the next run do, and why?".

    Attributes:
        dataflow: its name.
        kind: ``path``, ``column``, ``window`` or ``stream``.
        state_number: number of the entry that the plan starts from; 0 without one.
        now: the one instant that the plan was made for, aware.
        why: a sentence for people.
        slices: what will run, in this order.
        skips: what will not, each with its reason.
        warnings: what the user should know although the run continues.
        calls: LIST calls, or folders opened, to make it.
        look: how a source looked from outside that only a read tells more of; a run that ends well notes it.
        awaited: what the next run may read once transactions have ended; a run notes it.
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
    look: SourceLook | None = None
    awaited: Note | None = None

    @property
    def due(self) -> bool:
        """Whether there is anything to do."""
        return bool(self.slices)

    def as_json(self) -> Mapping[str, Any]:
        """The plan in the public JSON form (docs/reference/cli.md)."""
        return {
            "dataflow": self.dataflow,
            "kind": self.kind,
            "state_number": self.state_number,
            "now": self.now.isoformat(),
            "due": self.due,
            "why": self.why,
            "slices": [described for slice_ in self.slices for described in slice_.describe()],
            "skips": [{"what": skip.what, "why": skip.why} for skip in self.skips],
            "warnings": list(self.warnings),
        }


def counted(number: int, what: str, plural: str | None = None) -> str:
    """Return a count for people: ``1 file``, ``26,076 rows``, ``2 batches`` with its own plural."""
    return f"{number:,} {what if number == 1 else plural or f'{what}s'}"


_STEPS = (("day", 86_400), ("h", 3600), ("min", 60), ("s", 1))


def lasting(seconds: float) -> str:
    """A length of time in at most two steps: ``3 h 20 min``, ``12 days``."""
    left = max(0, int(seconds))
    for place, (name, size) in enumerate(_STEPS):
        if left >= size:
            count, rest = divmod(left, size)
            first = counted(count, name) if name == "day" else f"{count} {name}"
            below = _STEPS[place + 1 : place + 2]
            more = [f"{rest // length} {step}" for step, length in below if rest >= length and count < 10]
            return " ".join([first, *more])
    return "0 s"
