"""Slices of the stream kind: one epoch, one commit, and the state after it (docs/reference/streams.md)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from partitions.errors import BadPart
from partitions.plan import Size
from partitions.sentinels import Watermark, encode
from partitions.stream.event_time import EventTime
from partitions.stream.inputs import Input, Nothing
from partitions.stream.state import StreamState


class Tally(NamedTuple):
    """What became of an epoch's rows: ``rows_in`` and what was buffered before are the sum of the others.

    Attributes:
        rows_in: of its input.
        emitted: into the sorted table, also from the buffer.
        late: below their split's watermark.
        quarantined: without an event time or split, or too far ahead.
        buffered: that wait after it.
    """

    rows_in: int
    emitted: int
    late: int
    quarantined: int
    buffered: int


@dataclass(frozen=True)
class Judgement:
    """What fixes an epoch's rows, each in one place.

    Attributes:
        before: the state that it builds on.
        after: the state after it.
        bounds: the watermark that judges the first chunk of each split that has rows, by its name.
        timeout: of the definition then, as :func:`partitions.stream.ticks.span_ticks`.
        latest: the latest event time that is believed, in ticks; None: each one is.
        tally: of its rows.
    """

    before: StreamState
    after: StreamState
    bounds: Mapping[str, EventTime | None]
    timeout: int
    latest: int | None
    tally: Tally


@dataclass(frozen=True)
class EpochSlice:
    """One epoch.

    Attributes:
        number: of its entry.
        before: the short watermark before it.
        input: what it reads.
        counts: whether it reads all the input there was; one that leaves some makes no split idle.
        judgement: None before its input was looked at.
        since: where a filtered cold start began; None for any other slice.
    """

    number: int
    before: Watermark
    input: Input
    counts: bool
    judgement: Judgement | None = field(default=None, repr=False)
    since: Watermark | None = None

    why: Literal["run"] = "run"
    replaces: Literal[False] = False

    @property
    def judged(self) -> Judgement:
        """What fixes its rows.

        Raises:
            ValueError: its input was not looked at yet.
        """
        if self.judgement is None:
            raise ValueError(f"epoch {self.number}: its input was not looked at")
        return self.judgement

    @property
    def reads_nothing(self) -> bool:
        """Whether the source is not asked: only what waits leaves."""
        return isinstance(self.input, Nothing)

    @property
    def lower(self) -> Watermark | None:
        """Where its input begins; None if nothing was read before."""
        return self.input.lower

    @property
    def upper(self) -> Watermark:
        """Where its input ends."""
        return self.input.upper

    @property
    def size(self) -> Size:
        """What it reads."""
        return self.input.size

    @property
    def keys(self) -> Collection[Any]:
        """What no other epoch reads."""
        return self.input.keys

    @property
    def failures(self) -> Mapping[int, str]:
        """None: an epoch is read whole, or not at all."""
        return {}

    def contains(self, bad: BadPart) -> bool:
        """Whether a file is one of its own."""
        return bad.part in self.input.keys

    def up_to(self, bad: BadPart) -> EpochSlice | None:
        """An epoch of the files before the bad one; None if there are none, or if its input has no such parts."""
        before = self.input.up_to(bad.part)
        return None if before is None else replace(self, input=before, counts=False, judgement=None)

    def advance(self, _before: Watermark) -> Watermark:
        """The state after it."""
        return self.judged.after.watermark()

    def describe(self) -> list[dict[str, Any]]:
        """Its number, and its files or versions."""
        reason = self.input.why if isinstance(self.input, Nothing) else "new"
        return [{"epoch": self.number, **self.input.describe(), "reason": reason}]

    def counts_of_rows(self) -> dict[str, Any]:
        """Epoch, global watermark, and the tally."""
        told: dict[str, Any] = encode({"epoch": self.number, "global": self.judged.after.value})
        return told | self.judged.tally._asdict()

    def halve(self) -> tuple[EpochSlice, ...]:
        """Only itself: where epochs are cut is the plan's to say."""
        return (self,)
